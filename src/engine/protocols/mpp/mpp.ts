import type { Entry, Receipt } from '../../ledger/entry.ts'
import { Chain } from '../evm/chain.ts'
import { createRpc, type Caller } from '../evm/rpc.ts'
import type { Protocol, Settlement } from '../protocol.ts'
import { createTokens } from '../tokens.ts'
import { createChallenge, METHOD, realmOf } from './challenge.ts'
import { findCredential } from './credential.ts'
import { ChargePayment, networkOf, type Desk } from './payment.ts'
import { FAILED, resume } from './settlement.ts'
import type { Validator } from './validator.ts'

export interface MppSettings {
  readonly baseUrl: string
  readonly chainId: number
  /** TIP-20 token contract. */
  readonly currency: string
  readonly recipient: string
  /** The first binds challenges, all are known. */
  readonly secretKeys: readonly [string, ...string[]]
  readonly rpcUrl: string
  readonly validator: Validator
  readonly caller: Caller
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly random: (bytes: number) => Uint8Array
}

/** A transaction lives for 25 s, of which the settlement takes its part. */
const LONGEST_WORK_MS = 15_000

/** MPP on the Tempo method, intent charge, in pull mode: the client signs a transfer, which is broadcast here. */
export function createMpp(settings: MppSettings): Protocol {
  const { baseUrl, chainId, currency, recipient, secretKeys, rpcUrl, validator, caller, now, sleep, random } =
    settings
  const terms = { realm: realmOf(baseUrl), chainId, currency, recipient }
  const chain = new Chain(createRpc(rpcUrl, caller))
  const nextNonce = createTokens(random)
  const desk: Desk = { terms, secretKeys, validator, chain, now, sleep }
  const protocol: Protocol = {
    name: 'mpp',
    longestWork: LONGEST_WORK_MS,
    detect: ({ authorization }) => {
      const found = findCredential(authorization)
      return found.kind === 'credential'
        ? { kind: 'payment', payment: new ChargePayment(protocol, found.credential, desk) }
        : found
    },
    challenge: (route) => {
      const { price } = route.operation
      return price === undefined
        ? undefined
        : createChallenge(route, price, { terms, secretKey: secretKeys[0], now, nextNonce })
    },
    resolve: (entry) => resolve(desk, entry),
    receiptHeaders: (entry, receipt, status) =>
      status >= 200 && status < 300 ? { 'Payment-Receipt': encodeReceipt(entry, receipt) } : {},
    failureHeaders: () => ({}),
  }
  return protocol
}

async function resolve(desk: Desk, entry: Entry): Promise<Settlement> {
  const network = networkOf(desk.terms.chainId)
  const { dispatch, asset, payer, payee, amount, validBefore } = entry
  if (entry.network !== network)
    return { kind: 'unknown', detail: 'the network of this payment is not configured here any more' }
  // Nothing is sent before it is recorded.
  if (dispatch?.kind !== 'payer') return FAILED
  const transfer = { token: asset, from: payer, to: payee, amount: BigInt(amount) }
  return resume(desk, { network, transaction: dispatch, transfer, validBefore })
}

/** Tempo method, “Receipt Generation”. Its time is that of the settlement: given again, it is the same receipt. */
function encodeReceipt({ settledAt, updatedAt }: Entry, { transaction }: Receipt): string {
  const timestamp = new Date(settledAt ?? updatedAt).toISOString()
  const receipt = { method: METHOD, reference: transaction, status: 'success', timestamp }
  return Buffer.from(JSON.stringify(receipt), 'utf8').toString('base64url')
}
