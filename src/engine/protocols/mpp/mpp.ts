import type { JsonObject } from '../../json.ts'
import type { Entry, Receipt } from '../../ledger/entry.ts'
import { Chain, createRpc, type Caller } from '../../chains/evm/rpc.ts'
import type { Detection, Protocol, Settlement } from '../protocol.ts'
import { createTokens } from '../tokens.ts'
import { createChallenge, INTENT, METHOD, realmOf } from './challenge.ts'
import { findCredential, readCredential, type Found } from './credential.ts'
import { bindTools, CREDENTIAL } from './tool-binding.ts'
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
  const take = (found: Found): Detection =>
    found.kind === 'credential'
      ? { kind: 'payment', payment: new ChargePayment(protocol, found.credential, desk) }
      : found
  const protocol: Protocol = {
    name: 'mpp',
    longestWork: LONGEST_WORK_MS,
    detect: ({ authorization }) => take(findCredential(authorization)),
    tools: bindTools(
      { name: METHOD, intent: INTENT },
      ({ [CREDENTIAL]: sent }) => (sent === undefined ? { kind: 'none' } : take(readCredential(sent))),
      receiptOf,
    ),
    challenge: (face) => {
      const { price } = face.operation
      return price === undefined
        ? undefined
        : createChallenge(face, price, { terms, secretKey: secretKeys[0], now, nextNonce })
    },
    resolve: (entry) => resolve(desk, entry),
    receiptHeaders: (entry, receipt, status) =>
      status >= 200 && status < 300 ? { 'Payment-Receipt': encode(receiptOf(entry, receipt)) } : {},
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
function receiptOf({ settledAt, updatedAt }: Entry, { transaction }: Receipt): JsonObject {
  const timestamp = new Date(settledAt ?? updatedAt).toISOString()
  return { method: METHOD, reference: transaction, status: 'success', timestamp }
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64url')
}
