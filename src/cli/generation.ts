import cluster, { type Worker as ClusterWorker } from 'node:cluster'
import { once } from 'node:events'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Mark, markNow } from '../engine/catalog/load-catalog.ts'
import { isJsonObject } from '../engine/base/json.ts'
import { isA, type Report, type Served, type Worker } from './supervisor-messages.ts'

/** One process with everything that it has loaded. */
export interface Generation {
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

export function startGeneration(place: Worker): Generation {
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
