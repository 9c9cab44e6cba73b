import type { Context, Middleware } from 'koa'
import type { Observe } from '../access.ts'
import type { ErrorCode } from '../errors.ts'
import type { Micros } from '../money.ts'

/** What a line says besides method, status and time; kept in `ctx.state`. */
export interface Notes {
  readonly place?: string
  readonly price?: Micros | undefined
  readonly code?: ErrorCode | undefined
  readonly cached?: boolean | undefined
  /** The calls inside the request have lines of their own. */
  readonly logged?: boolean
}

export interface AccessLogSettings {
  readonly now: () => number
  /** Called for every request; undefined: no log. */
  readonly observe: Observe | undefined
}

export function note(ctx: Context, notes: Notes): void {
  Object.assign(ctx.state, notes)
}

/** One line a request. */
export function accessLog({ now, observe }: AccessLogSettings): Middleware {
  return async (ctx, next) => {
    if (observe === undefined) return next()
    const began = now()
    await next()
    const { place = 'unknown', price, code, cached, logged }: Notes = ctx['state']
    if (logged === true) return
    const { method, status, response } = ctx
    observe({
      method,
      place,
      status,
      outcome: code ?? (status < 400 ? 'ok' : status < 500 ? 'request_malformed' : 'internal'),
      price,
      cached,
      ms: now() - began,
      payment: paymentOf(response),
    })
  }
}

/** A payment that is not yet decided is where the answer points. */
function paymentOf(response: Context['response']): string | undefined {
  const payment: string | undefined = response.get('Ratecard-Payment')
  const location: string | undefined = response.get('Location')
  return payment ?? location?.replace('/payments/', '')
}
