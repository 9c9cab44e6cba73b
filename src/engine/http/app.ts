import type { IncomingHttpHeaders } from 'node:http'
import type { RouterContext, RouterMiddleware } from '@koa/router'
import Koa, { HttpError, type Middleware, type Next } from 'koa'
import { Failure } from '../errors.ts'
import { accessLog, note, type AccessLogSettings } from './access-log.ts'
import { cors } from './cors.ts'
import { canonicalPaths } from './path.ts'
import { failed, problem, respond, type Reply } from './reply.ts'
import { IndexedRouter, templateOf } from './indexed-router.ts'
import { toolServers, type ToolsSettings } from './tools.ts'

export interface AppSettings extends AccessLogSettings, ToolsSettings {
  readonly trustProxy: boolean
  /** The router of the current revision: documents, live pages and routes of the catalog. */
  readonly routes: () => RouterMiddleware
  readonly aside: Aside | undefined
  readonly report: (fault: unknown) => void
}

/** What only the operator is shown, at a path outside of the catalog; undefined: nothing for this caller. */
export type Aside = (path: string, headers: IncomingHttpHeaders) => (() => Promise<Reply>) | undefined

/** The service as a Koa application. */
export function createApp(settings: AppSettings): Koa {
  const app = new Koa({ proxy: settings.trustProxy })
  // `problems` reports.
  app.silent = true
  app.use(accessLog(settings))
  app.use(problems(settings))
  app.use(toolServers(settings))
  app.use(cors)
  app.use(canonicalPaths)
  app.use(operatorRoutes(settings))
  app.use((ctx: RouterContext, next: Next) => settings.routes()(ctx, next))
  // Reads only what the router of the request has matched.
  app.use(new IndexedRouter().allowedMethods())
  return app
}

/** Turns errors and requests that nothing has answered into problem documents. */
function problems({ report }: AppSettings): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (fault) {
      if (fault instanceof HttpError && fault.expose) {
        ctx.status = fault.status
        ctx.body = fault.message
        return
      }
      report(fault)
      return respond(ctx, failed(new Failure('internal', 'something went wrong here'), 'unknown'))
    }
    if (ctx.body !== undefined) return
    if (ctx.status === 404)
      respond(ctx, problem('route_unknown', 'there is nothing at this path', { charged: 'no' }))
    if (ctx.status === 405) {
      note(ctx, { place: templateOf(ctx) })
      respond(ctx, problem('method_not_allowed', `${ctx.method} is not served here`, { charged: 'no' }))
    }
  }
}

function operatorRoutes({ aside }: AppSettings): Middleware {
  return async (ctx, next) => {
    const reads = ctx.method === 'GET' || ctx.method === 'HEAD'
    const answer = reads ? aside?.(ctx.path, ctx.headers) : undefined
    if (answer === undefined) return next()
    note(ctx, { place: ctx.path })
    respond(ctx, await answer())
  }
}
