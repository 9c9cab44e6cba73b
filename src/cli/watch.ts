import { statSync, type BigIntStats } from 'node:fs'
import { stat } from 'node:fs/promises'

/** How often the files are looked at. */
const LOOK_MS = 200
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
 * Looks at files and says when they have changed since they were read. It looks instead of listening, so that it sees
 * editors that replace a file, links that are turned to another folder, network disks and mounts of containers alike.
 */
export class Watch {
  readonly #now: () => number
  /** Files by their path, as they were just before they were read. */
  readonly #read = new Map<string, Mark>()
  readonly #stat: typeof statBigInt
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  /** `now`: milliseconds on any clock that is not set back. */
  constructor(now: () => number, stats = statBigInt) {
    this.#now = now
    this.#stat = stats
  }

  /** Everything is about to be read anew. */
  begin(): void {
    this.#read.clear()
  }

  /** Must be called with every file right before it is read, whether or not it exists. */
  note(path: string): void {
    this.#read.set(path, noteOf(path))
  }

  /** Calls `changed`, which reads everything anew, each time the files have changed and lie still. */
  start(changed: () => void): void {
    let seen: string | undefined
    let since = 0
    const look = async (): Promise<void> => {
      const found = await this.#differences()
      if (this.#isStopped) return
      if (found === undefined) {
        seen = undefined
        return this.#later(LOOK_MS, look)
      }
      const { all, isAbsent } = found
      if (all !== seen) {
        seen = all
        since = this.#now()
      }
      const still = this.#now() - since
      if (still < (isAbsent ? ABSENT_MS : SETTLE_MS)) return this.#later(SETTLE_MS, look)
      seen = undefined
      const began = this.#now()
      changed()
      this.#later(Math.max(LOOK_MS, REST * (this.#now() - began)), look)
    }
    this.#later(LOOK_MS, look)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #later(ms: number, look: () => Promise<void>): void {
    this.#timer = setTimeout(() => void look(), ms)
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
function markOf({ ino, size, mtimeNs }: BigIntStats): Mark {
  return size === 0n ? ABSENT : `${ino} ${size} ${mtimeNs}`
}
