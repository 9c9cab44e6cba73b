import { isJsonObject, parseJson, type Json, type JsonObject } from '../../src/engine/base/json.ts'
import { transferCall } from '../../src/engine/chains/evm/eip3009/transfer-call.ts'
import { isHex } from '../../src/engine/chains/evm/chain.ts'
import { isAddress } from '../../src/engine/base/address.ts'
import type { SimulatedChain } from './chain.ts'
import { balanceName } from './contracts.ts'
import type { VirtualClock } from './clock.ts'
import type { FacilitatorTrouble } from './faults.ts'
import { BASE, type Wallet } from './market.ts'
import type { Random } from './random.ts'

/** An answer over HTTP. */
export interface FacilitatorReply {
  readonly status: number
  readonly body: string
}

/** How long a facilitator waits for the block of a transaction. */
const PATIENCE_MS = 20_000
const LOOK_MS = 500

/**
 * What a facilitator knows when it is asked again to settle a payment: the transaction that it has sent, or nothing, and then
 * it may find the payment used.
 */
type Memory = 'same answer' | 'none'

/** Verifies and settles payments by scheme exact (x402 v2 core §7), through an account and a node of its own. */
export class SimulatedFacilitator {
  readonly troubles = new Set<FacilitatorTrouble>()
  readonly #chain: SimulatedChain
  readonly #clock: VirtualClock
  readonly #account: Wallet
  readonly #memory: Memory
  readonly #random: Random
  /** Hashes of transactions by the nonce of the payment. */
  readonly #sent = new Map<string, string>()

  constructor(
    world: { readonly chain: SimulatedChain; readonly clock: VirtualClock },
    account: Wallet,
    memory: Memory,
    random: Random,
  ) {
    this.#chain = world.chain
    this.#clock = world.clock
    this.#account = account
    this.#memory = memory
    this.#random = random
  }

  /** Answers a request once it is worked on. */
  async answer(path: string, body: string): Promise<FacilitatorReply> {
    if (path !== '/settle' || !this.#hit('repeats requests')) return this.#attempt(path, body)
    // A gateway has seen no answer, asks again, and passes on what the last attempt has brought.
    void this.#attempt(path, body)
    await this.#clock.sleep(this.#random.between(1, 6_000))
    return this.#attempt(path, body)
  }

  async #attempt(path: string, body: string): Promise<FacilitatorReply> {
    if (this.#hit('limits rates')) return { status: 429, body: 'slow down' }
    if (path === '/supported') return saying(SUPPORTED)
    const payment = paymentIn(body)
    if (payment === undefined) return saying({ isValid: false, invalidReason: 'invalid_payload' }, 400)
    if (path === '/verify') {
      const reason = this.#refusal(payment)
      return saying(reason === undefined ? { isValid: true } : { isValid: false, invalidReason: reason })
    }
    const settled = await this.#settle(payment, this.#hit('says yes too early') ? 'hasty' : 'patient')
    return this.#hit('breaks afterwards')
      ? { status: 502, body: '<html>Bad Gateway</html>' }
      : saying(settled)
  }

  #hit(trouble: FacilitatorTrouble): boolean {
    return this.troubles.has(trouble) && this.#random.chance(0.6)
  }

  async #settle(payment: Signed, pace: 'hasty' | 'patient'): Promise<JsonObject> {
    const found = this.#memory === 'none' ? undefined : this.#waitingOf(payment)
    const refused = found === undefined ? this.#refusal(payment) : undefined
    if (refused !== undefined) return failed(refused)
    const transaction = found ?? this.#chain.submit(this.#account.address, BASE.token.address, payment.call)
    this.#sent.set(payment.nonce, transaction)
    const settled = { success: true, transaction, network: BASE.id, payer: payment.from }
    if (pace === 'hasty') return settled
    for (let waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
      const mined = this.#chain.find(transaction)?.mined
      if (mined?.succeeded === true) return settled
      if (mined !== undefined) return failed('invalid_transaction_state', transaction)
      await this.#clock.sleep(LOOK_MS)
    }
    return failed('settlement_pending', transaction)
  }

  /** The transaction that was sent for a payment, unless it is gone. */
  #waitingOf({ nonce }: Signed): string | undefined {
    const sent = this.#sent.get(nonce)
    return sent === undefined || this.#chain.transaction(sent) === undefined ? undefined : sent
  }

  /** Why the token would not carry the payment out in the next block; the balance is looked at first. */
  #refusal({ call, from, value }: Signed): string | undefined {
    const [chain, account] = [this.#chain, this.#account.address]
    if (chain.get(balanceName(from)) < value) return 'insufficient_funds'
    const { called } = chain.call(account, BASE.token.address, call, chain.head.number)
    if (called.kind === 'done') return undefined
    return REASONS.find(([part]) => called.reason.includes(part))?.[1] ?? 'unexpected_verify_error'
  }
}

const REASONS = [
  ['used or canceled', 'invalid_exact_evm_nonce_already_used'],
  ['expired', 'invalid_exact_evm_payload_authorization_valid_before'],
  ['signature', 'invalid_exact_evm_signature'],
] as const

const SUPPORTED: JsonObject = {
  kinds: [{ x402Version: 2, scheme: 'exact', network: BASE.id }],
  extensions: [],
  signers: {},
}

/** A payment as a facilitator reads it. */
interface Signed {
  readonly from: string
  readonly nonce: string
  readonly value: bigint
  readonly call: `0x${string}`
}

function paymentIn(body: string): Signed | undefined {
  const payload = memberOf(memberOf(parseJson(body), 'paymentPayload'), 'payload')
  const authorization = memberOf(payload, 'authorization')
  const signature = memberOf(payload, 'signature')
  const textOf = (name: string): string => {
    const member = memberOf(authorization, name)
    return typeof member === 'string' ? member : ''
  }
  const [from, to, nonce] = [textOf('from'), textOf('to'), textOf('nonce')]
  const [value, validAfter, validBefore] = [textOf('value'), textOf('validAfter'), textOf('validBefore')]
  if (!isAddress(from) || !isAddress(to) || !isHex(nonce) || !isHex(signature)) return undefined
  if (value === '') return undefined
  const signed = { from, to, value, validAfter, validBefore, nonce }
  return {
    from,
    nonce,
    value: BigInt(value),
    call: transferCall({ authorization: signed, signature, signedBy: 'key' }),
  }
}

function memberOf(value: unknown, name: string): Json | undefined {
  return isJsonObject(value) ? value[name] : undefined
}

function saying(body: JsonObject, status = 200): FacilitatorReply {
  return { status, body: JSON.stringify(body) }
}

function failed(errorReason: string, transaction = ''): JsonObject {
  return { success: false, errorReason, transaction, network: BASE.id }
}
