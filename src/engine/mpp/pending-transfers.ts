import type { Address } from '../base/address.ts'
import type { Chain } from '../chains/evm/chain.ts'
import type { Refusal } from '../base/errors.ts'
import type { Clock } from '../base/poll.ts'
import { Holding } from '../payment/payer-balance.ts'
import { balanceOf, feeTokenOf, nextNonce, spendingLimit } from './payer-account.ts'
import { UNAVAILABLE } from './payer-transfer.ts'
import type { SignedTransfer } from './transfer-validator.ts'

/** How long a payment waits before the work while others of its payer are in flight. */
const PATIENCE_MS = 5_000
const PAUSE_MS = 200
/** How long it waits for the transaction before it, which may arrive later. */
const ARRIVAL_MS = 1_000
/** How long a balance is used that was asked for before its payment’s turn. */
const AHEAD_MS = 500
/** How long the base fee of a block is used. */
const FEE_FRESH_MS = 2_000

/** The sequence without an order, for transactions that expire. */
const EXPIRING = 2n ** 256n - 1n
/** Fees are priced in 10⁻¹⁸ dollars for each unit of gas; tokens that pay them have six decimals. */
const FEE_UNIT = 10n ** 12n

/** A signed transfer, and the amount of the token that it pays. */
interface Transfer extends SignedTransfer {
  readonly token: Address
  /** Atomic units. */
  readonly amount: bigint
}

/** One of the amounts a transaction needs, and what it is drawn from. */
interface Need {
  readonly name: string
  readonly value: bigint
  readonly read: () => Promise<bigint | undefined>
}

interface Held {
  readonly holding: Holding
  readonly value: bigint
}

interface Reservation {
  /** How many requests have sent this transaction. */
  holders: number
  readonly refusal: Promise<Refusal | undefined>
}

interface Payer {
  readonly reservations: Map<string, Reservation>
  /** The transactions that have been admitted, or are being checked, by hash. */
  readonly pending: Map<string, Transfer>
  readonly holdings: Map<string, Holding>
}

/** `wait`: another transaction may have to go first. */
type Admission =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'wait'; readonly refusal: Refusal }

/**
 * Admits a transaction only when the chain can execute it together with the payer's others in flight. A simulation does
 * not show that: it runs each transaction as if it were the only one, and nodes ignore nonces in it. Without this, a
 * wallet with money for one call, or with nonces that cannot be executed, would get work for all of its payments.
 * Counts per process; several with one ledger have one such limit each.
 */
export class PendingTransfers {
  readonly #chain: Chain
  readonly #clock: Clock
  readonly #payers = new Map<Address, Payer>()
  #baseFee: { readonly at: number; readonly fee: bigint } | undefined

  constructor(chain: Chain, clock: Clock) {
    this.#chain = chain
    this.#clock = clock
  }

