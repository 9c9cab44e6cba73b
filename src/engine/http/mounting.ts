import type { Context, Middleware } from 'koa'
import { basePathOf } from '../base/base-path.ts'
import { PROBLEM_TYPE } from './reply.ts'
import { splitTarget } from './request-target.ts'

/** Where a request belongs, from the path that was sent and the path that the surrounding application has left. */
export type Place =
  /** Its target without the base path. */
  | { readonly kind: 'here'; readonly url: string }
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'fault'; readonly reason: string }

/** Finds the place of a request, and a mistake in mounting this application, if the request shows one. */
export function placeOf({ req, url, originalUrl }: Context, basePath: string): Place {
  // Express and connect keep the original URL under this name; koa-mount changes the URL of the context.
  const sent = 'originalUrl' in req && typeof req.originalUrl === 'string' ? req.originalUrl : originalUrl
  const removed = sent === url ? '' : removedPrefix(splitTarget(sent).path, splitTarget(url).path)
  if (removed !== '')
    return removed === basePath ? { kind: 'here', url } : { kind: 'fault', reason: WRONG_PREFIX }
  if (basePath === '') return { kind: 'here', url }
  const { path, query } = splitTarget(url)
  if (path !== basePath && !path.startsWith(`${basePath}/`)) return { kind: 'elsewhere' }
  const rest = path.slice(basePath.length) || '/'
  return { kind: 'here', url: query === '' ? rest : `${rest}?${query}` }
}

const WRONG_PREFIX =
  'this service is mounted below a path prefix, and its addresses would be wrong: mount it at the root of its host, or set basePath to the prefix'

/** What a mount has removed from the beginning of a path. */
function removedPrefix(sent: string, path: string): string {
  const rest = path === '/' && !sent.endsWith('/') ? '' : path
  return sent.endsWith(rest) ? sent.slice(0, sent.length - rest.length) : ''
}

/** Puts the base path before the paths that answers of this service refer to. */
export function completeLinks(baseUrl: string): Middleware {
  const basePath = basePathOf(baseUrl)
  return async (ctx, next) => {
    await next()
    const location: string | undefined = ctx.response.get('Location')
    if (location?.startsWith('/payments/')) ctx.set('Location', basePath + location)
    const { body } = ctx
    if (typeof body !== 'string' || ctx.response.get('Content-Type') !== PROBLEM_TYPE) return
    ctx.body = body.replace('"type":"/docs/errors#', `"type":"${basePath}/docs/errors#`)
  }
}
