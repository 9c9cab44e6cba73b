import type { ClientRequest, IncomingMessage, RequestOptions, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import type { Context, Next } from 'koa'
import { basePathOf } from '../base/base-path.ts'
import { Failure } from '../base/errors.ts'
import type { OpenRequest } from '../base/runtime.ts'
import { passedName } from '../usage/counts.ts'
import type { UsageStore } from '../usage/usage-store.ts'
import { UpstreamFault, upstreamCauseOf } from '../base/upstream-cause.ts'
import { discardBody } from './body-reader.ts'
import type { Boundary } from './boundary.ts'
import { disconnectSignal } from './buyer-connections.ts'
import { answerHeaders, requestHeaders, valueOf } from './passed-headers.ts'
import { failed, note, respond } from './reply.ts'
import { splitTarget, withoutMethods } from './request-target.ts'
import type { Phase } from './stopping.ts'

export interface PassthroughSettings {
  readonly baseUrl: string
  readonly trustProxy: boolean
  readonly openRequest: OpenRequest
  /** Name of this process. */
  readonly owner: string
  readonly serving: { readonly now: { readonly boundary: Boundary | undefined } }
  readonly phase: () => Phase
  readonly report: (fault: unknown) => void
  readonly usageStore: Pick<UsageStore, 'of'>
  readonly now: () => number
}

/** What the log and the metrics call it. */
const PLACE = 'passthrough'

/**
 * Passes on what does not belong to the catalog, when that says where to; all else goes to `catalog`. Middleware that a
 * host has added to the application may answer it before.
 */
export function passthrough<T extends Context>(
  settings: PassthroughSettings,
  catalog: (ctx: T, next: Next) => unknown,
): (ctx: T, next: Next) => unknown {
  return (ctx, next) => {
    const { boundary } = settings.serving.now
    return boundary === undefined || boundary.isOurs(splitTarget(ctx.url).path)
      ? catalog(ctx, next)
      : passUnanswered(ctx, next, boundary.site, settings)
  }
}

async function passUnanswered(
  ctx: Context,
  next: Next,
  site: URL,
  settings: PassthroughSettings,
): Promise<void> {
  await next()
  const isAnswered = ctx.respond === false || ctx.body !== undefined || ctx.status !== 404
  if (isAnswered) return
  note(ctx, { place: PLACE })
  const { usageStore, now } = settings
  const began = now()
  await passOn(ctx, site, settings, (status) =>
    usageStore.of(passedName(status)).succeed(now() - began, now()),
  )
}

/** `count` is called once, when the answer begins. */
async function passOn(
  ctx: Context,
  site: URL,
  settings: PassthroughSettings,
  count: (status: number) => void,
): Promise<void> {
  const { req, res } = ctx
  const refusal = refusalOf(req, settings)
  if (refusal !== undefined) {
    discardBody(req, res)
    respond(ctx, failed(refusal))
    return count(ctx.status)
  }
  const asked = settings.openRequest(site, optionsOf(ctx, site, settings))
  const gone = disconnectSignal(res)
  gone.addEventListener('abort', () => asked.destroy())
  const answer = await answerOf(req, res, asked)
  if (answer instanceof Failure) {
    if (gone.aborted) answerOurselves(ctx, CLIENT_GONE)
    else respond(ctx, failed(answer))
    return count(ctx.status)
  }
  const { statusCode = 502, statusMessage, rawHeaders } = answer
  answerOurselves(ctx, statusCode)
  count(statusCode)
  if (settings.phase() !== 'serving') res.setHeader('Connection', 'close')
  const headers = answerHeaders(rawHeaders)
  for (const [name] of headers) res.removeHeader(name)
  for (const [name, value] of headers) res.appendHeader(name, value)
  res.writeHead(statusCode, statusMessage)
  // A stream begins before its first byte.
  res.flushHeaders()
  const cause = await new Promise((resolve) => pipeline(answer, res, resolve))
  if (!(cause instanceof Error) || gone.aborted) return
  const detail = 'the site broke off its answer'
  const fault = new Failure('source_error', detail, { cause: new UpstreamFault('body', detail, { cause }) })
  note(ctx, { code: fault.code, detail, cause: upstreamCauseOf(fault) })
}

/** For the log, in the number of nginx: the client left before there was an answer. */
const CLIENT_GONE = 499

/** Koa would change an answer: its headers, and those of an empty one. */
function answerOurselves(ctx: Context, status: number): void {
  ctx.respond = false
  ctx.status = status
  note(ctx, { passed: true })
}

/** Why a request does not pass. */
function refusalOf(
  { headers, rawHeaders }: IncomingMessage,
  { owner, report }: PassthroughSettings,
): Failure | undefined {
  // Clients offer h2c with any request, and do without it.
  if (headers.upgrade !== undefined && !/^h2c$/i.test(headers.upgrade.trim()))
    return new Failure('upgrade_unsupported', 'requests pass without an upgrade of their protocol')
  if (!valueOf(rawHeaders, 'via').includes(nameIn(owner))) return undefined
  const fault = new Failure('upstream_misconfigured', 'passthrough leads back to this service')
  report(fault)
  return fault
}

/** The pseudonym of this process in Via (RFC 9110 §7.6.3). */
function nameIn(owner: string): string {
  return `ratecard-${owner}`
}

/** Longest silence of the site until its answer begins. */
const PATIENCE_MS = 60_000

/** The most headers of an answer, as of a request. */
const LARGEST_HEADERS = 65_536

function optionsOf(
  ctx: Context,
  site: URL,
  { baseUrl, trustProxy, owner }: PassthroughSettings,
): RequestOptions {
  const { req, method } = ctx
  const { rawHeaders } = req
  const { path, query } = splitTarget(ctx.url)
  const kept = withoutMethods(query)
  const mark = kept !== '' || ctx.url.endsWith(`${path}?`) ? '?' : ''
  const peer = (req.socket.remoteAddress ?? 'unknown').replace(/^::ffff:(?=[\d.]+$)/i, '')
  const before = trustProxy ? valueOf(rawHeaders, 'x-forwarded-for') : ''
  const via = valueOf(rawHeaders, 'via')
  return {
    method,
    path: path + mark + kept,
    headers: requestHeaders({
      rawHeaders,
      method,
      site: site.host,
      forwardedFor: before === '' ? peer : `${before}, ${peer}`,
      forwardedProto: ctx.protocol,
      forwardedHost: ctx.host,
      forwardedPrefix: basePathOf(baseUrl),
      via: `${via === '' ? '' : `${via}, `}${req.httpVersion} ${nameIn(owner)}`,
      requestId: String(ctx.state['requestId']),
    }),
    timeout: PATIENCE_MS,
    maxHeaderSize: LARGEST_HEADERS,
  }
}

/** Sends the body while it comes. Resolves when an answer begins, or to why there is none. */
function answerOf(
  req: IncomingMessage,
  res: ServerResponse,
  asked: ClientRequest,
): Promise<IncomingMessage | Failure> {
  return new Promise((resolve) => {
    const unreached = (cause?: unknown): void =>
      resolve(new Failure('source_error', 'the site cannot be reached', { cause }))
    asked.once('response', (answer) => {
      answer.socket.setTimeout(0)
      const { statusCode = 0 } = answer
      if (statusCode >= 200) return resolve(answer)
      unreached(new UpstreamFault('status', `the site answered with status ${statusCode}`))
      asked.destroy()
    })
    asked.once('timeout', () => {
      resolve(new Failure('source_timeout', `the site did not answer within ${PATIENCE_MS / 1_000} seconds`))
      asked.destroy()
    })
    asked.on('error', unreached)
    asked.once('close', () => {
      // Nobody takes the rest of the body.
      req.unpipe(asked)
      discardBody(req, res)
      unreached()
    })
    // The site may answer before the body comes.
    asked.flushHeaders()
    req.pipe(asked)
  })
}
