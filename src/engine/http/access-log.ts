import { type Context, type Middleware } from 'koa'
import { type Observe, detailOf } from '../base/access-record.ts'
import type { Notes } from './reply.ts'
import { requestIds } from './request-id.ts'

export interface AccessLogSettings {
  readonly now: () => number
  readonly random: (bytes: number) => Uint8Array
  /** Called for every request; undefined: no log. */
  readonly observe: Observe | undefined
}

/** Names each request, and writes one line about it. */
export function accessLog({ now, random, observe }: AccessLogSettings): Middleware {
  const requestIdOf = requestIds(random)
  const name = (ctx: Context): string => {
    const requestId = requestIdOf(ctx.req)
    ctx.state['requestId'] = requestId
    ctx.res.setHeader('X-Request-Id', requestId)
    return requestId
  }
  if (observe === undefined)
    return (ctx, next) => {
      name(ctx)
      return next()
    }
  return async (ctx, next) => {
    const began = now()
    const requestId = name(ctx)
    await next()
    const {
      place = 'unknown',
      price,
      code,
      detail,
      cause,
      cached,
      customer,
      sale,
      logged,
      passed,
    }: Notes = ctx['state']
    if (logged === true) return
    const { method, status, response } = ctx
    const outcome =
      code ?? (status < 400 || passed === true ? 'ok' : status < 500 ? 'request_malformed' : 'internal')
    observe({
      requestId,
      method,
      place,
      status,
      outcome,
      detail: detailOf(status, outcome, detail),
      cause,
      price,
      cached,
      customer,
      sale,
      ms: now() - began,
      payment: paymentOf(response),
    })
  }
}

/** The payment of an unresolved settlement is in the Location of its answer. */
function paymentOf(response: Context['response']): string | undefined {
  const payment: string | undefined = response.get('Ratecard-Payment')
  if (payment !== undefined) return payment
  const location: string | undefined = response.get('Location')
  return location === undefined ? undefined : /\/payments\/(.+)$/.exec(location)?.[1]
}