  /** Called before the work: holds nonce and amounts until `release`. A refusal holds nothing. */
  async reserve(transfer: Transfer): Promise<Refusal | undefined> {
    const payer = this.#payer(transfer.payer)
    const known = payer.reservations.get(transfer.hash)
    if (known !== undefined) {
      known.holders += 1
      return known.refusal
    }
    const refusal = this.#admitInTime(payer, transfer).finally(() => {
      if (payer.pending.has(transfer.hash)) return
      payer.reservations.delete(transfer.hash)
      this.#forget(transfer.payer, payer)
    })
    payer.reservations.set(transfer.hash, { holders: 1, refusal })
    return refusal
  }

  /** Must be called once for each `reserve` that was not refused. */
  release({ payer: address, hash }: Pick<SignedTransfer, 'payer' | 'hash'>): void {
    const payer = this.#payers.get(address)
    const reservation = payer?.reservations.get(hash)
    if (payer === undefined || reservation === undefined) return
    reservation.holders -= 1
    if (reservation.holders > 0) return
    payer.reservations.delete(hash)
    drop(payer, hash)
    this.#forget(address, payer)
  }

  async #admitInTime(payer: Payer, transfer: Transfer): Promise<Refusal | undefined> {
    const start = this.#clock.now()
    for (;;) {
      const admission = await this.#admit(payer, transfer)
      if (admission.kind === 'admitted') return undefined
      const waited = this.#clock.now() - start
      const patience = payer.pending.size > 0 ? PATIENCE_MS : ARRIVAL_MS
      if (admission.kind === 'refused' || waited >= patience) return admission.refusal
      await this.#clock.sleep(PAUSE_MS)
    }
  }

  async #admit(payer: Payer, transfer: Transfer): Promise<Admission> {
    const { hash } = transfer
    if (Array.from(payer.pending.values()).some((other) => excludes(other, transfer))) return IN_TURN
    payer.pending.set(hash, transfer)
    let admission: Admission | undefined
    try {
      const [unfit, held] = await Promise.all([
        this.#checkOrder(transfer),
        this.#openHoldings(payer, transfer),
      ])
      admission = unfit ?? (held === undefined ? UNKNOWN : await hold(held, hash))
      return admission
    } finally {
      if (admission?.kind !== 'admitted') drop(payer, hash)
    }
  }

  /** Whether the next block could hold the transaction; undefined when it could. */
  async #checkOrder({
    payer,
    hash,
    nonce,
    nonceKey,
    maxFeePerGas,
  }: Transfer): Promise<Admission | undefined> {
    const isOrdered = nonceKey !== EXPIRING
    const [pays, next] = await Promise.all([
      this.#paysBaseFee(maxFeePerGas),
      isOrdered ? nextNonce(this.#chain, payer, nonceKey) : 0n,
    ])
    if (pays === undefined || next === undefined) return UNKNOWN
    if (!pays) return refused('its fee limit is below the base fee of the network')
    // The chain judges the nonce of one that expires: 0 until a fork, then any number that tells equal ones apart.
    if (!isOrdered || nonce === next) return undefined
    if (nonce > next)
      return {
        kind: 'wait',
        refusal: unfit(`its nonce is ${nonce}, and the next one of its account is ${next}`),
      }
    // Its payer may have broadcast it: then the nonce is its own.
    const known = await this.#chain.knows(hash)
    if (known.kind !== 'result') return UNKNOWN
    return known.result ? undefined : refused('its nonce has been used')
  }

  /** Undefined when the node does not say. */
  async #paysBaseFee(maxFeePerGas: bigint): Promise<boolean | undefined> {
    const { now } = this.#clock
    const seen = this.#baseFee
    // A fee that has fallen since it was read refuses nobody.
    if (seen !== undefined && now() - seen.at < FEE_FRESH_MS && maxFeePerGas >= seen.fee) return true
    const at = now()
    const block = await this.#chain.block('latest')
    if (block.kind !== 'result') return undefined
    this.#baseFee = { at, fee: block.result.baseFee }
    return maxFeePerGas >= block.result.baseFee
  }

  /** Amount and highest fee, from the balance and from what an access key may spend; undefined: the node does not say. */
  async #needsOf(transfer: Transfer): Promise<readonly Need[] | undefined> {
    const { payer, token, amount, gas, maxFeePerGas, accessKey } = transfer
    const chain = this.#chain
    const fee = (gas * maxFeePerGas + FEE_UNIT - 1n) / FEE_UNIT
    const feeToken = transfer.feeToken ?? (await feeTokenOf(chain, payer, token))
    if (feeToken === undefined) return undefined
    const values: readonly (readonly [Address, bigint])[] =
      feeToken.toLowerCase() === token.toLowerCase()
        ? [[token, amount + fee]]
        : [
            [token, amount],
            [feeToken, fee],
          ]
    const balances = values.map(([each, value]): Need => ({
      name: each.toLowerCase(),
      value,
      read: () => balanceOf(chain, payer, each),
    }))
    if (accessKey === undefined) return balances
    const limits = values.map(([each, value]): Need => ({
      name: `${accessKey}:${each}`.toLowerCase(),
      value,
      read: () => spendingLimit(chain, { payer, accessKey, token: each }),
    }))
    return [...balances, ...limits]
  }

  /** What the transaction draws from; the balances that are not known are asked for together, and at once. */
  async #openHoldings({ holdings }: Payer, transfer: Transfer): Promise<readonly Held[] | undefined> {
    const needs = await this.#needsOf(transfer)
    return needs?.map(({ name, value, read }) => {
      // Its simulation may be older than the payment before it.
      const holding =
        holdings.get(name) ?? new Holding(askedAhead(read, this.#clock.now), this.#clock.now, 'read')
      holdings.set(name, holding)
      return { holding, value }
    })
  }

  #payer(address: Address): Payer {
    const known = this.#payers.get(address)
    if (known !== undefined) return known
    const fresh: Payer = { reservations: new Map(), pending: new Map(), holdings: new Map() }
    this.#payers.set(address, fresh)
    return fresh
  }

  #forget(address: Address, { reservations }: Payer): void {
    if (reservations.size === 0) this.#payers.delete(address)
  }
}

async function hold(all: readonly Held[], hash: string): Promise<Admission> {
  for (const { holding, value } of all) {
    const held = await holding.hold(hash, value)
    if (held !== 'held') return held === 'short' ? SHORT : UNKNOWN
  }
  return { kind: 'admitted' }
}

/** Asks now for what will be read first, which counts while it is young. */
function askedAhead<T>(read: () => Promise<T>, now: () => number): () => Promise<T> {
  const asked = { answer: read(), until: now() + AHEAD_MS }
  return () => {
    const isYoung = now() < asked.until
    asked.until = -Infinity
    return isYoung ? asked.answer : read()
  }
}

/** Transactions with further calls may spend anything, so they are in flight alone. */
function excludes(one: Transfer, other: Transfer): boolean {
  if (one.call === undefined || other.call === undefined) return true
  return one.nonceKey !== EXPIRING && one.nonceKey === other.nonceKey
}

function drop({ pending, holdings }: Payer, hash: string): void {
  pending.delete(hash)
  for (const holding of holdings.values()) holding.drop(hash)
}

function unfit(reason: string): Refusal {
  return { code: 'verification_failed', detail: `the transaction cannot be executed now: ${reason}` }
}

function refused(reason: string): Admission {
  return { kind: 'refused', refusal: unfit(reason) }
}

const UNKNOWN: Admission = { kind: 'refused', refusal: UNAVAILABLE }

const IN_TURN: Admission = {
  kind: 'wait',
  refusal: unfit('another one of its payer that is in flight has to be executed first'),
}

const SHORT: Admission = {
  kind: 'wait',
  refusal: {
    code: 'verification_failed',
    detail:
      'the balance or the spending limit of the payer does not cover amount and fee of this payment and of those in flight',
  },
}
