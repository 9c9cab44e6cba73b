import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AccessRecord } from '../engine/base/access-record.ts'
import { listen } from '../engine/http/server.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'
import { ConsoleAccess, type ConsoleKeys, ENTRANCE, isLocalHost, isOwnRequest } from './console-access.ts'
import { CallFeed } from './call-feed.ts'
import { watchEventLoop } from './event-loop-delay.ts'
import { EventStreams } from './event-streams.ts'
import { brandFile, frameOf, printMessage, SECURITY_HEADERS } from './frame.ts'
import { RefundQueue } from './refund-queue.ts'
import type { ConsoleSources } from './sources.ts'
import type { View, ViewRequest } from './view.ts'
import { describeFault, printFault } from './view-fault.ts'
import { viewAt, VIEWS } from './views.ts'
import { callHtml, figureHtml, todaysFigures } from './views/now.ts'

export interface ConsoleSettings {
  /** 0: any. */
  readonly port: number
  readonly random: (bytes: number) => Uint8Array
  /** Of the process that this one replaces. */
  readonly keys?: ConsoleKeys | undefined
  /** Takes the address that lets the next browser in. */
  readonly announce: (address: string) => void
  readonly report: (fault: unknown) => void
}

/** The pages of a service for its operator, on a listener of their own. */
export interface Console {
  /** To be called for each request that the service has answered, and each change of a payment. */
  readonly observe: (access: AccessRecord) => void
  readonly settle: (previous: PaymentRecord, next: PaymentRecord) => void
  /** Listens on this machine alone, and announces the address. Resolves to the port. */
  readonly open: (sources: ConsoleSources) => Promise<number>
  readonly keys: () => ConsoleKeys
  readonly close: () => Promise<void>
}

/** The only address it listens on: others reach it through a tunnel to this machine, or not at all. */
const HOST = '127.0.0.1'
const REFUND_PATH = /^\/payments\/([\w-]{1,64})\/refund$/

export function createConsole(settings: ConsoleSettings, now: () => number): Console {
  const { random, announce, report } = settings
  const access = new ConsoleAccess(random, settings.keys)
  const feed = new CallFeed(now)
  const streams = new EventStreams()
  const refunds = new RefundQueue()
  const closing: (() => void)[] = []
  let shown: ConsoleSources | undefined
  let port = 0
  const announceEntrance = (): void => announce(`http://${HOST}:${port}${access.entrance}`)

  /** Lets a browser in that has the token of the announced address. */
  const enter = (response: ServerResponse, token: string | null, headers: IncomingHttpHeaders): void => {
    const cookie = access.enter(token, headers)
    if (cookie === undefined)
      return refuse(
        response,
        403,
        'This address was used before, or is not one of this console. The log of the server has the next one.',
      )
    response.setHeader('Set-Cookie', cookie)
    announceEntrance()
    // A redirect would be part of the visit from wherever the address was opened, and would carry no cookie.
    sendHtml(response, 200, printMessage({ title: 'Console', text: 'You are in.', next: '/' }))
  }

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method, headers, url = '/' } = request
    const { pathname, searchParams: query } = new URL(url, `http://${HOST}`)
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    if (!isLocalHost(headers))
      return refuse(response, 421, 'The console answers under the name of this machine alone.')
    const file = method === 'GET' ? brandFile(pathname) : undefined
    if (file !== undefined) {
      response.writeHead(200, { 'Content-Type': file.type }).end(file.bytes)
      return
    }
    if (method === 'GET' && pathname === ENTRANCE) return enter(response, query.get('token'), headers)
    if (!access.hasEntered(headers) || !isOwnRequest(method, headers))
      return refuse(response, 403, 'Open the console by the address that the server prints.')
    if (shown === undefined) return refuse(response, 503, 'The service is starting.')
    if (method === 'POST') return sendRefund(refunds, shown, response, pathname)
    if (method !== 'GET') return refuse(response, 405, 'The console is read with GET.')
    if (pathname === '/events') return streams.open(response)
    const found = viewAt(pathname)
    if (found === undefined) return refuse(response, 404, 'The console has no such page.')
    return showView(response, found.view, { sources: shown, feed, query, rest: found.rest }, report)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((fault: unknown) => {
      report(fault)
      if (response.headersSent) response.destroy()
      else
        refuse(
          response,
          500,
          'The page could not be made; the log says why. The ledger may not be reachable.',
        )
    })
  })
  const renew = async (sources: ConsoleSources): Promise<void> => {
    if (streams.count === 0) return
    for (const figure of await todaysFigures(sources)) streams.send('part', figureHtml(figure))
  }
  return {
    observe: (record) => feed.observe(record),
    settle: (previous, next) => feed.settle(previous, next),
    keys: () => access.keys,
    open: async (sources) => {
      shown = sources
      port = await listen(server, settings.port, HOST)
      closing.push(watchEventLoop())
      closing.push(feed.listen((call) => streams.count > 0 && streams.send('call', callHtml(call))))
      const renewing = setInterval(() => void renew(sources).catch(report), RENEWED_MS).unref()
      closing.push(() => clearInterval(renewing))
      announceEntrance()
      return port
    },
    close: async () => {
      for (const end of closing) end()
      if (!server.listening) return
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}

/** How often the figures of open pages are sent again. */
const RENEWED_MS = 3_000

/** Sends the page of a view, or why it cannot be made. */
async function showView(
  response: ServerResponse,
  view: View,
  request: ViewRequest,
  report: (fault: unknown) => void,
): Promise<void> {
  const { sources } = request
  const made = await view.show(request).catch(async (fault: unknown) => {
    report(fault)
    return { kind: 'fault', context: await describeFault(sources) } as const
  })
  switch (made.kind) {
    case 'page':
      return sendHtml(
        response,
        200,
        view.print({ ...made.context, page: frameOf(view, made.title, sources, VIEWS) }),
      )
    case 'fault':
      return sendHtml(
        response,
        503,
        printFault({ ...made.context, title: view.title, page: frameOf(view, view.title, sources, VIEWS) }),
      )
    case 'missing':
      return refuse(response, 404, made.what)
    case 'elsewhere':
      response.writeHead(303, { Location: made.path }).end()
      return
    case 'file':
      response
        .writeHead(200, {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': `attachment; filename="${made.name}"`,
        })
        .end(made.text)
  }
}

/** Sends the refund of a path, and the browser to what became of it. */
async function sendRefund(
  refunds: RefundQueue,
  { ledger, refund }: ConsoleSources,
  response: ServerResponse,
  path: string,
): Promise<void> {
  const [, id = ''] = REFUND_PATH.exec(path) ?? []
  if (refund === undefined)
    return refuse(response, 403, 'No refund can be sent: REFUND_PRIVATE_KEY is not set.')
  const made = await refunds.add(async () => {
    const record = await ledger.find(id)
    return record === undefined ? undefined : refund(record)
  })
  if (made === undefined) return refuse(response, 404, 'This ledger has no such payment.')
  const query = new URLSearchParams(made.kind === 'refused' ? { reason: made.reason } : { refund: made.kind })
  const back = made.kind === 'refused' ? `/payments/${id}/refund` : `/payments/${id}`
  response.writeHead(303, { Location: `${back}?${query.toString()}` }).end()
}

function refuse(response: ServerResponse, status: number, text: string): void {
  sendHtml(response, status, printMessage({ title: 'Console', text, next: '' }))
}

function sendHtml(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8' }).end(html)
}
