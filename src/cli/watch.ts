import { statSync } from 'node:fs'

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
  #timer: NodeJS.Timeout | undefined

  /** `now`: milliseconds on any clock that is not set back. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Everything is about to be read anew. */
  begin(): void {
    this.#read.clear()
  }

  /** To be told of every file right before it is read, whether or not it is there. */
  note(path: string): void {
    this.#read.set(path, markOf(path))
  }

  /** Calls `changed`, which reads everything anew, each time the files have changed and lie still. */
  start(changed: () => void): void {
    let seen: string | undefined
    let since = 0
    const look = (): void => {
      const found = this.#differences()
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
    clearTimeout(this.#timer)
  }

  #later(ms: number, look: () => void): void {
    this.#timer = setTimeout(look, ms)
  }

  #differences(): { readonly all: string; readonly isAbsent: boolean } | undefined {
    const changed = Array.from(this.#read, ([path, mark]) => ({ path, mark, now: markOf(path) })).filter(
      ({ mark, now }) => mark !== now,
    )
    if (changed.length === 0) return undefined
    return {
      all: changed.map(({ path, now }) => `${path} ${now}`).join('\n'),
      isAbsent: changed.some(({ now }) => now === ABSENT),
    }
  }
}

/** An empty file counts as absent: some editors empty it before they write. */
function markOf(path: string): Mark {
  try {
    const { ino, size, mtimeNs } = statSync(path, { bigint: true })
    return size === 0n ? ABSENT : `${ino} ${size} ${mtimeNs}`
  } catch {
    return ABSENT
  }
}
