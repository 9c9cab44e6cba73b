import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { listening } from '../../support/listening.ts'
import type { Dice } from './dice.ts'

/** Where the work of the storm is done, out of reach of every kill: it counts what was asked of it. */
export interface Office {
  readonly url: string
  readonly runs: () => number
  /** What was kept for payments, by their public id. */
  readonly notes: ReadonlyMap<string, Note>
  readonly close: () => Promise<void>
}

export type Note = 'prepared' | 'committed' | 'aborted'

const LONGEST_MS = 150
/** So much of the work fails. */
const UNWELL = 0.03

export async function openOffice(dice: Dice): Promise<Office> {
  let runs = 0
  const notes = new Map<string, Note>()
  const answer = async (path: string): Promise<number> => {
    const [, task = '', subject = ''] = path.split('/')
    if (task === 'commit' || task === 'abort') {
      // An abort of what was never prepared is allowed and means nothing.
      if (notes.has(subject)) notes.set(subject, task === 'commit' ? 'committed' : 'aborted')
      return 0
    }
    runs += 1
    const run = runs
    await delay(dice.between(0, LONGEST_MS))
    if (dice.chance(UNWELL)) throw new Error('unwell')
    if (task === 'prepare') notes.set(subject, 'prepared')
    return run
  }
  const server = createServer((request, response) => {
    answer(request.url ?? '').then(
      (run) => response.setHeader('content-type', 'application/json').end(JSON.stringify(run)),
      () => response.writeHead(500).end(),
    )
  })
  const { url, close } = await listening(server)
  return { url, runs: () => runs, notes, close }
}
