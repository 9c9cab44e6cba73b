import { isAddress, toChecksum, type Address } from '../../base/address.ts'
import type { Every } from '../../base/every.ts'
import type { Limits, Network } from '../../base/networks.ts'
import { onceResolved } from '../../base/once.ts'
import type { RpcTransport } from '../../base/runtime.ts'
import { Chain } from '../../chains/evm/chain.ts'
import { CANNOT_LOOK, lookAtBlocks } from '../../chains/evm/finality.ts'
import { addressOfKey } from '../../chains/evm/signature.ts'
import type { NetworkHealth } from '../../payment/network-health.ts'
import type { Survey } from '../facilitators/facilitator-client.ts'
import type { OpenFacilitators } from '../facilitators/open-facilitators.ts'
import { PermitAccounts } from '../facilitators/permit-accounts.ts'
import type { Inspection, NetworkAccess } from '../offered-networks.ts'
import type { X402Terms } from '../scheme.ts'
import type { FacilitatedSettlement, OwnSettlement, SettleableNetwork } from './exact.ts'
import { createFacilitatorSettler } from './facilitator-settler.ts'
import { checkNetwork, warningsOf } from './network-check.ts'
import type { ChainReader } from './onchain-status.ts'
import { createLocalSettler } from './own-settler.ts'
import { openContext, type SettlementContext } from './settlement-context.ts'
import type { Settler } from './settler.ts'
import { SharedAccounts } from './shared-accounts.ts'

/** `facilitators` settle where there is no signer. */
export interface NetworkSettings extends OpenFacilitators, NetworkAccess {
  readonly payTo: string
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly signerKeys: readonly `0x${string}`[]
  /** Name of this process in leases. */
  readonly owner: string
  readonly every: Every
}

/** Node and gas accounts of a network. */
type OwnContext = Omit<SettlementContext, 'limits'>

/** A settler that goes as far as the catalog allows; a new revision may change that. */
type Limited = (limits: Limits) => Settler

/** One EVM network: how payments are settled on it here, and what was last seen of it. */
export class OpenEvmNetwork {
  readonly network: Network
  /** Node and gas accounts, opened at the first use; undefined when this process has none. */
  readonly ownContext: (() => Promise<OwnContext>) | undefined
  readonly #settings: NetworkSettings
  readonly #url: string | undefined
  /** Of our signers, in the operator’s order. */
  readonly #accounts: readonly Address[]
  readonly #shared: SharedAccounts
  readonly #permitAccounts: PermitAccounts
  readonly #settler: () => Promise<Limited>
  /** Once `ownContext` was opened. */
  #opened: OwnContext | undefined
  /** Whether the last request to the node had no answer. */
  #isNodeAway = false
  #isWithdrawn = false
  #isWithoutExact = false

