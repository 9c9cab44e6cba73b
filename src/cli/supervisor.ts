import cluster, { type Worker as ClusterWorker } from 'node:cluster'
import { once } from 'node:events'
import { dirname, sep } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Mark, markNow } from '../engine/catalog/load.ts'
import type { AccessRecord } from '../engine/base/access-record.ts'
import { isJsonObject } from '../engine/base/json.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'
import type { ConsoleKeys } from '../console/access.ts'
import type { Log } from './log.ts'
import { endNow, listenToSignals, type Signals, type StopSignal } from './signals.ts'
import { Watch } from './watch.ts'

/** What a process serves that a supervisor has started. */
export interface Served {
  /** Routes and tools that have their handlers. */
  readonly names: readonly string[]
  readonly port: number
  /** Undefined when it has no console. */
  readonly consoleKeys: ConsoleKeys | undefined
}

/** One of the processes that serve together, counted from 0. The first one has what exists once: the console. */
export interface Worker {
  readonly place: number
  readonly of: number
}

/** What the first process shows of the others. */
export type News =
  | { readonly kind: 'access'; readonly access: AccessRecord }
  | { readonly kind: 'change'; readonly previous: PaymentRecord; readonly next: PaymentRecord }

type Order =
  /** `before`: what is served already, by the process that is to be replaced or by another one beside it. */
  | { readonly kind: 'begin'; readonly worker: Worker; readonly before?: Served }
  | { readonly kind: 'stop'; readonly signal: StopSignal }
  | { readonly kind: 'reload' | 'leave' }
  /** To each process: what has it counted? */
  | { readonly kind: 'count'; readonly question: number }
  /** To the process that has asked: what each has counted. */
  | { readonly kind: 'counted'; readonly counts: readonly object[] }
  /** To the first process: what has happened in another one. */
  | { readonly kind: 'told'; readonly news: News }

type Report =
  /** It can be told what to do. */
  | { readonly kind: 'joined' }
  /** It has read its catalog, or tried to. */
  | { readonly kind: 'read'; readonly files: readonly (readonly [string, Mark])[] }
  | { readonly kind: 'serving'; readonly served: Served }
  /** It takes no more connections. */
  | { readonly kind: 'left' }
  /** It asks what all have counted. */
  | { readonly kind: 'ask' }
  | { readonly kind: 'count'; readonly question: number; readonly count: object }
  /** Something has happened that the first process shows. */
  | { readonly kind: 'tell'; readonly news: News }

/** The supervisor, as the process sees it that serves. */
export interface Supervisor extends Signals {
  readonly worker: Worker
  /** What is served already, by the process that this one replaces or by another one beside it. */
  readonly before: Served | undefined
  /** Resolves when another process serves in place of this one. */
  readonly replaced: Promise<void>
  report(report: Report): void
  /** What each process that serves has counted; `count` says what this one has. */
  counts(): Promise<readonly object[]>
  onCount(count: () => Promise<object>): void
  /** Calls `hear` with what other processes tell the first one. */
  onNews(hear: (news: News) => void): void
}

