import type { Context } from 'koa'
import { renderPaymentPage } from '../documents/payment-page.ts'
import { compact, isJsonObject, parseJson, type JsonObject } from '../base/json.ts'
import type { RouteRequest } from './call.ts'
import type { Reply } from './reply.ts'

/** Renders a 402 as a page for browsers and as JSON otherwise, with the same headers. */
export function negotiate({ ctx, served: { route }, revision, resource }: RouteRequest, reply: Reply): Reply {
  const problem = prefersPage(ctx) ? shownProblem(reply) : undefined
  const vary = 'Accept'
  // A copy costs as much as routing: the usual 402 is created with this header.
  if (problem === undefined) return reply.vary === vary ? reply : { ...reply, vary }
  const { catalog, facts } = revision
  const { html, policy } = renderPaymentPage({ catalog, facts, route, url: resource + ctx.search, problem })
  return {
    ...reply,
    vary,
    headers: {
      ...reply.headers,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy,
      'X-Content-Type-Options': 'nosniff',
    },
    body: html,
  }
}

/** The body with the offers of the header, which are always in the same form. */
function shownProblem({ body, headers }: Reply): JsonObject | undefined {
  const problem: unknown = JSON.parse(String(body))
  if (!isJsonObject(problem)) return undefined
  const offered = parseJson(Buffer.from(headers['PAYMENT-REQUIRED'] ?? '', 'base64').toString('utf8'))
  return isJsonObject(offered) ? compact({ ...problem, accepts: offered['accepts'] }) : problem
}

/** Whether the client prefers a page: one that accepts JSON equally well gets JSON. */
export function prefersPage(ctx: Context): boolean {
  if (!ctx.get('Accept').includes('text/html')) return false
  return ctx.accepts('application/problem+json', 'application/json', 'text/html') === 'text/html'
}
