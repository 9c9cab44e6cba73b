import type { SvmNetwork } from '../../base/networks.ts'
import { tokenAccountOf } from '../../base/token-account.ts'
import { formatSol } from '../../chains/svm/fee-losses.ts'
import type { SvmChain } from '../../chains/svm/svm-chain.ts'

/** A Solana network as its own node describes it. */
export interface SvmCheck {
  readonly account: AccountCheck
  /** Our fee payers and their lamports; undefined when the node does not say. */
  readonly feePayers: readonly { readonly address: string; readonly balance: bigint | undefined }[]
}

/** The token account that is paid. */
export type AccountCheck =
  | { readonly kind: 'ready'; readonly address: string }
  /** Payments to it would fail. `remedy`: what the operator has to do. */
  | { readonly kind: 'missing' | 'differs'; readonly remedy: string }
  | { readonly kind: 'unreachable' }

/** The fee of a payment: two signatures, and a usual priority fee. */
const USUAL_FEE = 10_001n
/** Below this number of payments, more is to be sent. */
const FEW = 100n

/** Asks a node for everything that settlement on its network depends on. Never rejects. */
export async function checkSvmNetwork(
  chain: SvmChain,
  network: SvmNetwork,
  payTo: string,
  feePayers: readonly string[],
): Promise<SvmCheck> {
  const [account, ...balances] = await Promise.all([
    checkAccount(chain, network, payTo),
    ...Array.from(new Set(feePayers), async (address) => {
      const answer = await chain.balance(address)
      return { address, balance: answer.kind === 'result' ? answer.result : undefined }
    }),
  ])
  return { account, feePayers: balances }
}

async function checkAccount(chain: SvmChain, network: SvmNetwork, payTo: string): Promise<AccountCheck> {
  const { id, title, token } = network
  const address = tokenAccountOf(payTo, token.address)
  if (address === undefined)
    return { kind: 'differs', remedy: `${payTo} is no address of Solana: name the wallet that is paid` }
  const [genesis, account] = await Promise.all([chain.genesisHash(), chain.tokenAccount(address)])
  // The id of a network is the start of its genesis hash.
  if (genesis.kind === 'result' && !genesis.result.startsWith(id.slice('solana:'.length)))
    return { kind: 'differs', remedy: `its RPC endpoint leads to another network than ${title}` }
  if (account.kind !== 'result') return { kind: 'unreachable' }
  if (account.result === null)
    return {
      kind: 'missing',
      remedy: `${payTo} has no token account for ${token.symbol}; create it once: spl-token create-account ${token.address} --owner ${payTo} --fee-payer <your key file>`,
    }
  if (account.result.mint !== token.address || account.result.owner !== payTo)
    return { kind: 'differs', remedy: `the token account ${address} does not belong to ${payTo}` }
  return { kind: 'ready', address }
}

/** How many payments a balance of lamports pays the fees of. */
export function paymentsFrom(balance: bigint): bigint {
  return balance / USUAL_FEE
}

export function isFew(payments: bigint): boolean {
  return payments < FEW
}

/** What an operator should know of a network, one line each. */
export function svmWarningsOf({ title, id, coin }: SvmNetwork, { account, feePayers }: SvmCheck): string[] {
  const name = `x402: ${title} (${id})`
  return [
    ...(account.kind === 'missing' || account.kind === 'differs'
      ? [`${name} cannot be offered: ${account.remedy}`]
      : []),
    ...(account.kind === 'unreachable' ? [`${name}: the RPC endpoint does not answer`] : []),
    ...feePayers.flatMap(({ address, balance }) =>
      balance === undefined || !isFew(paymentsFrom(balance))
        ? []
        : [
            `${name}: fee payer ${address} has ${formatSol(balance)} ${coin}, for ${paymentsFrom(balance)} payments: send it more`,
          ],
    ),
  ]
}
