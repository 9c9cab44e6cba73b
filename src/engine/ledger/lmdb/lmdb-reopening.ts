import { readFileSync, statSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { LedgerError } from '../../base/errors.ts'
import type { Ledger } from '../ledger.ts'

/** Which file it is; empty when there is none. */
export function inodeOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false, bigint: true })
  return found === undefined ? '' : `${found.dev}:${found.ino}`
}

/** Other files have taken the place of the opened ones, and an operator has compared them with the chain. */
export class ReopenedError extends LedgerError {
  constructor(store: string) {
    super(`${store} was reopened with other files`)
  }
}

/** Whether an operator has reopened the ledger with this file since a time, in milliseconds since the epoch. */
export function isReopened(file: string, since: number): boolean {
  try {
    const [inode, at] = readFileSync(markOf(file), 'utf8').split(' ')
    return inode === inodeOf(file) && Number(at) > since
  } catch {
    return false
  }
}

export async function markReopened(file: string, now: number): Promise<void> {
  const mark = markOf(file)
  await writeFile(`${mark}.new`, `${inodeOf(file)} ${now}`, { mode: 0o600 })
  await rename(`${mark}.new`, mark)
}

function markOf(file: string): string {
  return join(dirname(file), 'reopened')
}

/**
 * A ledger that goes on with the new files once an operator has reopened it. Until then changes of existing payments are
 * made in the old files, which stay open for those who still read them.
 */
export function followReopening(first: Ledger, open: () => Promise<Ledger>): Ledger {
  const opened = [first]
  let current = first
  let opening: Promise<void> | undefined
  const openAgain = async (): Promise<void> => {
    current = await open()
    opened.push(current)
  }
  const trusted = async <T>(work: (ledger: Ledger) => Promise<T>): Promise<T> => {
    const used = current
    try {
      return await work(used)
    } catch (fault) {
      if (!(fault instanceof ReopenedError)) throw fault
    }
    if (current === used) await (opening ??= openAgain().finally(() => (opening = undefined)))
    return work(current)
  }
  return {
    name: first.name,
    answers: {
      write: (...given) => current.answers.write(...given),
      read: (...given) => current.answers.read(...given),
      delete: (...given) => current.answers.delete(...given),
      sweep: (...given) => current.answers.sweep(...given),
    },
    now: first.now,
    check: () => trusted((ledger) => ledger.check()),
    get: (key) => current.get(key),
    find: (id) => current.find(id),
    insert: (record) => trusted((ledger) => ledger.insert(record)),
    states: {
      get: (name) => current.states.get(name),
      list: (prefix) => current.states.list(prefix),
    },
    commit: (changes, states) => trusted((ledger) => ledger.commit(changes, states)),
    replace: (previous, next) => current.replace(previous, next),
    replaceSoon: (previous, next) => current.replaceSoon(previous, next),
    remove: (record) => current.remove(record),
    records: () => current.records(),
    search: (term, limit, before) => current.search(term, limit, before),
    totals: {
      read: (kind, from, to) => current.totals.read(kind, from, to),
      rebuild: () => current.totals.rebuild(),
    },
    counts: {
      add: (date, counts) => current.counts.add(date, counts),
      read: (from, to) => current.counts.read(from, to),
    },
    due: (queue, now, limit) => current.due(queue, now, limit),
    undelivered: (buyer, since, limit) => current.undelivered(buyer, since, limit),
    addExpiring: (name, fact, until) => trusted((ledger) => ledger.addExpiring(name, fact, until)),
    addWithinLimit: (name, amount, limit, now) =>
      trusted((ledger) => ledger.addWithinLimit(name, amount, limit, now)),
    listExpiring: (name, now) => trusted((ledger) => ledger.listExpiring(name, now)),
    lease: (name, owner, now, until) => current.lease(name, owner, now, until),
    release: (lease, left) => current.release(lease, left),
    reopen: () => current.reopen(),
    close: async () => {
      for (const ledger of opened) await ledger.close()
    },
  }
}
