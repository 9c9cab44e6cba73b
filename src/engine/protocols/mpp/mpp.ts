import { createHash } from 'node:crypto'
import { toChecksum } from '../../address.ts'
import type { Payments } from '../../catalog/catalog.ts'
import { Chain, createRpc, type Caller, type Clock } from '../../chains/evm/rpc.ts'
import type { Refusal } from '../../errors.ts'
import { isJsonObject, parseJson, type JsonObject } from '../../json.ts'
import type { PaymentRecord, Receipt } from '../../ledger/payment-record.ts'
import { isLoopback } from '../../origin.ts'
import {
  createTokens,
  SETTLEMENT_FAILED,
  type Detection,
  type Journal,
  type Offer,
  type Payment,
  type Protocol,
  type Settlement,
  type ToolBinding,
  type Verification,
} from '../protocol.ts'
import { createChallenge, INTENT, isIssued, METHOD, realmOf, requestOf, type Terms } from './challenge.ts'
import { findCredential, readCredential, type Credential, type FoundCredential } from './credential.ts'
import {
  checkNonce,
  findReceipt,
  resume,
  send,
  simulateTransfer,
  UNAVAILABLE,
  type Transfer,
} from './settlement.ts'
import { Validator, type Answer, type SignedTransfer } from './validator.ts'

export interface MppSettings extends Clock {
  readonly baseUrl: string
  readonly recipient: string | undefined
  /** The first binds challenges, all are known. */
  readonly secretKeys: readonly string[]
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly caller: Caller
  readonly random: (bytes: number) => Uint8Array
  /** Receives faults whose payment is answered all the same. */
  readonly report: (fault: unknown) => void
}

/** Where payments are taken by MPP, for every revision of the catalog: a new one keeps the thread of the old. */
export interface MppNetworks {
  /** Undefined while something is missing. */
  of(mpp: MppTerms): Protocol | undefined
  /** Variables without which nothing can be taken. */
  missing(mpp: MppTerms): readonly string[]
  close(): Promise<void>
}

type MppTerms = NonNullable<Payments['mpp']>

/** Nothing is asked of the network, and nothing heavy is loaded, before the first credential. */
export function openMppNetworks(settings: MppSettings): MppNetworks {
  const { baseUrl, recipient, secretKeys, rpcUrls, report } = settings
  const validator = new Validator({ realm: realmOf(baseUrl), secretKeys, rpcUrls, report })
  const missing = ({ chain }: MppTerms): string[] => [
    ...(recipient === undefined ? ['MPP_RECIPIENT'] : []),
    ...(secretKeys.length === 0 ? ['MPP_SECRET_KEY'] : []),
    ...(rpcUrls[chain] === undefined ? [`RPC_URL_${chain}`] : []),
    ...(isPrivate(baseUrl) ? [] : ['BASE_URL with https']),
  ]
  return {
    of: (mpp) => {
      const [secretKey, ...older] = secretKeys
      const rpcUrl = rpcUrls[mpp.chain]
      if (missing(mpp).length > 0 || recipient === undefined || secretKey === undefined) return undefined
      if (rpcUrl === undefined) return undefined
      const { chain: chainId, currency } = mpp
      const keys = [secretKey, ...older] as const
      return createMpp({ ...settings, chainId, currency, recipient, secretKeys: keys, rpcUrl, validator })
    },
    missing,
    close: () => validator.close(),
  }
}

/** Payment authentication scheme, “Transport Security”: no challenge goes over a wire others can read. */
function isPrivate(baseUrl: string): boolean {
  return baseUrl.startsWith('https://') || isLoopback(baseUrl)
}

export interface MppProtocolSettings extends Clock {
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
  readonly random: (bytes: number) => Uint8Array
}

/** What it takes to check a payment and to carry it out. */
interface PaymentContext extends Clock {
  readonly terms: Terms
  readonly secretKeys: readonly string[]
  readonly validator: Validator
  readonly chain: Chain
}

/** A transaction lives for 25 s, of which the settlement takes its part. */
const LONGEST_WORK_MS = 15_000

