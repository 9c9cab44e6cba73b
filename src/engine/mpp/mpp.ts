import { MPP_LONGEST_WORK_MS } from '../base/money-times.ts'
import { toChecksum } from '../base/address.ts'
import type { Payments } from '../catalog/catalog.ts'
import type { Chain } from '../chains/evm/chain.ts'
import { evmPayerKey } from '../chains/evm/payer-key.ts'
import { CANNOT_LOOK, lookAtBlocks } from '../chains/evm/finality.ts'
import type { RpcTransport } from '../base/runtime.ts'
import type { Clock } from '../base/poll.ts'
import type { JsonObject } from '../base/json.ts'
import type { PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import { isLoopback } from '../base/loopback.ts'
import { createTokens } from '../payment/random-token.ts'
import { fixedPrice } from '../payment/call-price.ts'
import { SETTLEMENT_FAILED, type Settlement } from '../payment/settlement.ts'
import type { Detection } from '../payment/payment.ts'
import type { Protocol, ToolBinding } from '../payment/protocol.ts'
import type { SettingNames } from '../payment/setting-names.ts'
import { chargePayment, networkOf, type PaymentContext } from './charge-payment.ts'
import { createChallenge, INTENT, METHOD, realmOf } from './mpp-challenge.ts'
import { findCredential, readCredential, type FoundCredential } from './credential.ts'
import { PendingTransfers } from './pending-transfers.ts'
import { broadcast, resume, openTempoChain } from './payer-transfer.ts'
import { Validator } from './transfer-validator.ts'

interface MppSettings extends Clock {
  readonly names: SettingNames
  readonly baseUrl: string
  readonly recipient: string | undefined
  /** The first binds challenges, all are known. */
  readonly secretKeys: readonly string[]
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly caller: RpcTransport
  readonly random: (bytes: number) => Uint8Array
  /** Receives errors of payments that are answered anyway. */
  readonly report: (fault: unknown) => void
}

/** The MPP networks of all revisions of the catalog: a new revision keeps the thread and the payments of the old one. */
export interface MppNetworks {
  /** Undefined while something is missing. */
  of(mpp: MppTerms): Protocol | undefined
  /** Required settings that are missing. */
  missing(mpp: MppTerms): readonly string[]
  close(): Promise<void>
}

type MppTerms = NonNullable<Payments['mpp']>

/** Nothing is asked of the network, and nothing heavy is loaded, before the first credential. */
export function openMppNetworks(settings: MppSettings): MppNetworks {
  const { names, baseUrl, recipient, secretKeys, rpcUrls, caller, random, report, now, sleep } = settings
  const realm = realmOf(baseUrl)
  const validator = new Validator({ realm, secretKeys, rpcUrls, report })
  const networks = new Map<number, { readonly chain: Chain; readonly pending: PendingTransfers }>()
  const networkAt = (chainId: number, rpcUrl: string) => {
    const known = networks.get(chainId)
    if (known !== undefined) return known
    const chain = openTempoChain(rpcUrl, caller)
    const network = { chain, pending: new PendingTransfers(chain, { now, sleep }) }
    networks.set(chainId, network)
    return network
  }
  const missing = ({ chain }: MppTerms): string[] => [
    ...(recipient === undefined ? [names.mppRecipient] : []),
    ...(secretKeys.length === 0 ? [names.mppSecretKeys] : []),
    ...(rpcUrls[chain] === undefined ? [names.rpcUrl(chain)] : []),
    ...(isPrivate(baseUrl) ? [] : [`${names.baseUrl} with https`]),
  ]
  return {
    of: (mpp) => {
      const { chain: chainId, currency, testnet } = mpp
      const rpcUrl = rpcUrls[chainId]
      if (missing(mpp).length > 0 || recipient === undefined || rpcUrl === undefined) return undefined
      const terms = { realm, chainId, currency, recipient, testnet }
      const network = networkAt(chainId, rpcUrl)
      return createMpp({ terms, secretKeys, validator, ...network, now, sleep }, random)
    },
    missing,
    close: () => validator.close(),
  }
}

/** Payment authentication scheme, “Transport Security”: no challenge goes over a wire others can read. */
function isPrivate(baseUrl: string): boolean {
  return baseUrl.startsWith('https://') || isLoopback(baseUrl)
}

/** MPP on the Tempo method, intent charge, in pull mode: the client signs a transfer, which is broadcast here. */
export function createMpp(context: PaymentContext, random: (bytes: number) => Uint8Array): Protocol {
  const { terms, secretKeys, now } = context
  const [secretKey] = secretKeys
  const nextNonce = createTokens(random)
  const take = (found: FoundCredential): Detection =>
    found.kind === 'credential'
      ? { kind: 'payment', payment: chargePayment(protocol, found.credential, context) }
      : found
  const protocol: Protocol = {
    name: 'mpp',
    longestWork: MPP_LONGEST_WORK_MS,
    payerKeys: (text) => [evmPayerKey(text)].filter((key) => key !== undefined),
    detect: ({ authorization }) => take(findCredential(authorization)),
    tools: toolsOf(take),
    challenge: (endpoint, amount = fixedPrice(endpoint)) =>
      // A transaction moves exactly what was signed, which a metered price does not fit.
      amount === undefined || secretKey === undefined || endpoint.operation.meter !== undefined
        ? undefined
        : createChallenge(endpoint, amount, { terms, secretKey, now, nextNonce }),
    resolve: (record) => resolve(context, record),
    resend: async ({ dispatch, network, validBefore }) => {
      if (dispatch?.kind === 'payer' && network === networkOf(terms.chainId) && now() < validBefore)
        await broadcast(context, dispatch)
    },
    lookAtBlocks: async ({ network }, blocks) =>
      network === networkOf(terms.chainId) ? lookAtBlocks(context.chain, 1, blocks) : CANNOT_LOOK,
    receiptHeaders: (record, receipt, status) =>
      status >= 200 && status < 300 ? { 'Payment-Receipt': encode(receiptOf(record, receipt)) } : {},
    failureHeaders: () => ({}),
  }
  return protocol
}

/** The member in which clients send a credential. */
const CREDENTIAL = 'org.paymentauth/credential'

function toolsOf(take: (found: FoundCredential) => Detection): ToolBinding {
  return {
    capabilities: { experimental: { payment: { methods: { [METHOD]: { intents: [INTENT] } } } } },
    detect: ({ [CREDENTIAL]: sent }) => (sent === undefined ? { kind: 'none' } : take(readCredential(sent))),
    receipt: (record, receipt, status) => {
      if (status < 200 || status >= 300) return {}
      // Unlike in HTTP, the receipt names its challenge.
      const challengeId = record.key.slice(record.key.indexOf(':') + 1)
      return { 'org.paymentauth/receipt': { ...receiptOf(record, receipt), challengeId } }
    },
    failure: () => ({}),
  }
}

async function resolve(context: PaymentContext, record: PaymentRecord): Promise<Settlement> {
  const network = networkOf(context.terms.chainId)
  const { dispatch, asset, payer, payee, amount, validBefore } = record
  if (record.network !== network)
    return { kind: 'unknown', detail: 'the network of this payment is not configured here any more' }
  // Nothing is sent before it is recorded.
  if (dispatch?.kind !== 'payer') return SETTLEMENT_FAILED
  const [token, from, to] = [toChecksum(asset), toChecksum(payer), toChecksum(payee)]
  const expected = { token, from, to, amount: BigInt(amount) }
  return resume(context, { network, transaction: dispatch, expected, validBefore })
}

/** Tempo method, “Receipt Generation”. Its time is that of the settlement: given again, it is the same receipt. */
function receiptOf({ settledAt, updatedAt }: PaymentRecord, { transaction }: Receipt): JsonObject {
  const timestamp = new Date(settledAt ?? updatedAt).toISOString()
  return { method: METHOD, reference: transaction, status: 'success', timestamp }
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64url')
}
