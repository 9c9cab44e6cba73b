/** Takes an event out of the queue. */
export type Cancel = () => void

/** What an event does; the next one waits for its promise, which must not wait for another event. */
type Work = () => unknown

interface Event {
  readonly at: number
  readonly order: number
  run: Work | undefined
}

/**
 * Virtual time. Events run one after the other, by their time and then in the order in which they were planned, and the
 * next one begins when nothing is left to do of the one before: so a run depends on nothing but its events.
 */
export class VirtualClock {
  #now: number
  #order = 0
  #steps = 0
  readonly #heap: Event[] = []

  constructor(start: number) {
    this.#now = start
  }

  /** Milliseconds since the epoch. */
  get now(): number {
    return this.#now
  }

  /** Number of events so far. */
  get steps(): number {
    return this.#steps
  }

  /** Plans an event in so many milliseconds. */
  after(ms: number, run: Work): Cancel {
    const event: Event = { at: this.#now + Math.max(0, ms), order: this.#order, run }
    this.#order += 1
    this.#push(event)
    return () => (event.run = undefined)
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve))
  }

  /** Runs events until the work is done; resolves to whether that was before `end`. */
  async run(isDone: () => boolean, end: number): Promise<boolean> {
    while (!isDone()) {
      const event = this.#pop()
      if (event === undefined) return false
      if (event.at > end) {
        this.#push(event)
        return false
      }
      const { run } = event
      if (run === undefined) continue
      this.#now = event.at
      this.#steps += 1
      await run()
      await nothingLeft()
    }
    return true
  }

  #push(event: Event): void {
    const heap = this.#heap
    let place = heap.push(event) - 1
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = heap[parent]
      if (above === undefined || isBefore(above, event)) break
      heap[place] = above
      place = parent
    }
    heap[place] = event
  }

  #pop(): Event | undefined {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let place = 0
    for (;;) {
      const [left, right] = [heap[2 * place + 1], heap[2 * place + 2]]
      if (left === undefined) break
      const isLeft = right === undefined || isBefore(left, right)
      const least = isLeft ? left : right
      if (isBefore(last, least)) break
      heap[place] = least
      place = 2 * place + (isLeft ? 1 : 2)
    }
    heap[place] = last
    return first
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.at === other.at ? one.order < other.order : one.at < other.at
}

/**
 * Resolves when all promises have been followed. Twice around the event loop, because the JSON-RPC client sends what was
 * asked in one turn at the beginning of the next.
 */
export function nothingLeft(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
}
