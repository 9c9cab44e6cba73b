import { type Context, type Next } from 'koa'
import { setHeaders } from './reply.ts'

/** Headers of both protocols that browser scripts may read. */
export const CORS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers':
    'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, WWW-Authenticate, Payment-Receipt, Retry-After, Location, ETag, Link, Ratecard-Payment, Ratecard-Charged, Ratecard-Sandbox',
}

const PREFLIGHT = {
  // mppx sends Accept-Payment, and clients of x402 send the last one as a request header, so browsers ask for them.
  'Access-Control-Allow-Headers':
    'PAYMENT-SIGNATURE, X-PAYMENT, Authorization, X-API-Key, SIGN-IN-WITH-X, Accept-Payment, Content-Type, Accept, Access-Control-Expose-Headers',
  'Access-Control-Max-Age': '86400',
}

/** Allows every origin to read every answer. */
export function cors(ctx: Context, next: Next): Promise<void> {
  setHeaders(ctx, CORS)
  return next()
}

/** Adds OPTIONS to the methods that the router allows, and answers it. */
export async function allowOptions(ctx: Context, next: Next): Promise<void> {
  await next()
  const allowed: string | undefined = ctx.response.get('Allow')
  if (allowed === undefined) return
  const methods = [...allowed.split(', '), 'OPTIONS'].toSorted().join(', ')
  ctx.set('Allow', methods)
  if (ctx.method !== 'OPTIONS') return
  ctx.set({ 'Access-Control-Allow-Methods': methods, ...PREFLIGHT })
  ctx.status = 204
}
