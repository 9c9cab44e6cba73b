import { type Context, type Middleware } from 'koa'
import { type Observe, detailOf } from '../base/access-record.ts'
import type { Notes } from './reply.ts'

export interface AccessLogSettings {
  readonly now: () => number
  /** Called for every request; undefined: no log. */
  readonly observe: Observe | undefined
}

/** Writes one line per request. */
export function accessLog({ now, observe }: AccessLogSettings): Middleware {
  if (observe === undefined) return (_, next) => next()
  return async (ctx, next) => {
    const began = now()
    await next()
    const { place = 'unknown', price, code, detail, cached, logged }: Notes = ctx['state']
    if (logged === true) return
    const { method, status, response } = ctx
    const outcome = code ?? (status < 400 ? 'ok' : status < 500 ? 'request_malformed' : 'internal')
    observe({
      method,
      place,
      status,
      outcome,
      detail: detailOf(status, outcome, detail),
      price,
      cached,
      ms: now() - began,
      payment: paymentOf(response),
    })
  }
}

/** The payment of an unresolved settlement is in the Location of its answer. */
function paymentOf(response: Context['response']): string | undefined {
  const payment: string | undefined = response.get('Ratecard-Payment')
  const location: string | undefined = response.get('Location')
  return payment ?? location?.replace('/payments/', '')
}
