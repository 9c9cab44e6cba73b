import { createServer } from 'node:http'
import { listening } from './listening.ts'

/** Does the work of `fixtures/payments`: counts the runs, and lets a test decide how each one ends. */
export interface Workplace {
  readonly url: string
  /** Runs begun so far. */
  readonly runs: () => number
  /** Awaited in every run from now on before it answers; a throw fails the work. */
  readonly during: (event: () => Promise<void>) => void
  readonly close: () => Promise<void>
}

export async function openWorkplace(): Promise<Workplace> {
  let runs = 0
  let event: () => Promise<void> = async () => {}
  const server = createServer((_, response) => {
    runs += 1
    const run = runs
    event().then(
      () => response.setHeader('content-type', 'application/json').end(JSON.stringify(run)),
      () => response.writeHead(500).end(),
    )
  })
  const { url, close } = await listening(server)
  return { url, close, runs: () => runs, during: (next) => (event = next) }
}