/** MPP on the Tempo method, intent charge, in pull mode: the client signs a transfer, which is broadcast here. */
export function createMpp(settings: MppProtocolSettings): Protocol {
  const { baseUrl, chainId, currency, recipient, secretKeys, rpcUrl, validator, caller, now, sleep, random } =
    settings
  const terms = { realm: realmOf(baseUrl), chainId, currency, recipient }
  const chain = new Chain(createRpc(rpcUrl, caller))
  const nextNonce = createTokens(random)
  const context: PaymentContext = { terms, secretKeys, validator, chain, now, sleep }
  const take = (found: FoundCredential): Detection =>
    found.kind === 'credential'
      ? { kind: 'payment', payment: new ChargePayment(protocol, found.credential, context) }
      : found
  const protocol: Protocol = {
    name: 'mpp',
    longestWork: LONGEST_WORK_MS,
    detect: ({ authorization }) => take(findCredential(authorization)),
    tools: toolsOf(take),
    challenge: (endpoint) => {
      const { price } = endpoint.operation
      return price === undefined
        ? undefined
        : createChallenge(endpoint, price, { terms, secretKey: secretKeys[0], now, nextNonce })
    },
    resolve: (entry) => resolve(context, entry),
    receiptHeaders: (entry, receipt, status) =>
      status >= 200 && status < 300 ? { 'Payment-Receipt': encode(receiptOf(entry, receipt)) } : {},
    failureHeaders: () => ({}),
  }
  return protocol
}

/** Where clients put what they have signed. */
const CREDENTIAL = 'org.paymentauth/credential'

function toolsOf(take: (found: FoundCredential) => Detection): ToolBinding {
  return {
    capabilities: { experimental: { payment: { methods: { [METHOD]: { intents: [INTENT] } } } } },
    detect: ({ [CREDENTIAL]: sent }) => (sent === undefined ? { kind: 'none' } : take(readCredential(sent))),
    receipt: (entry, receipt, status) => {
      if (status < 200 || status >= 300) return {}
      // Unlike in HTTP, the receipt names its challenge.
      const challengeId = entry.key.slice(entry.key.indexOf(':') + 1)
      return { 'org.paymentauth/receipt': { ...receiptOf(entry, receipt), challengeId } }
    },
    failure: () => ({}),
  }
}

