import type { Context } from 'koa'
import type { Observe } from '../access.ts'
import type { Micros } from '../money.ts'
import type { Reply } from './reply.ts'

/** What is known of a request when it is answered. */
export interface Notes {
  readonly place?: string
  readonly price?: Micros | undefined
  readonly reply?: Pick<Reply, 'status' | 'headers' | 'code' | 'cached'>
}

/** Notes what a request is for, or what it was answered. */
export function note(ctx: Context, notes: Notes): void {
  Object.assign(ctx.state, notes)
}

/** Tells of a request that has its answer. */
export function tellOf({ state, method }: Context, ms: number, observe: Observe): void {
  const { place = 'unknown', price, reply }: Notes = state
  if (reply === undefined) return
  const { status, headers, code = 'internal', cached } = reply
  const payment = headers['Ratecard-Payment'] ?? headers['Location']?.replace('/payments/', '')
  observe({ method, place, status, outcome: status < 400 ? 'ok' : code, price, cached, ms, payment })
}
