import { type BigIntStats, type FSWatcher, realpathSync, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ABSENT, type Mark, markOf } from '../engine/catalog/load-catalog.ts'

/** Time from an event to the look at the files, so that many events cost one look. */
const LOOK_MS = 150
/** Network disks and mounts of containers send no events: without one, the files are looked at this often. */
const FALLBACK_MS = 2_000
/** A file that has just changed may be half written: it has to stay as it is for so long before it is read. */
const SETTLE_MS = 100
/** The same for a file that is gone or empty: most likely it is being replaced. */
const ABSENT_MS = 1_000

/**
 * Says when files have changed since they were read. Events of their folders, which also tell of editors that replace a
 * file and of links that get another target, only say when to look: what has changed is decided by the state of the
 * files.
 */
export class Watch {
  readonly #now: () => number
  #read: ReadonlyMap<string, Mark> = new Map()
  readonly #stat: typeof statBigInt
  readonly #fallbackMs: number
  #folders: readonly FSWatcher[] = []
  #timer: NodeJS.Timeout | undefined
  #look = (): void => undefined
  #isIdle = false
  /** Whether an event has come since the last look began. */
  #hasEvent = false
  #isStarted = false
  #isStopped = false

  /** `now`: milliseconds on any clock that is not set back. */
  constructor(now: () => number, stats = statBigInt, fallbackMs = FALLBACK_MS) {
    this.#now = now
    this.#stat = stats
    this.#fallbackMs = fallbackMs
  }

  /** Everything that was read, whether or not it exists, each file as it was right before that. */
  note(files: ReadonlyMap<string, Mark>): void {
    this.#read = files
    if (this.#isStarted) this.#listen()
  }

  /** Calls `changed`, which reads everything again, each time the files have changed and no further change follows. */
  start(changed: () => Promise<void>): void {
    let seen: string | undefined
    let since = 0
    const look = async (): Promise<void> => {
      this.#hasEvent = false
      const found = await this.#differences()
      if (this.#isStopped) return
      if (found === undefined) {
        seen = undefined
        return this.#rest()
      }
      const { all, isAbsent } = found
      if (all !== seen) {
        seen = all
        since = this.#now()
      }
      const still = this.#now() - since
      if (still < (isAbsent ? ABSENT_MS : SETTLE_MS)) return this.#later(SETTLE_MS)
      seen = undefined
      await changed()
      if (this.#isStopped) return
      this.#later(LOOK_MS)
    }
    this.#look = () => void look()
    this.#isStarted = true
    this.#listen()
    this.#later(LOOK_MS)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    for (const folder of this.#folders) folder.close()
  }

  #later(ms: number): void {
    this.#isIdle = false
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#look, ms)
  }

  #rest(): void {
    if (this.#hasEvent) return this.#later(LOOK_MS)
    this.#later(this.#fallbackMs)
    this.#isIdle = true
  }

  /** Opens the folders again each time: one may have been replaced, which ends its events. */
  #listen(): void {
    for (const folder of this.#folders) folder.close()
    const onEvent = (): void => {
      this.#hasEvent = true
      if (this.#isIdle) this.#later(LOOK_MS)
    }
    const folders = new Set([...this.#read.keys()].flatMap(foldersOf))
    this.#folders = [...folders].flatMap((path) => listen(path, onEvent))
  }

  /** Looks at one file at a time: a mount that hangs then blocks one thread of the pool, and no request. */
  async #differences(): Promise<{ readonly all: string; readonly isAbsent: boolean } | undefined> {
    const changed: { readonly path: string; readonly now: Mark }[] = []
    for (const [path, before] of this.#read) {
      const now = await this.#stat(path).then(markOf, () => ABSENT)
      if (before !== now) changed.push({ path, now })
    }
    if (changed.length === 0) return undefined
    return {
      all: changed.map(({ path, now }) => `${path} ${now}`).join('\n'),
      isAbsent: changed.some(({ now }) => now === ABSENT),
    }
  }
}

/** Where the file is, and where it is if it is a link. */
function foldersOf(path: string): string[] {
  try {
    return [dirname(path), dirname(realpathSync(path))]
  } catch {
    return [dirname(path)]
  }
}

/** Empty where there are no events: the folder is missing, or the system allows no further watcher. */
function listen(folder: string, onEvent: () => void): FSWatcher[] {
  try {
    const watcher = watch(folder, { persistent: false }, onEvent)
    watcher.on('error', () => watcher.close())
    return [watcher]
  } catch {
    return []
  }
}

function statBigInt(path: string): Promise<BigIntStats> {
  return stat(path, { bigint: true })
}
