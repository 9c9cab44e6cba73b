import type { Clock } from '../../base/poll.ts'
import type { Sender } from './chain.ts'
import type { Multicall } from './multicall.ts'
import { type Call, MOST_CALLS, CHECK_IN_BATCH_MS, checkTime } from './multicall.ts'

interface Simulation<T> {
  readonly call: Call
  readonly sender: Omit<Sender, 'gas'>
  /** Simulates the call by itself, with a reason when it fails. */
  readonly alone: () => Promise<T>
  readonly resolve: (outcome: T | 'passed' | Promise<T>) => void
}

/**
 * Groups simulations of calls: the first is sent at once, and those that arrive before its answer are sent together.
 * A call that fails in a group is simulated by itself.
 */
export class SimulationQueue<T> {
  readonly #multicall: Multicall
  readonly #sleep: Clock['sleep']
  #waiting: Simulation<T>[] = []
  #isBusy = false

  constructor(multicall: Multicall, { sleep }: Pick<Clock, 'sleep'>) {
    this.#multicall = multicall
    this.#sleep = sleep
  }

  simulate(simulation: Omit<Simulation<T>, 'resolve'>): Promise<T | 'passed'> {
    return new Promise((resolve) => {
      this.#waiting.push({ ...simulation, resolve })
      if (!this.#isBusy) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, MOST_CALLS)
      const passed = await this.#simulate(group)
      const rest = group.filter((_, place) => passed[place] !== true)
      const outcomes = rest.map(({ alone, resolve }) => {
        const outcome = alone()
        resolve(outcome)
        return outcome
      })
      for (const [place, { resolve }] of group.entries()) if (passed[place] === true) resolve('passed')
      await Promise.race([Promise.allSettled(outcomes), this.#sleep(CHECK_IN_BATCH_MS)])
    }
    this.#isBusy = false
  }

  async #simulate(group: readonly Simulation<T>[]): Promise<readonly boolean[]> {
    const [first, ...others] = group
    if (first === undefined || others.length === 0 || !this.#multicall.isAvailable) return []
    const calls = group.map(({ call }) => call)
    return (await this.#multicall.simulate(calls, first.sender, checkTime(calls.length))) ?? []
  }
}
