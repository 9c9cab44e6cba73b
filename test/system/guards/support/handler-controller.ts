import { createServer } from 'node:http'
import { listening } from '../../../support/http.ts'

/** One run of a handler. */
export interface Run {
  readonly name: string
  readonly n: number
  /** Empty for unpaid calls. */
  readonly payer: string
  /** 1 for the first with this name, number and payer at this server. */
  readonly run: number
}

/** `hang` never answers; `large` answers above the limit; the others are thrown by the handler. */
export type Fault = 'source' | 'parameter' | 'bug' | 'large' | 'hang'

/** An HTTP server that decides how the handlers of `test/system/guards/handlers` end, and counts their runs. */
export interface HandlerController {
  /** The value of GUARD_CONTROLLER for a server; runs are counted per server name. */
  readonly urlFor: (server: string) => string
  /** Number of runs for this payer. */
  readonly runsOf: (payer: string) => number
  /** How many different idempotency keys those runs had. */
  readonly keysOf: (payer: string) => number
  readonly close: () => Promise<void>
}

/** `decide` may act before it returns how a run ends; undefined: with an answer. */
export async function openHandlerController(
  decide: (run: Run) => Promise<Fault | undefined>,
): Promise<HandlerController> {
  const runs = new Map<string, number>()
  const payers = new Map<string, number>()
  const keys = new Map<string, Set<string>>()
  const { url, close } = await listening(
    createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://controller')
      const name = searchParams.get('name') ?? ''
      const n = Number(searchParams.get('n'))
      const payer = (searchParams.get('payer') ?? '').toLowerCase()
      const key = [pathname, name, n, payer].join(' ')
      const run = (runs.get(key) ?? 0) + 1
      runs.set(key, run)
      payers.set(payer, (payers.get(payer) ?? 0) + 1)
      keys.set(payer, (keys.get(payer) ?? new Set()).add(searchParams.get('id') ?? ''))
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
    keysOf: (payer) => keys.get(payer.toLowerCase())?.size ?? 0,
    close,
  }
}
