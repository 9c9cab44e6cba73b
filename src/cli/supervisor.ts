import cluster from 'node:cluster'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Mark, markNow } from '../engine/catalog/load-catalog.ts'
import { Crew } from './crew.ts'
import type { Generation } from './generation.ts'
import type { Log } from './log.ts'
import { listenToSignals, type StopSignal } from './signals.ts'
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
  const crew = new Crew(workers)
  const stopAll = (signal: StopSignal): void => {
    watch.stop()
    crew.stop(signal)
  }
  const closeChains = await openChains()
  try {
    void signals.stopped.then(stopAll)
    signals.onReload(() => crew.order({ kind: 'reload' }, crew.serving))
    const code = await new Promise<number>((resolve) => {
      const follow = async (generation: Generation): Promise<void> => {
        const ending = await keepServing(crew, generation, log)
        if (ending === undefined) return
        if (!crew.isStopping) stopAll('SIGTERM')
        resolve(ending)
      }
      void beginServing(crew, follow).then(() => {
        if (isWatching && !crew.isStopping) watchModules(crew, watch, follow, log)
      })
    })
    await Promise.all(crew.running.map(({ ended }) => ended))
    return code
  } finally {
    watch.stop()
    await closeChains()
  }
}

/** Called with each process that begins to serve. */
type Follow = (generation: Generation) => Promise<void>

/** Starts the first processes. */
async function beginServing(crew: Crew, follow: Follow): Promise<void> {
  const beginning = crew.beginAll()
  crew.serving = crew.running
  for (const each of crew.serving) void follow(each)
  const [, ...others] = await beginning
  // The first one may have been started again meanwhile.
  crew.serving = [...crew.serving.slice(0, 1), ...others]
  for (const each of others) void follow(each)
}

/**
 * Starts a process again each time it has ended. Resolves to undefined when another generation has taken its place, and to an
 * exit code when all are to end.
 */
async function keepServing(
  crew: Crew,
  first: Generation,
  log: Pick<Log, 'write'>,
): Promise<number | undefined> {
  let generation = first
  let pause = FIRST_PAUSE_MS
  for (;;) {
    const since = performance.now()
    const { kind, code } = await generation.ended
    if (!crew.serving.includes(generation)) return undefined
    const { worker, served } = generation
    const isRefused = served === undefined && kind === 'exited'
    if (crew.isStopping || crew.workers === 1 || isRefused) return code
    if (performance.now() - since >= SOUND_MS) pause = FIRST_PAUSE_MS
    const message = `worker ${worker.place + 1} of ${crew.workers} has ended and is started again`
    log.write({ level: 'error', event: 'fault', message, fields: { code } })
    await delay(pause)
    if (crew.isStopping) return code
    if (!crew.serving.includes(generation)) return undefined
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
    const beside = served ?? crew.serving.find((each) => each.served !== undefined)?.served
    generation = crew.begin(worker.place, beside)
    crew.serving = crew.serving.with(worker.place, generation)
  }
}

/** Replaces the processes each time a module of the handlers has changed. */
function watchModules(crew: Crew, watch: Watch, follow: Follow, log: Pick<Log, 'write'>): void {
  watch.note(modulesOf(crew.serving))
  watch.start(async () => {
    const looked = Array.from(modulesOf(crew.serving).keys())
      // A missing module may be written in these folders: not every loader reports it.
      .flatMap((path) => [path, dirname(path)])
      .map((path) => [path, markNow(path)] as const)
    const later = await crew.beginAll(crew.serving[0]?.served)
    if (later.length < crew.workers || later.some(({ served }) => served === undefined)) {
      const read = later.flatMap(({ catalog, modules }) => [...catalog, ...modules])
      watch.note(new Map([...looked, ...read]))
      crew.order({ kind: 'leave' }, later)
      const message = 'still serving the handlers loaded before'
      return log.write({ level: 'error', event: 'reload_refused', message })
    }
    watch.note(modulesOf(later))
    const before = crew.serving
    crew.serving = later
    for (const each of later) void follow(each)
    crew.order({ kind: 'leave' }, before)
    await Promise.all(before.map(({ left, ended }) => Promise.race([left, ended])))
    log.write({ level: 'info', event: 'reload', message: 'handlers loaded again, in a new process' })
  })
}

function modulesOf(generations: readonly Generation[]): Map<string, Mark> {
  return new Map(generations.flatMap(({ modules }) => Array.from(modules)))
}
