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

/**
 * How long a part lasts when its process is killed, and how often it is renewed or reduced. By then its transactions are
 * mined, and longer than the validity of a payment would have new payers wait until theirs have expired.
 */
const PART_MS = 20_000
const MAINTENANCE_MS = 5_000
/** A process takes more than it needs by this fraction of the budget, so that the ledger is written to rarely. */
const SPARE = 16n
/** The fraction of the budget above which a part is reduced at once. */
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

/** What one process has taken of the budget for one standing. */
interface Part {
  readonly fact: string
  readonly wei: bigint
  /** Other processes may wait for what a large one does not need any more. */
  readonly size: 'large' | 'small'
}

/**
 * Keeps what transactions in flight may lose, and what was lost in the last hour, within the budget: over all processes
 * of a ledger, altogether and for each standing. While nothing is lost or in flight, one transaction can always be sent.
 *
 * Each process takes a part, in the ledger, and gives it out itself. Two that take at the same time both see more than
 * there is, and both step back.
 */
export class GasBudget {
  readonly #settings: GasBudgetSettings
  readonly #held = new Map<string, GasAtRisk & { until: number }>()
  readonly #parts = new Map<Standing, Part>()
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
   * Takes a part before the first transaction needs it, while something else is being stored. Without it, and when it
   * fails, `hold` takes it.
   */
  prepare({ standing, wei }: Pick<GasAtRisk, 'standing' | 'wei'>, budget: bigint): void {
    if (this.#parts.has(standing)) return
    this.#turn = this.#turn
      .then(async () => this.#parts.has(standing) || (await this.#take(standing, wei, wei, budget)))
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
    const part = this.#parts.get(held.standing)
    if (part?.size === 'large' && this.#inFlight(held.standing) <= part.wei / 2n)
      // The maintenance tries again.
      void this.giveBack().catch(() => undefined)
  }

  /** Gives back what is taken and not in flight. After a loss: what it has used up must not be given out again. */
  async giveBack(): Promise<void> {
    const reduced = this.#turn.then(() => this.#fitParts())
    this.#turn = reduced.catch(() => undefined)
    await reduced
  }

  async #hold(risk: GasAtRisk, budget: bigint): Promise<GasHold> {
    const { id, standing, wei } = risk
    const needed = this.#inFlight(standing, id) + wei
    if (standing === 'new' && !(await this.#hasRoom(risk, needed, budget))) return 'in flight'
    const outcome = needed <= this.#taken(standing) ? 'held' : await this.#take(standing, needed, wei, budget)
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

  #taken(standing: Standing): bigint {
    return this.#parts.get(standing)?.wei ?? 0n
  }

  async #take(standing: Standing, needed: bigint, wei: bigint, budget: bigint): Promise<GasHold> {
    for (const amount of [needed + budget / SPARE, needed]) {
      const part = await this.#write(standing, amount, amount > budget / LARGE ? 'large' : 'small')
      const [lost, taken] = await Promise.all([this.#settings.losses.read(), this.#readParts(standing, part)])
      // A share counts against those of payers that are better known.
      const widened = STANDINGS.slice(0, STANDINGS.indexOf(standing) + 1)
      const fits = (both: (counted: Standing) => bigint): boolean =>
        widened.every((counted) => both(counted) <= shareOf(counted, budget))
      const isFirst = countedWith('known', lost) === 0n && countedWith('known', taken) === wei
      if (isFirst || fits((counted) => countedWith(counted, lost) + countedWith(counted, taken))) {
        await this.#replace(standing, part)
        return 'held'
      }
      await this.#remove(standing, part)
      if (countedWith('known', lost) > 0n && !fits((counted) => countedWith(counted, lost) + wei))
        return 'lost'
    }
    return 'in flight'
  }

  /** Wei that all processes have taken; of this one, the new part in place of the old one. */
  async #readParts(standing: Standing, part: Part): Promise<ByStanding> {
    const { ledger, now, owner } = this.#settings
    const sums = { known: 0n, new: 0n, code: 0n }
    await Promise.all(
      STANDINGS.map(async (each) => {
        const mine = each === standing ? part.fact : this.#parts.get(each)?.fact
        for (const fact of await ledger.listExpiring(this.#nameOf(each), now())) {
          const [maker, wei = '0'] = fact.split(' ')
          if (maker !== owner || fact === mine) sums[each] += BigInt(wei)
        }
      }),
    )
    return sums
  }

  async #write(standing: Standing, wei: bigint, size: Part['size']): Promise<Part> {
    const { ledger, now, owner } = this.#settings
    this.#number += 1
    const fact = `${owner} ${wei} ${this.#number}`
    await ledger.addExpiring(this.#nameOf(standing), fact, now() + PART_MS)
    return { fact, wei, size }
  }

  async #replace(standing: Standing, part: Part): Promise<void> {
    const previous = this.#parts.get(standing)
    this.#parts.set(standing, part)
    if (previous !== undefined) await this.#remove(standing, previous)
    this.#stop ??= this.#settings.every(MAINTENANCE_MS, () => void this.#maintain())
  }

  async #remove(standing: Standing, { fact }: Part): Promise<void> {
    await this.#settings.ledger.addExpiring(this.#nameOf(standing), fact, 0)
  }

  #maintain(): Promise<unknown> {
    const done = this.#turn.then(async () => {
      await this.#fitParts()
      const { ledger, now } = this.#settings
      for (const [standing, { fact }] of this.#parts)
        await ledger.addExpiring(this.#nameOf(standing), fact, now() + PART_MS)
      if (this.#parts.size > 0) return
      this.#stop?.()
      this.#stop = undefined
    })
    // A ledger that does not answer now is asked again.
    this.#turn = done.catch(() => undefined)
    return this.#turn
  }

  async #fitParts(): Promise<void> {
    for (const [standing, part] of this.#parts) {
      const needed = this.#inFlight(standing)
      if (needed === 0n) {
        this.#parts.delete(standing)
        await this.#remove(standing, part)
      } else if (needed < part.wei)
        await this.#replace(standing, await this.#write(standing, needed, part.size))
    }
  }

  #nameOf(standing: Standing): string {
    return `gas-in-flight:${this.#settings.network.chainId}:${standing}`
  }
}