  constructor(network: Network, settings: NetworkSettings) {
    const accounts = [...new Set(settings.signerKeys.flatMap((key) => addressOfKey(key) ?? []))]
    const url = settings.rpcUrls[network.chainId]
    this.network = network
    this.#settings = settings
    this.#url = url
    this.#accounts = accounts
    this.#shared = new SharedAccounts(network.id, accounts, settings)
    this.#permitAccounts = new PermitAccounts(network.id)
    this.ownContext =
      url === undefined || settings.signerKeys.length === 0
        ? undefined
        : onceResolved(() => this.#openContext(url))
    this.#settler = onceResolved(() => this.#openSettler())
  }

  /** Whether facilitators settle. */
  get isFacilitated(): boolean {
    return this.ownContext === undefined && this.#settings.facilitators.length > 0
  }

  /** Whether facilitators settle, and nobody here can ask the chain. */
  get isUnseen(): boolean {
    return this.isFacilitated && this.#url === undefined
  }

  /** Its token is another one than the offers name, or nobody settles there. */
  get isWithdrawn(): boolean {
    return this.#isWithdrawn
  }

  /** Facilitators settle there by upto alone. */
  get isWithoutExact(): boolean {
    return this.#isWithoutExact
  }

  /** Names of the settings without which it cannot be offered. */
  get missing(): readonly string[] {
    const { facilitators, signerKeys, names } = this.#settings
    if (facilitators.length > 0) return []
    return [
      ...(this.#url === undefined ? [names.rpcUrl(this.network.chainId)] : []),
      ...(signerKeys.length === 0 ? [names.signerKeys] : []),
    ]
  }

  settleable({ timeout, limits: changed, testnet }: X402Terms): SettleableNetwork {
    const { payTo } = this.#settings
    const limits = changed[this.network.id] ?? this.network.limits
    return {
      network: this.network,
      payTo: isAddress(payTo) ? toChecksum(payTo) : payTo,
      timeoutSeconds: Math.floor(timeout / 1000),
      testnet,
      settler: onceResolved(async () => (await this.#settler())(limits)),
      own: this.#own(limits),
      theirs: this.#theirs(limits),
      lookAtBlocks: async (blocks) => {
        const reader = this.#reader(limits)
        return reader === undefined ? CANNOT_LOOK : lookAtBlocks(reader.chain, limits.confirmations, blocks)
      },
    }
  }

  /** Looks at the node, the token and the gas accounts, where signers of ours settle. */
  async inspect(report: (line: string) => void): Promise<Inspection> {
    if (this.ownContext === undefined) return 'as before'
    const check = await checkNetwork(this.network, this.#url ?? '', this.#accounts, this.#settings.caller)
    warningsOf(this.network, check).forEach(report)
    // A node that does not answer proves nothing.
    return check.token.kind === 'unreachable' ? 'as before' : this.#withdraw(check.token.kind === 'differs')
  }

  /** Takes what the facilitators say that they settle. */
  noteFacilitators(survey: Survey, { schemes }: X402Terms, report: (line: string) => void): Inspection {
    const { title, id, chainId } = this.network
    const { problems, kinds, unsupported, withoutExact } = survey
    const isUnanswered = problems.length > 0 && kinds.length === 0
    const accounts = isUnanswered ? 'as before' : this.#permitAccounts.note(kinds)
    const { rpcUrl, signerKeys } = this.#settings.names
    if (schemes.includes('upto') && this.#permitAccounts.offered === undefined)
      report(
        `x402: ${title} (${id}) does not offer upto: no facilitator lists an account for it; an own account needs ${rpcUrl(chainId)} and ${signerKeys}`,
      )
    const isWithoutExact = withoutExact.includes(id)
    if (schemes.includes('exact') && isWithoutExact)
      report(`x402: ${title} (${id}) is paid by upto alone: no facilitator lists exact there`)
    const exact = isWithoutExact === this.#isWithoutExact ? 'as before' : 'changed'
    this.#isWithoutExact = isWithoutExact
    const changes = [this.#withdraw(unsupported.includes(id)), exact, accounts]
    return changes.includes('changed') ? 'changed' : 'as before'
  }

  /** Undefined before the first payment that this process settles. */
  async health(): Promise<NetworkHealth | undefined> {
    if (this.#opened === undefined) return undefined
    const { signers, losses } = this.#opened
    const { isClosed, reverts } = losses.totals
    const stuck = signers.ready.length === 0 ? 'the network does not include our transactions' : undefined
    const { balances, unmined, totals } = signers
    return {
      network: this.network,
      balances,
      unmined,
      totals,
      reverts,
      gasLost: await losses.lastHour(),
      isNodeAway: this.#isNodeAway,
      trouble: isClosed ? 'too many transactions have failed lately' : stuck,
    }
  }

  #withdraw(isWithdrawn: boolean): Inspection {
    if (this.#isWithdrawn === isWithdrawn) return 'as before'
    this.#isWithdrawn = isWithdrawn
    return 'changed'
  }

  async #openContext(url: string): Promise<OwnContext> {
    const { caller, deadline } = this.#settings
    const watched: RpcTransport = async (node, request) => {
      try {
        const response = await caller(node, request)
        this.#isNodeAway = false
        return response
      } catch (fault) {
        this.#isNodeAway = true
        throw fault
      }
    }
    const chain = new Chain(url, watched, deadline)
    this.#opened = await openContext({ ...this.#settings, network: this.network, chain })
    return this.#opened
  }

  /**
   * Our own signer if there is one, opened at the first payment. A settlement that was sent to a facilitator is finished by
   * that facilitator, which alone knows its state.
   */
  async #openSettler(): Promise<Limited> {
    const { facilitators, now, sleep, listings } = this.#settings
    const { id: networkId } = this.network
    const theirs: Limited = (limits) =>
      createFacilitatorSettler({
        networkId,
        facilitators,
        reader: this.#reader(limits),
        now,
        sleep,
        listings,
      })
    const context = await this.ownContext?.()
    if (context === undefined) return theirs
    return (limits) => {
      const [ours, others] = [createLocalSettler({ ...context, limits }), theirs(limits)]
      return {
        ...ours,
        resolve: (expected, dispatch, validBefore, since) =>
          (dispatch?.kind === 'facilitator' && facilitators.length > 0 ? others : ours).resolve(
            expected,
            dispatch,
            validBefore,
            since,
          ),
      }
    }
  }

  #own(limits: Limits): OwnSettlement | undefined {
    const { ownContext } = this
    return (
      ownContext && {
        accounts: this.#accounts,
        shared: this.#shared,
        now: this.#settings.ledger.now,
        context: async () => ({ ...(await ownContext()), limits }),
      }
    )
  }

  #theirs(limits: Limits): FacilitatedSettlement | undefined {
    if (this.#settings.facilitators.length === 0) return undefined
    const { id: networkId } = this.network
    return { ...this.#settings, networkId, accounts: this.#permitAccounts, reader: this.#reader(limits) }
  }

  /** The node that shows what was settled. */
  #reader(limits: Limits): ChainReader | undefined {
    const { caller, deadline } = this.#settings
    if (this.#url === undefined) return undefined
    return { networkId: this.network.id, chain: new Chain(this.#url, caller, deadline), limits }
  }
}
