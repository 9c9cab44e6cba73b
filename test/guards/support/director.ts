import { createServer } from 'node:http'
import { listening } from '../../support/listening.ts'

/** One run of a handler. */
export interface Run {
  readonly name: string
  readonly n: number
  /** Empty when nobody has paid. */
  readonly payer: string
  /** 1 for the first with this name, number and payer at this server. */
  readonly run: number
}

/** `hang` never answers; the others are what the handler throws, or an answer above the limit. */
export type Fault = 'source' | 'parameter' | 'bug' | 'large' | 'hang'

/** Decides how the handlers of `test/guards/handlers` end, and counts their runs. */
export interface Director {
  /** For the variable GUARD_DIRECTOR of a server; runs are counted for each name of a server. */
  readonly urlFor: (server: string) => string
  /** Runs whose payer is this one. */
  readonly runsOf: (payer: string) => number
  readonly close: () => Promise<void>
}

/** `decide` may act before it says how a run ends; undefined: with an answer. */
export async function openDirector(decide: (run: Run) => Promise<Fault | undefined>): Promise<Director> {
  const runs = new Map<string, number>()
  const payers = new Map<string, number>()
  const { url, close } = await listening(
    createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://director')
      const name = searchParams.get('name') ?? ''
      const n = Number(searchParams.get('n'))
      const payer = (searchParams.get('payer') ?? '').toLowerCase()
      const key = [pathname, name, n, payer].join(' ')
      const run = (runs.get(key) ?? 0) + 1
      runs.set(key, run)
      payers.set(payer, (payers.get(payer) ?? 0) + 1)
      decide({ name, n, payer, run }).then(
        (fault) => {
          if (fault === 'hang') return
          response.setHeader('content-type', 'application/json').end(JSON.stringify({ run, fault }))
        },
        () => request.socket.destroy(),
      )
    }),
  )
  return {
    urlFor: (server) => `${url}/${server}`,
    runsOf: (payer) => payers.get(payer.toLowerCase()) ?? 0,
    close,
  }
}
