import cluster from 'node:cluster'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Mark, markNow } from '../engine/catalog/load-catalog.ts'
import { type Generation, startGeneration } from './generation.ts'
import type { Log } from './log.ts'
import { listenToSignals, type StopSignal } from './signals.ts'
import { isA, type Order, type Report, type Served } from './supervisor-messages.ts'
import { Watch } from './watch.ts'

/** What is to be supervised. */
interface Supervision {
  /** How many processes serve together. */
  readonly workers: number
  /** Whether handlers are loaded again when their files change. */
  readonly watch: boolean
  /** How long requests are still taken after a SIGTERM, in milliseconds. */
  readonly drainMs: number
}

/** Pauses before a process that has ended is started again: doubled while the new ones do not last. */
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000
/** A process that has served for so long counts as sound. */
const SOUND_MS = 60_000
/** How long a process may take to say what it has counted. */
const COUNTED_MS = 2_000

/**
 * Runs `serve` in processes of their own that listen on one port, and with `watch` in new ones each time a module of the
 * handlers has changed. Both listen on the port while one follows the other, and the old one ends when its requests are
 * answered. A new process that does not get as far as serving changes nothing. Of several processes, one that ends is
 * started again; one that cannot start ends all, and has said why. Resolves to the exit code.
 */
export async function supervise(
  log: Pick<Log, 'write'>,
  { workers, watch: isWatching, drainMs }: Supervision,
  openChains: () => Promise<() => Promise<void>>,
): Promise<number> {
  // Amounts are bigints.
  cluster.setupPrimary({ serialization: 'advanced' })
  const signals = listenToSignals(drainMs)
  const watch = new Watch(() => performance.now())
  const running = new Set<Generation>()
  const order = (order: Order, to: Iterable<Generation> = running): void => {
    for (const { process } of to) if (process.isConnected()) process.send(order)
  }
  /** By place. */
  let serving: readonly Generation[] = []
  let isStopping = false
  const stopAll = (signal: StopSignal): void => {
    isStopping = true
    watch.stop()
    order({ kind: 'stop', signal })
  }
  const begin = (place: number, before?: Served): Generation => {
    const worker = { place, of: workers }
    const generation = startGeneration(worker)
    running.add(generation)
    void generation.ended.then(() => running.delete(generation))
    void generation.joined.then(() => {
      order({ kind: 'begin', worker, ...(before === undefined ? {} : { before }) }, [generation])
      if (isStopping) order({ kind: 'stop', signal: 'SIGTERM' }, [generation])
    })
    exchange(generation, () => serving, order)
    return generation
  }
  /** The first process says where all of them serve. */
  const beginAll = async (before?: Served): Promise<readonly Generation[]> => {
    const first = begin(0, before)
    await first.begun
    const { served } = first
    if (served === undefined || isStopping) return [first]
    const others = Array.from({ length: workers - 1 }, (_, place) => begin(place + 1, served))
    await Promise.all(others.map(({ begun }) => begun))
    return [first, ...others]
  }
  const closeChains = await openChains()
  try {
    void signals.stopped.then(stopAll)
    signals.onReload(() => order({ kind: 'reload' }, serving))
    const over = new Promise<number>((resolve) => {
      /** Starts a process again that serves no more, until another generation takes its place. */
      const follow = async (first: Generation): Promise<void> => {
        let generation = first
        let pause = FIRST_PAUSE_MS
        for (;;) {
          const since = performance.now()
          const { kind, code } = await generation.ended
          if (!serving.includes(generation)) return
          const { worker, served } = generation
          const isRefused = served === undefined && kind === 'exited'
          if (isStopping || workers === 1 || isRefused) {
            if (!isStopping) stopAll('SIGTERM')
            return resolve(code)
          }
          if (performance.now() - since >= SOUND_MS) pause = FIRST_PAUSE_MS
          const message = `worker ${worker.place + 1} of ${workers} has ended and is started again`
          log.write({ level: 'error', event: 'fault', message, fields: { code } })
          await delay(pause)
          if (isStopping) return resolve(code)
          if (!serving.includes(generation)) return
          pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
          const beside = served ?? serving.find((each) => each.served !== undefined)?.served
          generation = begin(worker.place, beside)
          serving = serving.with(worker.place, generation)
        }
      }
      const beginning = beginAll()
      serving = Array.from(running)
      for (const each of serving) void follow(each)
      void beginning.then((begun) => {
        // The first one may have been started again meanwhile.
        serving = [...serving.slice(0, 1), ...begun.slice(1)]
        for (const each of begun.slice(1)) void follow(each)
        if (!isWatching || isStopping) return
        const modulesOf = (all: readonly Generation[]): Map<string, Mark> =>
          new Map(all.flatMap(({ modules }) => Array.from(modules)))
        watch.note(modulesOf(serving))
        watch.start(async () => {
          const looked = Array.from(modulesOf(serving).keys())
            // A missing module may be written in these folders: not every loader reports it.
            .flatMap((path) => [path, dirname(path)])
            .map((path) => [path, markNow(path)] as const)
          const later = await beginAll(serving[0]?.served)
          if (later.length < workers || later.some(({ served }) => served === undefined)) {
            const read = later.flatMap(({ catalog, modules }) => [...catalog, ...modules])
            watch.note(new Map([...looked, ...read]))
            order({ kind: 'leave' }, later)
            const message = 'still serving the handlers loaded before'
            return log.write({ level: 'error', event: 'reload_refused', message })
          }
          watch.note(modulesOf(later))
          const before = serving
          serving = later
          for (const each of later) void follow(each)
          order({ kind: 'leave' }, before)
          await Promise.all(before.map(({ left, ended }) => Promise.race([left, ended])))
          log.write({ level: 'info', event: 'reload', message: 'handlers loaded again, in a new process' })
        })
      })
    })
    const code = await over
    await Promise.all(Array.from(running, ({ ended }) => ended))
    return code
  } finally {
    watch.stop()
    await closeChains()
  }
}

/** Passes on what processes ask and tell each other. */
function exchange(
  generation: Generation,
  crewNow: () => readonly Generation[],
  order: (order: Order, to: Iterable<Generation>) => void,
): void {
  let questions = 0
  const ask = async (): Promise<void> => {
    questions += 1
    const question = generation.process.id * 1_000_000 + questions
    const asked = crewNow().filter((each) => each.served !== undefined)
    const counts = asked.map(
      (each) =>
        new Promise<readonly object[]>((resolve) => {
          const answered = (message: unknown): void => {
            if (!isA<Report>(message) || message.kind !== 'count' || message.question !== question) return
            end([message.count])
          }
          const end = (count: readonly object[]): void => {
            clearTimeout(late)
            each.process.off('message', answered)
            resolve(count)
          }
          const late = setTimeout(() => end([]), COUNTED_MS)
          each.process.on('message', answered)
        }),
    )
    order({ kind: 'count', question }, asked)
    order({ kind: 'counted', counts: (await Promise.all(counts)).flat() }, [generation])
  }
  generation.process.on('message', (message: unknown) => {
    if (!isA<Report>(message)) return
    if (message.kind === 'ask') void ask()
    if (message.kind === 'news') order(message, crewNow().slice(0, 1))
  })
}
