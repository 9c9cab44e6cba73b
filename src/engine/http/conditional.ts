import type { Context } from 'koa'
import type { Page } from './rendered-pages.ts'
import { note, respond, problem } from './reply.ts'
import { prefersPage } from './payment-required-page.ts'

export function servePage(place: string, page: Page): (ctx: Context) => void {
  return (ctx) => {
    note(ctx, { place })
    if (page.planned) {
      const detail = 'this document is announced and not written yet'
      return respond(ctx, problem('not_implemented', detail, { charged: 'no' }))
    }
    const { shown, markdown } = page
    const { type, body, etag, headers } =
      shown !== undefined && prefersPage(ctx)
        ? shown
        : markdown !== undefined && prefersMarkdown(ctx)
          ? markdown
          : page
    ctx.status = 200
    ctx.set({ 'Content-Type': type, ETag: etag, 'Cache-Control': 'public, max-age=300', ...headers })
    if (shown !== undefined || markdown !== undefined) ctx.vary('Accept')
    if (matches(ctx.get('If-None-Match'), etag)) ctx.status = 304
    else ctx.body = body
  }
}

/** Language models often ask for Markdown first. */
function prefersMarkdown(ctx: Context): boolean {
  if (!ctx.get('Accept').includes('text/markdown')) return false
  return ctx.accepts('text/html', 'text/markdown') === 'text/markdown'
}

/**
 * RFC 9110 §13.1.2: a list of entity tags, compared weakly (some caches drop the W/), or a star. `ctx.fresh` is not
 * used: fetch in Node.js and browsers adds `Cache-Control: no-cache` to a request with If-None-Match, which `ctx.fresh`
 * takes for a reload.
 */
function matches(header: string, etag: string): boolean {
  const opaque = (tag: string): string => tag.trim().replace(/^W\//, '')
  return header.split(',').some((tag) => tag.trim() === '*' || opaque(tag) === opaque(etag))
}
