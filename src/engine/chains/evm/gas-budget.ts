import type { Every } from '../../base/every.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Network } from '../../base/networks.ts'
import type { GasLosses } from './gas-losses.ts'
import {
  countedWith,
  roomForNew,
  shareOf,
  STANDINGS,
  type ByStanding,
  type PaymentsUnderWay,
  type Standing,
} from './gas-shares.ts'

/** How long a claim lasts when its process stops, and how often it is renewed or reduced. */
const CLAIM_MS = 60_000
const MAINTENANCE_MS = 5_000
/** A claim is larger than what is needed by this part of the budget, so that the ledger is written to rarely. */
const SPARE = 16n
/** The part of the budget above which a claim is reduced at once. */
const LARGE = 4n

interface GasBudgetSettings {
  readonly network: Network
  readonly ledger: Ledger
  /** Name of this process. */
  readonly owner: string
  readonly losses: GasLosses
  readonly now: () => number
  readonly every: Every
}

/** What one transaction, or one payment in it, may lose. */
export interface GasAtRisk {
  /** Distinguishes payments. Holding it again changes its amount. */
  readonly id: string
  readonly standing: Standing
  readonly payments: PaymentsUnderWay
  readonly wei: bigint
}

/** The `id` of a payment. */
export function riskOf({ payer, nonce }: { readonly payer: string; readonly nonce: string }): string {
  return `${payer}:${nonce}`
}

/** `in flight`: there will be room once others have settled. `lost`: not before losses are an hour old. */
export type GasHold = 'held' | 'in flight' | 'lost'

interface Claim {
  readonly fact: string
  readonly wei: bigint
  /** Other processes may wait for what a large one does not need any more. */
  readonly size: 'large' | 'small'
}

/**
 * Keeps what transactions in flight may lose, and what was lost in the last hour, within the budget: over all processes
 * of a ledger, altogether and for each standing. While nothing is lost or in flight, one transaction can always be sent.
 *
 * Each process claims a part in the ledger and gives it out itself. Two that claim at the same time both see more than
 * there is, and both step back.
 */
export class GasBudget {
  readonly #settings: GasBudgetSettings
  readonly #held = new Map<string, GasAtRisk & { until: number }>()
  readonly #claims = new Map<Standing, Claim>()
  #turn: Promise<unknown> = Promise.resolve()
  #number = 0
  #stop: (() => void) | undefined

  constructor(settings: GasBudgetSettings) {
    this.#settings = settings
  }

  /** Must be called before a transaction is sent; holds the amount until `drop`. `budget`: wei for each hour. */
  hold(risk: GasAtRisk, budget: bigint): Promise<GasHold> {
    const held = this.#turn.then(() => this.#hold(risk, budget))
    this.#turn = held.catch(() => undefined)
    return held
  }

