/** How long a balance that was read is used. */
const FRESH_MS = 2_000
/** A balance is not read again within this time. */
const YOUNG_MS = 100

/**
 * Amounts held against one balance. `simulated`: an amount that is held alone is simulated afterwards, which shows that
 * the balance covers it, so the balance is read from the second amount on.
 */
export class Holding {
  readonly #read: () => Promise<bigint | undefined>
  readonly #now: () => number
  readonly #amounts = new Map<string, bigint>()
  readonly #first: 'simulated' | 'read'
  #sum = 0n
  /** The sum of all amounts that were dropped. */
  #dropped = 0n
  /** The balance that was read, less the amounts that were dropped since: they may have been spent. */
  #seen: { balance: bigint; readonly at: number } | undefined
  #turn: Promise<unknown> = Promise.resolve()

  constructor(
    read: () => Promise<bigint | undefined>,
    now: () => number,
    first: 'simulated' | 'read' = 'simulated',
  ) {
    this.#read = read
    this.#now = now
    this.#first = first
  }

  get size(): number {
    return this.#amounts.size
  }

  hold(name: string, value: bigint): Promise<'held' | 'short' | 'unknown'> {
    const held = this.#turn.then(() => this.#hold(name, value))
    this.#turn = held.catch(() => undefined)
    return held
  }

  async #hold(name: string, value: bigint): Promise<'held' | 'short' | 'unknown'> {
    if (this.#amounts.has(name)) return 'held'
    if (this.#amounts.size > 0 || this.#first === 'read') {
      if (!this.#fits(value, FRESH_MS) && !(await this.#look(value)))
        return this.#seen === undefined ? 'unknown' : 'short'
    }
    this.#amounts.set(name, value)
    this.#sum += value
    return 'held'
  }

  #fits(value: bigint, fresh: number): boolean {
    if (this.#seen === undefined || this.#now() - this.#seen.at >= fresh) return false
    return this.#sum + value <= this.#seen.balance
  }

  async #look(value: bigint): Promise<boolean> {
    if (this.#seen === undefined || this.#now() - this.#seen.at >= YOUNG_MS) {
      const [at, dropped] = [this.#now(), this.#dropped]
      const balance = await this.#read()
      // What was dropped while the balance was read may have been spent before or after.
      this.#seen = balance === undefined ? undefined : { balance: balance - (this.#dropped - dropped), at }
    }
    return this.#fits(value, FRESH_MS)
  }

  drop(name: string): void {
    const value = this.#amounts.get(name)
    if (value === undefined) return
    this.#amounts.delete(name)
    this.#sum -= value
    this.#dropped += value
    if (this.#seen !== undefined) this.#seen.balance -= value
  }
}
