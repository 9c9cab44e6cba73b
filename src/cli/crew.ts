import { type Generation, startGeneration } from './generation.ts'
import type { StopSignal } from './signals.ts'
import { isA, type Order, type Report, type Served } from './supervisor-messages.ts'

/** The processes of one server: those that serve, and those that begin or end. */
export class Crew {
  readonly workers: number
  /** By place. */
  serving: readonly Generation[] = []
  readonly #running = new Set<Generation>()
  #isStopping = false

  /** `workers`: how many serve together. */
  constructor(workers: number) {
    this.workers = workers
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  get running(): readonly Generation[] {
    return Array.from(this.#running)
  }

  order(order: Order, to: Iterable<Generation>): void {
    for (const { process } of to) if (process.isConnected()) process.send(order)
  }

  /** Starts a process. `before`: what is served already, by the one that it replaces or by another one beside it. */
  begin(place: number, before?: Served): Generation {
    const worker = { place, of: this.workers }
    const generation = startGeneration(worker)
    this.#running.add(generation)
    void generation.ended.then(() => this.#running.delete(generation))
    void generation.joined.then(() => {
      this.order({ kind: 'begin', worker, ...(before === undefined ? {} : { before }) }, [generation])
      if (this.#isStopping) this.order({ kind: 'stop', signal: 'SIGTERM' }, [generation])
    })
    this.#exchange(generation)
    return generation
  }

  /** Starts a process for each place, and resolves when they serve or have ended. The first one says where all of them serve. */
  async beginAll(before?: Served): Promise<readonly Generation[]> {
    const first = this.begin(0, before)
    await first.begun
    const { served } = first
    if (served === undefined || this.#isStopping) return [first]
    const others = Array.from({ length: this.workers - 1 }, (_, place) => this.begin(place + 1, served))
    await Promise.all(others.map(({ begun }) => begun))
    return [first, ...others]
  }

  /** Stops all, those that begin later among them. */
  stop(signal: StopSignal): void {
    this.#isStopping = true
    this.order({ kind: 'stop', signal }, this.#running)
  }

  /** Passes on what processes ask and tell each other. */
  #exchange(generation: Generation): void {
    let questions = 0
    generation.process.on('message', (message: unknown) => {
      if (!isA<Report>(message)) return
      if (message.kind === 'ask') {
        questions += 1
        void this.#count(generation.process.id * 1_000_000 + questions).then((counts) =>
          this.order({ kind: 'counted', counts }, [generation]),
        )
      }
      if (message.kind === 'news') this.order(message, this.serving.slice(0, 1))
    })
  }

  /** What each process that serves has counted; one that does not say so in time is left out. */
  async #count(question: number): Promise<readonly object[]> {
    const asked = this.serving.filter((each) => each.served !== undefined)
    const counts = asked.map((each) => countOf(each, question))
    this.order({ kind: 'count', question }, asked)
    return (await Promise.all(counts)).flat()
  }
}

/** How long a process may take to say what it has counted. */
const COUNTED_MS = 2_000

/** The answer of a process to a question; empty when it comes too late. */
function countOf({ process }: Generation, question: number): Promise<readonly object[]> {
  return new Promise((resolve) => {
    const answered = (message: unknown): void => {
      if (!isA<Report>(message) || message.kind !== 'count' || message.question !== question) return
      end([message.count])
    }
    const end = (count: readonly object[]): void => {
      clearTimeout(late)
      process.off('message', answered)
      resolve(count)
    }
    const late = setTimeout(() => end([]), COUNTED_MS)
    process.on('message', answered)
  })
}
