import type { VirtualClock } from './clock.ts'

/** What has happened in a run, line by line. */
export class Trace {
  readonly #clock: VirtualClock
  readonly #start: number
  readonly #lines: string[] = []
  #digest = 0x811c9dc5

  constructor(clock: VirtualClock) {
    this.#clock = clock
    this.#start = clock.now
  }

  note(who: string, what: string): void {
    const line = `${((this.#clock.now - this.#start) / 1000).toFixed(3).padStart(9)} ${who.padEnd(10)} ${what}`
    for (let place = 0; place < line.length; place += 1)
      this.#digest = Math.imul(this.#digest ^ line.charCodeAt(place), 0x01000193)
    this.#lines.push(line)
  }

  get lines(): readonly string[] {
    return this.#lines
  }

  /** Equal for equal runs. */
  get digest(): string {
    return (this.#digest >>> 0).toString(16).padStart(8, '0')
  }
}
