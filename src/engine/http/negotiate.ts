import type { Context } from 'koa'
import { renderPaymentPage, type PaymentPage } from '../documents/payment-page.ts'
import { isJsonObject } from '../json.ts'
import type { Reply } from './reply.ts'

/** What the page shows besides the answer itself. */
export type Shown = Omit<PaymentPage, 'problem'>

/** An unpaid answer as its reader wants it: a page for a browser, JSON for everyone else, the same headers for both. */
export function negotiate(ctx: Context, reply: Reply, shown: () => Shown): Reply {
  if (reply.status !== 402) return reply
  const { headers } = reply
  const vary = 'Accept'
  const problem: unknown = prefersPage(ctx) ? JSON.parse(reply.body) : undefined
  if (!isJsonObject(problem)) return { ...reply, vary }
  const { html, policy } = renderPaymentPage({ ...shown(), problem })
  return {
    ...reply,
    vary,
    headers: {
      ...headers,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy,
      'X-Content-Type-Options': 'nosniff',
    },
    body: html,
  }
}

/** Whether a browser asks: whoever takes JSON as gladly gets JSON. */
export function prefersPage(ctx: Context): boolean {
  if (!ctx.get('Accept').includes('text/html')) return false
  return ctx.accepts('application/problem+json', 'application/json', 'text/html') === 'text/html'
}
