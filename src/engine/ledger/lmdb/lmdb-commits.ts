import type { RootDatabase } from 'lmdb'
import { commit } from './lmdb-store.ts'

/** The commits of one store: each costs a flush to the disk, whatever it contains. */
export interface Commits {
  /** Makes changes in one commit, which is on disk when this resolves. Rejects with `LedgerError`. */
  readonly change: <T>(work: () => T) => Promise<T>
  /**
   * Makes a change in the commit of whatever is changed next, and before it; after `within` milliseconds, in a commit of
   * its own. When that commit fails, this rejects, and the change is made with the next one.
   */
  readonly join: (within: number, work: () => void) => Promise<void>
  /** Makes the changes that wait for others; from then on nothing waits. */
  readonly close: () => Promise<void>
}

interface Joining {
  readonly within: number
  readonly work: () => void
  readonly resolve: () => void
  readonly reject: (fault: unknown) => void
}

/** `check` is called in each transaction before its changes, and may throw. */
export function openCommits(root: RootDatabase, check: () => void): Commits {
  let joining: Joining[] = []
  let timer: { readonly timeout: NodeJS.Timeout; readonly at: number } | undefined
  let phase: 'open' | 'closed' = 'open'
  const flushWithin = (within: number): void => {
    const at = performance.now() + within
    if (timer !== undefined && at >= timer.at) return
    clearTimeout(timer?.timeout)
    const timeout = setTimeout(() => void flush().catch(() => undefined), within)
    timer = { timeout, at }
  }
  const change = async <T>(work: () => T): Promise<T> => {
    const joined = joining
    joining = []
    clearTimeout(timer?.timeout)
    timer = undefined
    let isStored = false
    try {
      const result = await commit(root, () => {
        check()
        for (const each of joined) each.work()
        // A fault of `work` does not keep its transaction from being stored; nor does it undo what has joined it.
        isStored = true
        const made = work()
        isStored = false
        return made
      })
      isStored = true
      return result
    } catch (fault) {
      if (!isStored && joined.length > 0) {
        if (phase === 'open') {
          joining = [...joined, ...joining]
          flushWithin(Math.min(...joined.map(({ within }) => within)))
        }
        for (const { reject } of joined) reject(fault)
      }
      throw fault
    } finally {
      if (isStored) for (const { resolve } of joined) resolve()
    }
  }
  const flush = async (): Promise<void> => {
    if (joining.length > 0) await change(() => undefined)
  }
  return {
    change,
    join: (within, work) => {
      if (phase === 'closed') return change(work)
      return new Promise((resolve, reject) => {
        joining.push({ within, work, resolve, reject })
        flushWithin(within)
      })
    },
    close: async () => {
      phase = 'closed'
      await flush().catch(() => undefined)
    },
  }
}