async function resolve(context: PaymentContext, entry: PaymentRecord): Promise<Settlement> {
  const network = networkOf(context.terms.chainId)
  const { dispatch, asset, payer, payee, amount, validBefore } = entry
  if (entry.network !== network)
    return { kind: 'unknown', detail: 'the network of this payment is not configured here any more' }
  // Nothing is sent before it is recorded.
  if (dispatch?.kind !== 'payer') return SETTLEMENT_FAILED
  const expected = { token: asset, from: payer, to: payee, amount: BigInt(amount) }
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
class ChargePayment implements Payment {
  readonly protocol: Protocol
  readonly key: string
  readonly network: string
  readonly asset: string
  readonly payee: string
  readonly authorizationHash: string
  readonly amount: bigint
  readonly token = undefined
  readonly identifier = undefined
  readonly copies = SPENT
  readonly #credential: Credential
  readonly #context: PaymentContext
  #transfer: SignedTransfer | undefined

  constructor(protocol: Protocol, credential: Credential, context: PaymentContext) {
    const { challenge, transaction } = credential
    const { chainId, currency, recipient } = context.terms
    this.protocol = protocol
    this.#credential = credential
    this.#context = context
    this.key = `mpp:${challenge.id}`
    // A second transaction that was signed for the same challenge is another payment.
    this.authorizationHash = createHash('sha256').update(transaction).digest('base64url')
    this.network = networkOf(chainId)
    this.asset = toChecksum(currency)
    this.payee = toChecksum(recipient)
    this.amount = amountOf(challenge.request)
  }

  check({ price, scope }: Offer, now: number): Refusal | undefined {
    const { challenge } = this.#credential
    const { terms, secretKeys } = this.#context
    if (!isIssued(challenge, secretKeys))
      return refuse('invalid_challenge', 'the challenge was not issued here, or has been changed')
    if (!(Date.parse(challenge.expires ?? '') > now))
      return refuse('payment_expired', 'the challenge has expired')
    if (challenge.realm !== terms.realm || challenge.request !== requestOf(terms, price))
      return refuse('invalid_challenge', 'the challenge asks for another price than this path has')
    if (scopeOf(challenge.opaque) !== scope)
      return refuse('invalid_challenge', 'the challenge was made for another path or other parameters')
    return undefined
  }

  async verify(): Promise<Verification> {
    const reading = await this.#read()
    if (reading.kind !== 'transfer') return { kind: 'refused', refusal: refusalOf(reading) }
    const { payer, validBefore } = reading.transfer
    if (validBefore * 1000 > Date.parse(this.#credential.challenge.expires ?? '')) {
      const detail = 'the transaction is valid for longer than its challenge'
      return { kind: 'refused', refusal: refuse('verification_failed', detail) }
    }
    // Accounts of Tempo are named by their keys.
    return { kind: 'verified', payer, account: 'key', validBefore: validBefore * 1000 }
  }

  async simulate(): Promise<Refusal | undefined> {
    const [said, refusal] = await Promise.all([
      this.#context.validator.ask({ kind: 'simulate', token: this.#credential.token }),
      this.#try(),
    ])
    return said.kind === 'fit' ? refusal : refusalOf(said)
  }

  async #try(): Promise<Refusal | undefined> {
    const reading = await this.#read()
    if (reading.kind !== 'transfer') return refusalOf(reading)
    const { payer, call } = reading.transfer
    const { chain } = this.#context
    const [early, refusal] = await Promise.all([
      checkNonce(chain, reading.transfer),
      call === undefined ? undefined : simulateTransfer(chain, { from: payer, to: this.asset, data: call }),
    ])
    return early ?? refusal
  }

  release(): void {}

  /** Simulates once more, for the payer’s funds may have moved while the work was done. */
  async settle(journal: Journal): Promise<Settlement> {
    const reading = await this.#read()
    if (reading.kind !== 'transfer') return { kind: 'failed', refusal: refusalOf(reading) }
    const transfer = this.#transferOf(reading.transfer)
    const refusal = await this.simulate()
    if (refusal?.code === 'chain_unavailable') return { kind: 'failed', refusal }
    // Its payer may have broadcast it.
    if (refusal !== undefined)
      return (await findReceipt(this.#context, transfer)) ?? { kind: 'failed', refusal }
    await journal.record(transfer.transaction)
    return send(this.#context, transfer)
  }

  async #read(): Promise<Answer> {
    if (this.#transfer !== undefined) return { kind: 'transfer', transfer: this.#transfer }
    const { challenge, transaction } = this.#credential
    const { terms, validator } = this.#context
    const demand = { ...terms, amount: this.amount.toString(), challengeId: challenge.id }
    const answer = await validator.ask({ kind: 'read', transaction, demand })
    if (answer.kind === 'transfer') this.#transfer = answer.transfer
    return answer
  }

  #transferOf({ raw, hash, payer, validBefore }: SignedTransfer): Transfer {
    return {
      network: this.network,
      transaction: { kind: 'payer', hash, raw },
      expected: { token: this.asset, from: payer, to: this.payee, amount: this.amount },
      validBefore: validBefore * 1000,
    }
  }
}

/** CAIP-2. */
function networkOf(chainId: number): string {
  return `eip155:${chainId}`
}

/** Charge intent, “Replay Protection”: an id is good for one answer. */
const SPENT: Refusal = {
  code: 'invalid_challenge',
  detail: 'this challenge has been paid, or its payment is at work',
}

/** What the echoed request says; one that says nothing is not of our making, and fails its binding. */
function amountOf(request: string): bigint {
  const value = parseJson(Buffer.from(request, 'base64url').toString('utf8'))
  const amount = isJsonObject(value) ? value['amount'] : undefined
  return typeof amount === 'string' && /^\d{1,38}$/.test(amount) ? BigInt(amount) : 0n
}

/** What the echo says it was made for; `isIssued` tells whether it was. */
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
