import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { dirname, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Mark, markNow } from '../engine/catalog/load.ts'
import { isJsonObject } from '../engine/base/json.ts'
import type { ConsoleKeys } from '../console/access.ts'
import type { Log } from './log.ts'
import { endNow, listenToSignals, type Signals } from './signals.ts'
import { Watch } from './watch.ts'

/** What a process of `serve --watch` serves. */
export interface Served {
  /** Routes and tools that have their handlers. */
  readonly names: readonly string[]
  readonly port: number
  /** Undefined when it has no console. */
  readonly consoleKeys: ConsoleKeys | undefined
}

type Order =
  /** `before`: what the process serves that is to be replaced. */
  { readonly kind: 'begin'; readonly before?: Served } | { readonly kind: 'reload' | 'stop' | 'leave' }

type Report =
  /** It can be told what to do. */
  | { readonly kind: 'joined' }
  /** It has read its catalog, or tried to. */
  | { readonly kind: 'read'; readonly files: readonly (readonly [string, Mark])[] }
  | { readonly kind: 'serving'; readonly served: Served }
  /** It takes no more connections. */
  | { readonly kind: 'left' }

/** The supervisor, as the process sees it that serves. */
export interface Supervisor extends Signals {
  /** What the process serves that this one replaces. */
  readonly before: Served | undefined
  /** Resolves when another process serves in place of this one. */
  readonly replaced: Promise<void>
  report(report: Report): void
}

/** Must be called in a process that `supervise` has started. */
export async function joinSupervisor(): Promise<Supervisor> {
  // A terminal sends them to all processes: the supervisor tells this one what to do.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  // The supervisor has been killed. Node.js calls `process.exit` next.
  process.prependListener('disconnect', endNow)
  let reload = (): void => undefined
  return new Promise((resolve) => {
    const ordered = (kind: Order['kind']): Promise<void> =>
      new Promise((obey) =>
        process.on('message', (order) => isA<Order>(order) && order.kind === kind && obey()),
      )
    const stopped = ordered('stop').then(() => 'SIGTERM' as const)
    const replaced = ordered('leave')
    process.on('message', (order) => {
      if (!isA<Order>(order)) return
      if (order.kind === 'reload') reload()
      if (order.kind === 'begin')
        resolve({
          before: order.before,
          stopped,
          replaced,
          onReload: (wanted) => {
            reload = wanted
          },
          report,
        })
    })
    report({ kind: 'joined' })
  })
}

function report(report: Report): void {
  process.send?.(report)
}

/** Messages between these processes come from this program. */
function isA<Message>(message: unknown): message is Message {
  return isJsonObject(message) && 'kind' in message
}

/** One process with everything that it has loaded. */
interface Generation {
  readonly worker: Worker
  /** Modules of the project, each as it was when it was loaded, or looked for. */
  readonly modules: Map<string, Mark>
  /** The files of its catalog. */
  catalog: readonly (readonly [string, Mark])[]
  served: Served | undefined
  readonly joined: Promise<unknown>
  /** Resolves when it serves, or has ended. */
  readonly begun: Promise<unknown>
  readonly left: Promise<unknown>
  readonly ended: Promise<number>
}

/**
 * Runs `serve` in a process of its own, and in a new one each time a module of its handlers has changed. Both listen on
 * the port while one follows the other, and the old one ends when its requests are answered. A new process that does
 * not get as far as serving changes nothing. Resolves to the exit code.
 */
export async function supervise(
  log: Pick<Log, 'write'>,
  openChains: () => Promise<() => Promise<void>>,
): Promise<number> {
  const signals = listenToSignals()
  const watch = new Watch(() => performance.now())
  const running = new Set<Generation>()
  const order = (order: Order, to: Iterable<Generation> = running): void => {
    for (const { worker } of to) if (worker.isConnected()) worker.send(order)
  }
  const begin = (before?: Served): Generation => {
    const generation = startGeneration()
    running.add(generation)
    void generation.ended.then(() => running.delete(generation))
    void generation.joined.then(() =>
      order(before === undefined ? { kind: 'begin' } : { kind: 'begin', before }, [generation]),
    )
    return generation
  }
  const closeChains = await openChains()
  try {
    let current = begin()
    void signals.stopped.then(() => {
      // A process that began after this would not be told to stop.
      watch.stop()
      order({ kind: 'stop' })
    })
    signals.onReload(() => order({ kind: 'reload' }, [current]))
    const over = new Promise<number>((resolve) => {
      const follow = (generation: Generation): void =>
        void generation.ended.then((code) => generation === current && resolve(code))
      follow(current)
      void current.begun.then(() => {
        watch.note(current.modules)
        watch.start(async () => {
          const looked = Array.from(current.modules.keys())
            // A missing module may be written in these folders: not every loader reports it.
            .flatMap((path) => [path, dirname(path)])
            .map((path) => [path, markNow(path)] as const)
          const later = begin(current.served)
          await later.begun
          if (later.served === undefined) {
            watch.note(new Map([...looked, ...later.catalog, ...later.modules]))
            const message = 'still serving the handlers loaded before'
            return log.write({ level: 'error', event: 'reload_refused', message })
          }
          watch.note(later.modules)
          const before = current
          current = later
          follow(later)
          order({ kind: 'leave' }, [before])
          await Promise.race([before.left, before.ended])
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

function startGeneration(): Generation {
  // Node.js then reports the modules that it loads or does not find, as to its own --watch.
  const worker = cluster.fork({ WATCH_REPORT_DEPENDENCIES: '1' })
  // Its last messages may arrive after its end, and before the channel is closed.
  const ended = Promise.all([once(worker, 'exit'), once(worker, 'disconnect')]).then(([[code]]) =>
    typeof code === 'number' ? code : 1,
  )
  const reported = (kind: Report['kind']): Promise<void> =>
    new Promise((resolve) =>
      worker.on('message', (message) => isA<Report>(message) && message.kind === kind && resolve()),
    )
  const generation: Generation = {
    worker,
    modules: new Map(),
    catalog: [],
    served: undefined,
    joined: reported('joined'),
    begun: Promise.race([reported('serving'), ended]),
    left: reported('left'),
    ended,
  }
  worker.on('message', (message: unknown) => {
    for (const path of modulesIn(message))
      if (!generation.modules.has(path)) generation.modules.set(path, markNow(path))
    if (!isA<Report>(message)) return
    if (message.kind === 'read') generation.catalog = message.files
    if (message.kind === 'serving') generation.served = message.served
  })
  return generation
}

const PROGRAM = fileURLToPath(new URL('..', import.meta.url))

/** Packages stay as they are until the server is restarted, this program among them. */
function modulesIn(message: unknown): string[] {
  if (!isJsonObject(message)) return []
  return [message['watch:import'], message['watch:require']]
    .flat()
    .flatMap((place) => (typeof place === 'string' ? [place] : []))
    .map((place) => (place.startsWith('file:') ? fileURLToPath(place) : place))
    .filter((path) => path.includes(sep) && !path.startsWith(PROGRAM))
    .filter((path) => !path.includes(`${sep}node_modules${sep}`))
}
