import { createHash } from 'node:crypto'
import { toChecksum } from '../../address.ts'
import { isJsonObject } from '../../json.ts'
import type { Journal, Offer, Payment, Protocol, Refusal, Settlement, Verification } from '../protocol.ts'
import { isIssued } from './binding.ts'
import { requestOf, type Terms } from './challenge.ts'
import type { Credential } from './credential.ts'
import { findReceipt, send, type Bench, type Order } from './settlement.ts'
import { tryTransfer, UNAVAILABLE } from './trial.ts'
import type { Answer, SignedTransfer, Validator } from './validator.ts'

/** What it takes to check a payment and to carry it out. */
export interface Desk extends Bench {
  readonly terms: Terms
  readonly secretKeys: readonly string[]
  readonly validator: Validator
}

/** One signed transfer on Tempo, made out to one challenge. */
export class ChargePayment implements Payment {
  readonly protocol: Protocol
  readonly key: string
  readonly network: string
  readonly asset: string
  readonly payee: string
  readonly seal: string
  readonly amount: bigint
  readonly token = undefined
  readonly identifier = undefined
  readonly copies = SPENT
  readonly #credential: Credential
  readonly #desk: Desk
  #transfer: SignedTransfer | undefined

  constructor(protocol: Protocol, credential: Credential, desk: Desk) {
    const { challenge, transaction } = credential
    const { chainId, currency, recipient } = desk.terms
    this.protocol = protocol
    this.#credential = credential
    this.#desk = desk
    this.key = `mpp:${challenge.id}`
    // A second transaction that was signed for the same challenge is another payment.
    this.seal = createHash('sha256').update(transaction).digest('base64url')
    this.network = networkOf(chainId)
    this.asset = toChecksum(currency)
    this.payee = toChecksum(recipient)
    this.amount = amountOf(challenge.request)
  }

  check({ price, scope }: Offer, now: number): Refusal | undefined {
    const { challenge } = this.#credential
    const { terms, secretKeys } = this.#desk
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
      this.#desk.validator.ask({ kind: 'simulate', token: this.#credential.token }),
      this.#try(),
    ])
    return said.kind === 'fit' ? refusal : refusalOf(said)
  }

  async #try(): Promise<Refusal | undefined> {
    const reading = await this.#read()
    if (reading.kind !== 'transfer') return refusalOf(reading)
    const { payer, call } = reading.transfer
    return call === undefined
      ? undefined
      : tryTransfer(this.#desk.chain, { from: payer, to: this.asset, data: call })
  }

  release(): void {}

  /** Simulates once more, for the payer’s funds may have moved while the work was done. */
  async settle(journal: Journal): Promise<Settlement> {
    const reading = await this.#read()
    if (reading.kind !== 'transfer') return { kind: 'failed', refusal: refusalOf(reading) }
    const order = this.#order(reading.transfer)
    const refusal = await this.simulate()
    if (refusal?.code === 'chain_unavailable') return { kind: 'failed', refusal }
    // Its payer may have broadcast it.
    if (refusal !== undefined) return (await findReceipt(this.#desk, order)) ?? { kind: 'failed', refusal }
    await journal.record(order.transaction)
    return send(this.#desk, order)
  }

  async #read(): Promise<Answer> {
    if (this.#transfer !== undefined) return { kind: 'transfer', transfer: this.#transfer }
    const { challenge, transaction } = this.#credential
    const { terms, validator } = this.#desk
    const demand = { ...terms, amount: this.amount.toString(), challengeId: challenge.id }
    const answer = await validator.ask({ kind: 'read', transaction, demand })
    if (answer.kind === 'transfer') this.#transfer = answer.transfer
    return answer
  }

  #order({ raw, hash, payer, validBefore }: SignedTransfer): Order {
    return {
      network: this.network,
      transaction: { kind: 'payer', hash, raw },
      transfer: { token: this.asset, from: payer, to: this.payee, amount: this.amount },
      validBefore: validBefore * 1000,
    }
  }
}

/** CAIP-2. */
export function networkOf(chainId: number): string {
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

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function refusalOf(answer: Answer): Refusal {
  return answer.kind === 'refused' ? answer.refusal : UNAVAILABLE
}

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { code, detail }
}
