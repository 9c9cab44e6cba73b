import type { SvmNetwork } from '../../base/networks.ts'
import type { SvmAccount } from '../../base/svm-signature.ts'
import { tokenAccountOf } from '../../base/token-account.ts'
import { FeeLosses } from '../../chains/svm/fee-losses.ts'
import { SpentFees, weiOf } from '../../chains/svm/spent-fees.ts'
import { SvmChain } from '../../chains/svm/svm-chain.ts'
import type { NetworkHealth } from '../../payment/network-health.ts'
import { PayerLimits } from '../exact-evm/payer-limits.ts'
import { exactOn, takes, type SupportedKind } from '../facilitators/facilitator-client.ts'
import type { OpenFacilitators } from '../facilitators/open-facilitators.ts'
import type { NetworkAccess } from '../offered-networks.ts'
import type { X402Terms } from '../scheme.ts'
import type { SettleableSvmNetwork } from './exact-svm.ts'
import { createSvmFacilitatorSettler } from './facilitator-settler.ts'
import { createOwnSettler } from './own-settler.ts'
import { RecentBlockhash } from './recent-blockhash.ts'
import { checkSvmNetwork, svmWarningsOf, type SvmCheck } from './svm-check.ts'
import type { SvmSettler } from './svm-settler.ts'

/** `facilitators` settle where there is no fee payer. */
export interface SvmNetworkSettings extends OpenFacilitators, NetworkAccess {
  /** The owner of the token account that is paid; empty when not set. */
  readonly payToSolana: string
  /** JSON-RPC endpoints by CAIP-2 id. */
  readonly svmRpcUrls: Readonly<Record<string, string>>
  /** In the operator’s order: offers name the first. */
  readonly feePayers: readonly SvmAccount[]
}

/** One Solana network: how payments are settled on it here, and what was last seen of it. */
export class OpenSvmNetwork {
  readonly network: SvmNetwork
  readonly #settings: SvmNetworkSettings
  readonly #chain: SvmChain | undefined
  readonly #recentBlockhash: RecentBlockhash | undefined
  readonly #losses: FeeLosses
  readonly #spent = new SpentFees()
  readonly #settler: SvmSettler
  /** The account of a facilitator that pays the fees. */
  #theirFeePayer: string | undefined
  /** What was seen last, where a fee payer of ours settles. */
  #check: SvmCheck | undefined
  #isWithdrawn = false

  constructor(network: SvmNetwork, settings: SvmNetworkSettings) {
    const { svmRpcUrls, caller, deadline, now } = settings
    const url = svmRpcUrls[network.id]
    const chain = url === undefined ? undefined : new SvmChain(url, caller, deadline)
    this.network = network
    this.#settings = settings
    this.#chain = chain
    this.#recentBlockhash = chain && new RecentBlockhash({ network, chain, now })
    this.#losses = new FeeLosses({ ...settings, network })
    this.#settler = this.#openSettler()
  }

  /** Whether a fee payer of ours settles. */
  get isOwn(): boolean {
    return this.#chain !== undefined && this.#settings.feePayers.length > 0
  }

  /** Whether a facilitator settles, and nobody here can ask the chain. */
  get isUnseen(): boolean {
    return this.#chain === undefined && this.#settings.facilitators.length > 0
  }

  /** Nobody could be paid: the payee has no token account. */
  get isWithdrawn(): boolean {
    return this.#isWithdrawn
  }

  /** The account that offers name; undefined until a facilitator has named one. */
  get feePayer(): string | undefined {
    return this.isOwn ? this.#settings.feePayers[0]?.address : this.#theirFeePayer
  }

