import { type BigIntStats, type FSWatcher, realpathSync, statSync, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** From an event to the look at the files, so that many events cost one look. */
const LOOK_MS = 150
/** Network disks and mounts of containers send no events: without one, the files are looked at this often. */
const FALLBACK_MS = 2_000
/** A file that has just changed may be half written: it has to stay as it is for so long before it is read. */
const SETTLE_MS = 100
/** One that is gone or empty is most likely being replaced. */
const ABSENT_MS = 1_000
/** Nobody is answered while a catalog is read: after that the files are left alone for so many times as long. */
const REST = 4

/** What is seen of a file without opening it; the same words as long as nobody has touched it. */
type Mark = string

const ABSENT: Mark = 'absent'

/**
 * Says when files have changed since they were read. Events of their folders, which also tell of editors that replace a
 * file and of links that are turned, only say when to look: what has changed is decided by the state of the files.
 */
export class Watch {
  readonly #now: () => number
  /** Files and folders by their path, as they were just before they were read. */
  readonly #read = new Map<string, Mark>()
  readonly #stat: typeof statBigInt
  readonly #fallbackMs: number
  #folders: readonly FSWatcher[] = []
  #timer: NodeJS.Timeout | undefined
  #look = (): void => undefined
  #isIdle = false
  /** An event has come since the last look began. */
  #isStirred = false
  #isStopped = false

  /** `now`: milliseconds on any clock that is not set back. */
  constructor(now: () => number, stats = statBigInt, fallbackMs = FALLBACK_MS) {
    this.#now = now
    this.#stat = stats
    this.#fallbackMs = fallbackMs
  }

  /** Everything is about to be read anew. */
  begin(): void {
    this.#read.clear()
  }

  /** Must be called with every file right before it is read, whether or not it exists; a folder tells of new files. */
  note(path: string): void {
    this.#read.set(path, noteOf(path))
  }

  /** Calls `changed`, which reads everything anew, each time the files have changed and lie still. */
  start(changed: () => void): void {
    let seen: string | undefined
    let since = 0
    const look = async (): Promise<void> => {
      this.#isStirred = false
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
      const began = this.#now()
      changed()
      this.#listen()
      this.#later(Math.max(LOOK_MS, REST * (this.#now() - began)))
    }
    this.#look = () => void look()
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
    if (this.#isStirred) return this.#later(LOOK_MS)
    this.#later(this.#fallbackMs)
    this.#isIdle = true
  }

  /** Anew each time: a folder may have been replaced, and its events end with it. */
  #listen(): void {
    for (const folder of this.#folders) folder.close()
    const stirred = (): void => {
      this.#isStirred = true
      if (this.#isIdle) this.#later(LOOK_MS)
    }
    const folders = new Set([...this.#read.keys()].flatMap(foldersOf))
    this.#folders = [...folders].flatMap((path) => listen(path, stirred))
  }

  /** One file at a time: a mount that hangs keeps one thread of the pool, and nobody who is served. */
  async #differences(): Promise<{ readonly all: string; readonly isAbsent: boolean } | undefined> {
    const changed: { readonly path: string; readonly now: Mark }[] = []
    for (const path of this.#read.keys()) {
      const now = await this.#stat(path).then(markOf, () => ABSENT)
      if (this.#read.get(path) !== now) changed.push({ path, now })
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

/** Nothing where there are no events: a folder that is missing, or more of them than the system allows. */
function listen(folder: string, stirred: () => void): FSWatcher[] {
  try {
    const watcher = watch(folder, { persistent: false }, stirred)
    watcher.on('error', () => watcher.close())
    return [watcher]
  } catch {
    return []
  }
}

function statBigInt(path: string): Promise<BigIntStats> {
  return stat(path, { bigint: true })
}

/** Right before the file is read, which blocks as well. */
function noteOf(path: string): Mark {
  try {
    return markOf(statSync(path, { bigint: true }))
  } catch {
    return ABSENT
  }
}

/** An empty file counts as absent: some editors empty it before they write. */
function markOf(stats: BigIntStats): Mark {
  const { ino, size, mtimeNs } = stats
  return size === 0n && stats.isFile() ? ABSENT : `${ino} ${size} ${mtimeNs}`
}