/** Must be called in a process that `supervise` has started. */
export async function joinSupervisor(): Promise<Supervisor> {
  // A terminal sends them to all processes: the supervisor tells this one what to do.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  // The supervisor has been killed. Node.js calls `process.exit` next.
  process.prependListener('disconnect', endNow)
  let reload = (): void => undefined
  let count = async (): Promise<object> => ({})
  let hear = (_news: News): void => undefined
  const asking: ((counts: readonly object[]) => void)[] = []
  return new Promise((resolve) => {
    let stop = (_signal: StopSignal): void => undefined
    const stopped = new Promise<StopSignal>((obey) => (stop = obey))
    let leave = (): void => undefined
    const replaced = new Promise<void>((obey) => (leave = obey))
    const join = ({ worker, before }: Extract<Order, { readonly kind: 'begin' }>): void =>
      resolve({
        worker,
        before,
        stopped,
        replaced,
        onReload: (wanted) => {
          reload = wanted
        },
        report,
        counts: () =>
          new Promise((answer) => {
            asking.push(answer)
            report({ kind: 'ask' })
          }),
        onCount: (wanted) => {
          count = wanted
        },
        onNews: (wanted) => {
          hear = wanted
        },
      })
    process.on('message', (order) => {
      if (!isA<Order>(order)) return
      switch (order.kind) {
        case 'begin':
          return join(order)
        case 'reload':
          return reload()
        case 'stop':
          return stop(order.signal)
        case 'leave':
          return leave()
        case 'count':
          return void count().then((counted) =>
            report({ kind: 'count', question: order.question, count: counted }),
          )
        case 'counted':
          return asking.shift()?.(order.counts)
        case 'told':
          return hear(order.news)
      }
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
  readonly process: ClusterWorker
  /** Modules of the project, each as it was when it was loaded, or looked for. */
  readonly modules: Map<string, Mark>
  /** The files of its catalog. */
  catalog: readonly (readonly [string, Mark])[]
  served: Served | undefined
  readonly joined: Promise<unknown>
  /** Resolves when it serves, or has ended. */
  readonly begun: Promise<unknown>
  readonly left: Promise<unknown>
  readonly ended: Promise<Ending>
}

/** `killed`: by a signal, or by lack of memory. */
interface Ending {
  readonly kind: 'exited' | 'killed'
  readonly code: number
}

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
  /** The processes that serve now, by place. */
  let crew: readonly Generation[] = []
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
    exchange(generation, () => crew, order)
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
    signals.onReload(() => order({ kind: 'reload' }, crew))
    const over = new Promise<number>((resolve) => {
      /** Starts a process again that serves no more, until another generation takes its place. */
      const follow = async (first: Generation): Promise<void> => {
        let generation = first
        let pause = FIRST_PAUSE_MS
        for (;;) {
          const since = performance.now()
          const { kind, code } = await generation.ended
          if (!crew.includes(generation)) return
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
          if (!crew.includes(generation)) return
          pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
          const beside = served ?? crew.find((each) => each.served !== undefined)?.served
          generation = begin(worker.place, beside)
          crew = crew.with(worker.place, generation)
        }
      }
      const beginning = beginAll()
      crew = Array.from(running)
      for (const each of crew) void follow(each)
      void beginning.then((begun) => {
        // The first one may have been started again meanwhile.
        crew = [...crew.slice(0, 1), ...begun.slice(1)]
        for (const each of begun.slice(1)) void follow(each)
        if (!isWatching || isStopping) return
        const modulesOf = (all: readonly Generation[]): Map<string, Mark> =>
          new Map(all.flatMap(({ modules }) => Array.from(modules)))
        watch.note(modulesOf(crew))
        watch.start(async () => {
          const looked = Array.from(modulesOf(crew).keys())
            // A missing module may be written in these folders: not every loader reports it.
            .flatMap((path) => [path, dirname(path)])
            .map((path) => [path, markNow(path)] as const)
          const later = await beginAll(crew[0]?.served)
          if (later.length < workers || later.some(({ served }) => served === undefined)) {
            const read = later.flatMap(({ catalog, modules }) => [...catalog, ...modules])
            watch.note(new Map([...looked, ...read]))
            order({ kind: 'leave' }, later)
            const message = 'still serving the handlers loaded before'
            return log.write({ level: 'error', event: 'reload_refused', message })
          }
          watch.note(modulesOf(later))
          const before = crew
          crew = later
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
    if (message.kind === 'tell') order({ kind: 'told', news: message.news }, crewNow().slice(0, 1))
  })
}

function startGeneration(place: Worker): Generation {
  // Node.js then reports the modules that it loads or does not find, as to its own --watch.
  const worker = cluster.fork({ WATCH_REPORT_DEPENDENCIES: '1' })
  // Its last messages may arrive after its end, and before the channel is closed.
  const ended = Promise.all([once(worker, 'exit'), once(worker, 'disconnect')]).then(([[code]]): Ending =>
    typeof code === 'number' ? { kind: 'exited', code } : { kind: 'killed', code: 1 },
  )
  const reported = (kind: Report['kind']): Promise<void> =>
    new Promise((resolve) =>
      worker.on('message', (message) => isA<Report>(message) && message.kind === kind && resolve()),
    )
  const generation: Generation = {
    worker: place,
    process: worker,
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