  /** Names of the settings without which it cannot be offered. */
  get missing(): readonly string[] {
    const { names, feePayers, facilitators, payToSolana } = this.#settings
    return [
      ...(payToSolana === '' ? [names.payTo] : []),
      ...(facilitators.length > 0 || this.#chain !== undefined ? [] : [names.svmRpcUrl(this.network)]),
      ...(facilitators.length > 0 || feePayers.length > 0 ? [] : [names.feePayers]),
    ]
  }

  /** Undefined when a setting is missing. */
  settleable({ timeout, testnet }: X402Terms, feePayer: string): SettleableSvmNetwork | undefined {
    const { payToSolana: payTo, feePayers, now } = this.#settings
    const tokenAccount = tokenAccountOf(payTo, this.network.token.address)
    if (tokenAccount === undefined || this.missing.length > 0) return undefined
    return {
      network: this.network,
      payTo,
      timeoutSeconds: Math.floor(timeout / 1_000),
      testnet,
      feePayer,
      settler: this.#settler,
      tokenAccount,
      feePayers: this.isOwn ? feePayers.map(({ address }) => address) : undefined,
      recentBlockhash: this.#recentBlockhash,
      now,
    }
  }

  /** Takes the account that pays the fees from what the facilitators list. */
  noteFacilitators(kinds: readonly SupportedKind[], report: (line: string) => void): void {
    const { id, title } = this.network
    const listed = kinds.filter((kind) => takes(kind, exactOn(id)))
    const feePayer = listed.find((kind) => kind.feePayer !== undefined)?.feePayer
    if (feePayer !== undefined) this.#theirFeePayer = feePayer
    else if (listed.length > 0)
      report(`x402: ${title} (${id}) cannot be offered: the facilitator names no account that pays the fees`)
  }

  /** Looks at the token account of the payee, and at the money of our fee payers. */
  async inspect(report: (line: string) => void): Promise<void> {
    if (this.#chain === undefined) return
    const { payToSolana, feePayers } = this.#settings
    const payers = this.isOwn ? feePayers.map(({ address }) => address) : []
    const check = await checkSvmNetwork(this.#chain, this.network, payToSolana, payers)
    if (this.isOwn) this.#check = check
    svmWarningsOf(this.network, check).forEach(report)
    // A node that does not answer proves nothing.
    if (check.account.kind !== 'unreachable') this.#isWithdrawn = check.account.kind !== 'ready'
  }

  /** Undefined where facilitators settle, and before the first inspection. */
  async health(): Promise<NetworkHealth | undefined> {
    const check = this.#check
    if (check === undefined) return undefined
    const { lost, isClosed } = await this.#losses.lastHour()
    const unpaid = this.#isWithdrawn ? 'the payee has no token account' : undefined
    return {
      network: this.network,
      balances: new Map(
        check.feePayers.flatMap(({ address, balance }) =>
          balance === undefined ? [] : [[address, weiOf(balance)] as const],
        ),
      ),
      // A payment that is in no block is followed by the request that has sent it.
      unmined: { count: 0, age: 0 },
      totals: this.#spent.totals,
      reverts: this.#losses.failed,
      gasLost: weiOf(lost),
      isNodeAway: check.account.kind === 'unreachable',
      trouble: isClosed ? 'too many transactions have failed lately' : unpaid,
    }
  }

  #openSettler(): SvmSettler {
    const chain = this.#chain
    const settings = this.#settings
    const theirs = createSvmFacilitatorSettler({ ...settings, networkId: this.network.id, chain })
    if (chain === undefined || !this.isOwn) return theirs
    const ours = createOwnSettler({
      ...settings,
      network: this.network,
      chain,
      feePayers: new Map(settings.feePayers.map((feePayer) => [feePayer.address, feePayer])),
      payers: new PayerLimits<string>((account) => balanceOf(chain, account), settings),
      losses: this.#losses,
      spent: this.#spent,
    })
    // What was sent to a facilitator is finished by that facilitator, which alone knows its state.
    return {
      ...ours,
      resolve: (record) => (record.dispatch?.kind === 'facilitator' ? theirs : ours).resolve(record),
    }
  }
}

async function balanceOf(chain: SvmChain, account: string): Promise<bigint | undefined> {
  const answer = await chain.tokenAccount(account)
  if (answer.kind !== 'result') return undefined
  return answer.result?.amount ?? 0n
}
