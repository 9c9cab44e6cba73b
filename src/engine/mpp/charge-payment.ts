import { createHash } from 'node:crypto'
import { toChecksum, type Address } from '../base/address.ts'
import type { Refusal } from '../base/errors.ts'
import { isJsonObject, parseJson } from '../base/json.ts'
import type { Clock } from '../base/poll.ts'
import type { Chain } from '../chains/evm/chain.ts'
import { otherArguments } from '../payment/call-price.ts'
import type { Offer, Payment } from '../payment/payment.ts'
import type { Protocol } from '../payment/protocol.ts'
import type { Credential } from './credential.ts'
import { INTENT, isIssued, requestAmount, requestOf, type Terms } from './mpp-challenge.ts'
import {
  findReceipt,
  send,
  simulateTransfer,
  tryTransaction,
  UNAVAILABLE,
  type PayerTransfer,
} from './payer-transfer.ts'
import type { PendingTransfers } from './pending-transfers.ts'
import type { Answer, SignedTransfer, Validator } from './transfer-validator.ts'
import { readUsualTransfer } from './usual-transfer.ts'

/** What it takes to check a payment and to carry it out. */
export interface PaymentContext extends Clock {
  readonly terms: Terms
  /** The first binds challenges, all are known. */
  readonly secretKeys: readonly string[]
  readonly validator: Validator
  readonly chain: Chain
  readonly pending: PendingTransfers
}

/** One signed transfer on Tempo, made out to one challenge. */
export function chargePayment(protocol: Protocol, credential: Credential, context: PaymentContext): Payment {
  const { challenge, transaction } = credential
  const { now } = context
  const transfer = new CredentialTransfer(credential, context)
  const { network, asset, payee, amount } = transfer
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
    check: (offer, time) => checkChallenge(credential, context, offer, time),
    verify: async () => {
      const reading = await transfer.read()
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
      const [unfit, refusal] = await Promise.all([transfer.reserve(), transfer.simulate()])
      return refusal ?? unfit
    },
    release: () => transfer.release(),
    // Simulates again after long work, since the payer’s funds may have moved.
    settle: async (_amount, journal) => {
      const reading = await transfer.read()
      if (reading.kind !== 'transfer') return { kind: 'failed', refusal: refusalOf(reading) }
      const { raw, hash, payer, validBefore } = reading.transfer
      const sent: PayerTransfer = {
        network,
        transaction: { kind: 'payer', hash, raw },
        expected: { token: asset, from: payer, to: payee, amount },
        validBefore: validBefore * 1000,
      }
      const refusal = now() - transfer.passedAt < SIMULATED_MS ? undefined : await transfer.simulate()
      if (refusal?.code === 'chain_unavailable') return { kind: 'failed', refusal }
      // Its payer may have broadcast it.
      if (refusal !== undefined) return (await findReceipt(context, sent)) ?? { kind: 'failed', refusal }
      await journal.record(sent.transaction)
      return send(context, sent)
    },
  }
}

/** Whether a credential is for this offer, as far as can be told without the network. */
function checkChallenge(
  { challenge }: Credential,
  { terms, secretKeys }: Pick<PaymentContext, 'terms' | 'secretKeys'>,
  { endpoint, price, scope, contentDigest }: Offer,
  time: number,
): Refusal | undefined {
  if (!isIssued(challenge, secretKeys))
    return refuse('invalid_challenge', 'the challenge was not issued here, or has been changed')
  if (!(Date.parse(challenge.expires ?? '') > time))
    return refuse('payment_expired', 'the challenge has expired')
  if (endpoint.operation.meter !== undefined)
    return refuse('invalid_challenge', 'what this call costs is known after the work: pay by x402')
  if (challenge.realm !== terms.realm || challenge.request !== requestOf(terms, price))
    return refuse(
      'invalid_challenge',
      otherArguments(endpoint, amountOf(challenge.request).toString(), requestAmount(price)) ?? OTHER_PRICE,
    )
  if (scopeOf(challenge.opaque) !== scope)
    return refuse('invalid_challenge', 'the challenge was made for another path or other parameters')
  if (challenge.digest !== undefined && challenge.digest !== contentDigest)
    return refuse('invalid_challenge', 'the challenge was made for another body')
  return undefined
}

/** The transfer in a credential: it is read once, and reserved beside the others of its payer. */
class CredentialTransfer {
  readonly network: string
  readonly asset: Address
  readonly payee: Address
  readonly amount: bigint
  readonly #credential: Credential
  readonly #context: PaymentContext
  #known: Answer | undefined
  #reserved: SignedTransfer | undefined
  /** When the simulation began that it has passed last. */
  #passedAt = -Infinity

  constructor(credential: Credential, context: PaymentContext) {
    const { terms } = context
    this.network = networkOf(terms.chainId)
    this.asset = toChecksum(terms.currency)
    this.payee = toChecksum(terms.recipient)
    this.amount = amountOf(credential.challenge.request)
    this.#credential = credential
    this.#context = context
  }

  get passedAt(): number {
    return this.#passedAt
  }

  async read(): Promise<Answer> {
    if (this.#known !== undefined) return this.#known
    const { challenge, transaction } = this.#credential
    const { terms, validator } = this.#context
    const demand = { ...terms, amount: this.amount.toString(), challengeId: challenge.id }
    const usual = readUsualTransfer(transaction, demand)
    const answer: Answer =
      usual === undefined
        ? await validator.ask({ kind: 'read', transaction, demand })
        : { kind: 'transfer', transfer: usual }
    if (answer.kind === 'transfer') this.#known = answer
    return answer
  }

  /** Undefined: it would be carried out now. */
  async simulate(): Promise<Refusal | undefined> {
    const { chain, now } = this.#context
    const at = now()
    const reading = await this.read()
    if (reading.kind !== 'transfer') return refusalOf(reading)
    const { payer, call } = reading.transfer
    const [whole, alone] = await Promise.all([
      this.#judge(reading.transfer),
      call === undefined ? undefined : simulateTransfer(chain, { from: payer, to: this.asset, data: call }),
    ])
    const refusal = whole ?? alone
    if (refusal === undefined) this.#passedAt = at
    return refusal
  }

  async reserve(): Promise<Refusal | undefined> {
    const reading = await this.read()
    if (reading.kind !== 'transfer') return refusalOf(reading)
    const { transfer } = reading
    if (this.#reserved !== undefined) return undefined
    const { asset: token, amount } = this
    const refusal = await this.#context.pending.reserve({ ...transfer, token, amount })
    if (refusal === undefined) this.#reserved = transfer
    return refusal
  }

  release(): void {
    if (this.#reserved !== undefined) this.#context.pending.release(this.#reserved)
    this.#reserved = undefined
  }

  async #judge({ trial }: SignedTransfer): Promise<Refusal | undefined> {
    const { chain, validator } = this.#context
    if (trial !== undefined) return tryTransaction(chain, trial)
    const said = await validator.ask({ kind: 'simulate', token: this.#credential.token })
    return said.kind === 'fit' ? undefined : refusalOf(said)
  }
}

/** How long a simulation before the work counts: the payer pays for a transaction that fails, and is not answered. */
const SIMULATED_MS = 500

/** The network of a chain, as CAIP-2 names it. */
export function networkOf(chainId: number): string {
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
