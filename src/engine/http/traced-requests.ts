import type { Middleware } from 'koa'
import type { Tracing } from '../base/tracing.ts'
import type { Notes } from './reply.ts'

/** Shows each request under the name of its route, and what became of it. */
export function tracedRequests(tracing: Tracing): Middleware {
  return (ctx, next) =>
    tracing.serve(ctx.headers, ctx.method, async (span) => {
      await next()
      const { place = 'unknown', code, sale }: Notes = ctx['state']
      const payment: string = ctx.response.get('Ratecard-Payment')
      span.rename(`${ctx.method} ${place}`)
      span.set({
        'http.request.method': ctx.method,
        'http.route': place,
        'http.response.status_code': ctx.status,
        ...(sale === undefined ? {} : { 'ratecard.operation': sale.operation, 'ratecard.paid': sale.paid }),
        ...(payment === '' ? {} : { 'ratecard.payment': payment }),
        ...(code === undefined ? {} : { 'error.type': code }),
      })
      if (ctx.status >= 500) span.fail(code ?? 'internal')
    })
}

/** The same `fetch`, which shows each request to an upstream by its host, and hands the trace on. */
export function tracedFetch(fetcher: typeof fetch, tracing: Tracing): typeof fetch {
  return (target, init = {}) => {
    const { method = 'GET' } = init
    const { hostname } = new URL(target instanceof Request ? target.url : target)
    const about = { 'http.request.method': method, 'server.address': hostname }
    return tracing.call(`${method} upstream`, about, async (named, span) => {
      const headers = new Headers(init.headers)
      for (const [name, value] of Object.entries(named)) headers.set(name, value)
      const response = await fetcher(target, { ...init, headers })
      span.set({ 'http.response.status_code': response.status })
      if (response.status >= 500) span.fail(String(response.status))
      return response
    })
  }
}