  /**
   * Claims a part before the first transaction needs it, while something else is being stored. Without it, and when it
   * fails, `hold` claims.
   */
  prepare({ standing, wei }: Pick<GasAtRisk, 'standing' | 'wei'>, budget: bigint): void {
    if (this.#claims.has(standing)) return
    this.#turn = this.#turn
      .then(async () => this.#claims.has(standing) || (await this.#claim(standing, wei, wei, budget)))
      .catch(() => undefined)
  }

  /**
   * The standing under which a payment is held; a loss of one that was sent before the start counts against the whole
   * budget.
   */
  standing(id: string): Standing {
    return this.#held.get(id)?.standing ?? 'known'
  }

  /**
   * Ends the hold. `until`: for an unknown outcome, the time after which the transaction cannot be mined any more, in
   * milliseconds since the epoch.
   */
  drop(id: string, until = -Infinity): void {
    const held = this.#held.get(id)
    if (held === undefined) return
    if (until > this.#settings.now()) {
      held.until = until
      return
    }
    this.#held.delete(id)
    const claim = this.#claims.get(held.standing)
    if (claim?.size === 'large' && this.#inFlight(held.standing) <= claim.wei / 2n)
      // The maintenance tries again.
      void this.giveBack().catch(() => undefined)
  }

  /** Gives back what is claimed and not in flight. After a loss: what it has used up must not be given out again. */
  async giveBack(): Promise<void> {
    const reduced = this.#turn.then(() => this.#fitClaims())
    this.#turn = reduced.catch(() => undefined)
    await reduced
  }

  async #hold(risk: GasAtRisk, budget: bigint): Promise<GasHold> {
    const { id, standing, wei } = risk
    const needed = this.#inFlight(standing, id) + wei
    if (standing === 'new' && !(await this.#hasRoom(risk, needed, budget))) return 'in flight'
    const outcome =
      needed <= this.#claimed(standing) ? 'held' : await this.#claim(standing, needed, wei, budget)
    if (outcome === 'held') this.#held.set(id, { ...risk, until: Infinity })
    return outcome
  }

  /** One transaction of a payer with one payment is always let through, and one of any payer before a loss. */
  async #hasRoom({ payments, wei }: GasAtRisk, needed: bigint, budget: bigint): Promise<boolean> {
    const lost = countedWith('new', await this.#settings.losses.recent())
    if (needed === wei && (payments === 'one' || lost === 0n)) return true
    // More than is left is refused, and does not wait.
    return needed <= roomForNew(payments, lost, budget) || wei > shareOf('new', budget) - lost
  }

  /** Wei in flight in this process, without the payment `besides`. */
  #inFlight(standing: Standing, besides?: string): bigint {
    let sum = 0n
    for (const [id, held] of this.#held)
      if (held.until < this.#settings.now()) this.#held.delete(id)
      else if (held.standing === standing && id !== besides) sum += held.wei
    return sum
  }

  #claimed(standing: Standing): bigint {
    return this.#claims.get(standing)?.wei ?? 0n
  }

  async #claim(standing: Standing, needed: bigint, wei: bigint, budget: bigint): Promise<GasHold> {
    for (const amount of [needed + budget / SPARE, needed]) {
      const claim = await this.#write(standing, amount, amount > budget / LARGE ? 'large' : 'small')
      const [lost, claimed] = await Promise.all([
        this.#settings.losses.read(),
        this.#readClaims(standing, claim),
      ])
      // A share counts against those of payers that are better known.
      const widened = STANDINGS.slice(0, STANDINGS.indexOf(standing) + 1)
      const fits = (both: (counted: Standing) => bigint): boolean =>
        widened.every((counted) => both(counted) <= shareOf(counted, budget))
      const isFirst = countedWith('known', lost) === 0n && countedWith('known', claimed) === wei
      if (isFirst || fits((counted) => countedWith(counted, lost) + countedWith(counted, claimed))) {
        await this.#replace(standing, claim)
        return 'held'
      }
      await this.#remove(standing, claim)
      if (countedWith('known', lost) > 0n && !fits((counted) => countedWith(counted, lost) + wei))
        return 'lost'
    }
    return 'in flight'
  }

  /** Wei that all processes claim; for this one, the new claim in place of the old one. */
  async #readClaims(standing: Standing, claim: Claim): Promise<ByStanding> {
    const { ledger, now, owner } = this.#settings
    const sums = { known: 0n, new: 0n, code: 0n }
    await Promise.all(
      STANDINGS.map(async (each) => {
        const mine = each === standing ? claim.fact : this.#claims.get(each)?.fact
        for (const fact of await ledger.listExpiring(this.#nameOf(each), now())) {
          const [maker, wei = '0'] = fact.split(' ')
          if (maker !== owner || fact === mine) sums[each] += BigInt(wei)
        }
      }),
    )
    return sums
  }

  async #write(standing: Standing, wei: bigint, size: Claim['size']): Promise<Claim> {
    const { ledger, now, owner } = this.#settings
    this.#number += 1
    const fact = `${owner} ${wei} ${this.#number}`
    await ledger.addExpiring(this.#nameOf(standing), fact, now() + CLAIM_MS)
    return { fact, wei, size }
  }

  async #replace(standing: Standing, claim: Claim): Promise<void> {
    const previous = this.#claims.get(standing)
    this.#claims.set(standing, claim)
    if (previous !== undefined) await this.#remove(standing, previous)
    this.#stop ??= this.#settings.every(MAINTENANCE_MS, () => void this.#maintain())
  }

  async #remove(standing: Standing, { fact }: Claim): Promise<void> {
    await this.#settings.ledger.addExpiring(this.#nameOf(standing), fact, 0)
  }

  #maintain(): Promise<unknown> {
    const done = this.#turn.then(async () => {
      await this.#fitClaims()
      const { ledger, now } = this.#settings
      for (const [standing, { fact }] of this.#claims)
        await ledger.addExpiring(this.#nameOf(standing), fact, now() + CLAIM_MS)
      if (this.#claims.size > 0) return
      this.#stop?.()
      this.#stop = undefined
    })
    // A ledger that does not answer now is asked again.
    this.#turn = done.catch(() => undefined)
    return this.#turn
  }

  async #fitClaims(): Promise<void> {
    for (const [standing, claim] of this.#claims) {
      const needed = this.#inFlight(standing)
      if (needed === 0n) {
        this.#claims.delete(standing)
        await this.#remove(standing, claim)
      } else if (needed < claim.wei)
        await this.#replace(standing, await this.#write(standing, needed, claim.size))
    }
  }

  #nameOf(standing: Standing): string {
    return `gas-in-flight:${this.#settings.network.chainId}:${standing}`
  }
}
