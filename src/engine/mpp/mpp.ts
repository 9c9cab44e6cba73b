import { MPP_LONGEST_WORK_MS } from '../base/money-times.ts'
import { createHash } from 'node:crypto'
import { toChecksum } from '../base/address.ts'
import type { Payments } from '../catalog/catalog.ts'
import type { Chain } from '../chains/evm/chain.ts'
import { evmPayerKey } from '../chains/evm/payer-key.ts'
import { CANNOT_LOOK, lookAtBlocks } from '../chains/evm/finality.ts'
import type { RpcTransport } from '../base/runtime.ts'
import type { Clock } from '../base/poll.ts'
import type { Refusal } from '../base/errors.ts'
import { isJsonObject, parseJson, type JsonObject } from '../base/json.ts'
import type { PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import { isLoopback } from '../base/loopback.ts'
import { createTokens } from '../payment/random-token.ts'
import { fixedPrice, otherArguments } from '../payment/call-price.ts'
import { SETTLEMENT_FAILED, type Settlement } from '../payment/settlement.ts'
import type { Detection, Payment } from '../payment/payment.ts'
import type { Protocol, ToolBinding } from '../payment/protocol.ts'
import type { SettingNames } from '../payment/setting-names.ts'
import {
  createChallenge,
  INTENT,
  isIssued,
  METHOD,
  realmOf,
  requestAmount,
  requestOf,
  type Terms,
} from './mpp-challenge.ts'
import { findCredential, readCredential, type Credential, type FoundCredential } from './credential.ts'
import { PendingTransfers } from './pending-transfers.ts'
import {
  broadcast,
  findReceipt,
  resume,
  send,
  openTempoChain,
  simulateTransfer,
  tryTransaction,
  UNAVAILABLE,
  type PayerTransfer,
} from './payer-transfer.ts'
import { readUsualTransfer } from './usual-transfer.ts'
import { Validator, type Answer, type SignedTransfer } from './transfer-validator.ts'

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

/** What it takes to check a payment and to carry it out. */
interface PaymentContext extends Clock {
  readonly terms: Terms
  /** The first binds challenges, all are known. */
  readonly secretKeys: readonly string[]
  readonly validator: Validator
  readonly chain: Chain
  readonly pending: PendingTransfers
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

/** One signed transfer on Tempo, made out to one challenge. */
function chargePayment(
  protocol: Protocol,
  { challenge, transaction, token: credential }: Credential,
  context: PaymentContext,
): Payment {
  const { terms, secretKeys, validator, chain, pending, now } = context
  const [network, asset, payee] = [
    networkOf(terms.chainId),
    toChecksum(terms.currency),
    toChecksum(terms.recipient),
  ]
  const amount = amountOf(challenge.request)
  let known: Answer | undefined
  const read = async (): Promise<Answer> => {
    if (known !== undefined) return known
    const demand = { ...terms, amount: amount.toString(), challengeId: challenge.id }
    const usual = readUsualTransfer(transaction, demand)
    const answer: Answer =
      usual === undefined
        ? await validator.ask({ kind: 'read', transaction, demand })
        : { kind: 'transfer', transfer: usual }
    if (answer.kind === 'transfer') known = answer
    return answer
  }
  const judge = async ({ trial }: SignedTransfer): Promise<Refusal | undefined> => {
    if (trial !== undefined) return tryTransaction(chain, trial)
    const said = await validator.ask({ kind: 'simulate', token: credential })
    return said.kind === 'fit' ? undefined : refusalOf(said)
  }
  let passedAt = -Infinity
  const simulate = async (): Promise<Refusal | undefined> => {
    const at = now()
    const reading = await read()
    if (reading.kind !== 'transfer') return refusalOf(reading)
    const { payer, call } = reading.transfer
    const [whole, alone] = await Promise.all([
      judge(reading.transfer),
      call === undefined ? undefined : simulateTransfer(chain, { from: payer, to: asset, data: call }),
    ])
    const refusal = whole ?? alone
    if (refusal === undefined) passedAt = at
    return refusal
  }
  let reserved: SignedTransfer | undefined
  const reserve = async (): Promise<Refusal | undefined> => {
    const reading = await read()
    if (reading.kind !== 'transfer') return refusalOf(reading)
    const { transfer } = reading
    if (reserved !== undefined) return undefined
    const refusal = await pending.reserve({ ...transfer, token: asset, amount })
    if (refusal === undefined) reserved = transfer
    return refusal
  }
  return {
    protocol,
    scheme: INTENT,
    key: `mpp:${challenge.id}`,
    network,
    asset,
    payee,
    // A second transaction that was signed for the same challenge is another payment.
    authorizationHash: createHash('sha256').update(transaction).digest('base64url'),
    authorizedAmount: amount,
    // The transaction moves what was signed, neither more nor less.
    amountFor: () => amount,
    token: undefined,
    identifier: undefined,
    copies: SPENT,
    check: ({ endpoint, price, scope, contentDigest }, time) => {
      if (!isIssued(challenge, secretKeys))
        return refuse('invalid_challenge', 'the challenge was not issued here, or has been changed')
      if (!(Date.parse(challenge.expires ?? '') > time))
        return refuse('payment_expired', 'the challenge has expired')
      if (endpoint.operation.meter !== undefined)
        return refuse('invalid_challenge', 'what this call costs is known after the work: pay by x402')
      if (challenge.realm !== terms.realm || challenge.request !== requestOf(terms, price))
        return refuse(
          'invalid_challenge',
          otherArguments(endpoint, amount.toString(), requestAmount(price)) ?? OTHER_PRICE,
        )
      if (scopeOf(challenge.opaque) !== scope)
        return refuse('invalid_challenge', 'the challenge was made for another path or other parameters')
      if (challenge.digest !== undefined && challenge.digest !== contentDigest)
        return refuse('invalid_challenge', 'the challenge was made for another body')
      return undefined
    },
    verify: async () => {
      const reading = await read()
      if (reading.kind !== 'transfer') return { kind: 'refused', refusal: refusalOf(reading) }
      const { payer, validBefore } = reading.transfer
      if (validBefore * 1000 > Date.parse(challenge.expires ?? '')) {
        const detail = 'the transaction is valid for longer than its challenge'
        return { kind: 'refused', refusal: refuse('verification_failed', detail) }
      }
      // Accounts of Tempo are named by their keys.
      return { kind: 'verified', payer, account: 'key', validBefore: validBefore * 1000 }
    },
    // A transaction that cannot be carried out beside its payer’s others is refused although each would pass alone.
    simulate: async () => {
      const [unfit, refusal] = await Promise.all([reserve(), simulate()])
      return refusal ?? unfit
    },
    release: () => {
      if (reserved !== undefined) pending.release(reserved)
      reserved = undefined
    },
    // Simulates again after long work, since the payer’s funds may have moved.
    settle: async (_amount, journal) => {
      const reading = await read()
      if (reading.kind !== 'transfer') return { kind: 'failed', refusal: refusalOf(reading) }
      const { raw, hash, payer, validBefore } = reading.transfer
      const transfer: PayerTransfer = {
        network,
        transaction: { kind: 'payer', hash, raw },
        expected: { token: asset, from: payer, to: payee, amount },
        validBefore: validBefore * 1000,
      }
      const refusal = now() - passedAt < SIMULATED_MS ? undefined : await simulate()
      if (refusal?.code === 'chain_unavailable') return { kind: 'failed', refusal }
      // Its payer may have broadcast it.
      if (refusal !== undefined) return (await findReceipt(context, transfer)) ?? { kind: 'failed', refusal }
      await journal.record(transfer.transaction)
      return send(context, transfer)
    },
  }
}

/** How long a simulation before the work counts: the payer pays for a transaction that fails, and is not answered. */
const SIMULATED_MS = 500

/** CAIP-2. */
function networkOf(chainId: number): string {
  return `eip155:${chainId}`
}

/** Charge intent, “Replay Protection”: an id is good for one answer. */
const SPENT: Refusal = {
  code: 'invalid_challenge',
  detail: 'this challenge has been paid, or its payment is at work',
}

const OTHER_PRICE = 'the challenge asks for another price than this path has'

/** The amount of the echoed request; a request without one is not ours, and fails its binding. */
function amountOf(request: string): bigint {
  const value = parseJson(Buffer.from(request, 'base64url').toString('utf8'))
  const amount = isJsonObject(value) ? value['amount'] : undefined
  return typeof amount === 'string' && /^\d{1,38}$/.test(amount) ? BigInt(amount) : 0n
}

/** What the echoed challenge says that it is for; `isIssued` verifies that. */
function scopeOf(opaque = ''): unknown {
  const value = parseJson(Buffer.from(opaque, 'base64url').toString('utf8'))
  return isJsonObject(value) ? value['_mppx_scope'] : undefined
}

function refusalOf(answer: Answer): Refusal {
  return answer.kind === 'refused' ? answer.refusal : UNAVAILABLE
}

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { code, detail }
}
