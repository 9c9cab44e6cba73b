import type { Context } from 'koa'
import { serverCardPath } from '../documents/servers/place.ts'
import type { Observe } from '../access.ts'
import { answerCall } from '../mcp/call.ts'
import { serverAt } from '../mcp/endpoint.ts'
import { hostsOf, readBody, refusalOf, refuse } from '../mcp/gate.ts'
import { speak, type AnswerCall } from '../mcp/server.ts'
import type { Counter } from '../mcp/tool-call.ts'
import type { Toolbox } from '../mcp/toolbox.ts'
import type { Daybook } from '../tally/daybook.ts'
import { soldName } from '../tally/names.ts'
import type { Deliveries } from './delivery.ts'
import { goneSignal } from './gone.ts'
import type { InFlight } from './in-flight.ts'
import type { Page, Revision } from './revision.ts'

export interface ToolsSettings extends Counter {
  readonly daybook: Daybook
  readonly deliveries: Deliveries
  readonly inFlight: InFlight
  /** Address this process listens on; undefined while it does not. */
  readonly bound: () => string | undefined
  readonly observe: Observe | undefined
}

const METHODS = 'POST, GET, DELETE'

/** The companion server a request is for. */
export function toolboxAt({ tools, facts }: Revision, host: string, path: string): Toolbox | undefined {
  const name = serverAt(facts.mcpServers, host, path)
  return name === undefined ? undefined : tools.get(name)
}

const CARD = '/server-card'

/** The card of the companion server whose endpoint this would be without its last part. */
export function cardAt({ pages, facts }: Revision, host: string, path: string): Page | undefined {
  if (!path.endsWith(CARD)) return undefined
  const name = serverAt(facts.mcpServers, host, path.slice(0, -CARD.length))
  return name === undefined ? undefined : pages.get(serverCardPath(name))
}

/** Answers one request to a companion server. */
export async function answerTools(
  settings: ToolsSettings,
  ctx: Context,
  revision: Revision,
  toolbox: Toolbox,
): Promise<void> {
  ctx.respond = false
  const { req: request, res: response } = ctx
  const { facts } = revision
  const hosts = hostsOf([facts.baseUrl, ...facts.mcpServers.values()], settings.bound())
  const { origin } = request.headers
  const refusal = refusalOf({ host: ctx.host, origin }, hosts)
  if (refusal !== undefined) return refuse(response, 403, -32000, refusal)
  if (origin !== undefined) allow(response, origin)
  if (request.method === 'OPTIONS') return void response.writeHead(204, { Allow: METHODS }).end()
  await settings.deliveries.confirm(request.socket)
  if (request.method !== 'POST')
    return speak(toolbox, noCalls, { request, response, body: undefined }, settings.report)
  const body = await readBody(request)
  if (body.kind === 'fault') return refuse(response, body.status, body.code, body.message)
  const answer: AnswerCall = async (call) => {
    const tool = toolbox.tools.get(call.name)
    if (tool === undefined) return undefined
    const began = settings.now()
    const answered = await settings.inFlight.add(
      answerCall(settings, {
        ...call,
        toolbox,
        tool,
        operations: revision.operations,
        revision: revision.catalog.revision,
        headers: request.headers,
        tally: settings.daybook.of(soldName(tool.served.operation.id)),
        watch: () => goneSignal(response),
      }),
    )
    const { status, code = status === 402 ? 'payment_required' : 'internal' } = answered.reply
    settings.observe?.({
      method: 'POST',
      place: `tool ${call.name}`,
      status,
      outcome: status < 400 ? 'ok' : code,
      price: tool.served.operation.price,
      cached: undefined,
      ms: settings.now() - began,
      payment: answered.delivered?.id,
    })
    if (answered.delivered !== undefined) settings.deliveries.watch(ctx, answered.delivered)
    return answered.reply.result
  }
  await speak(toolbox, answer, { request, response, body: body.value }, settings.report)
}

/** Calls are posted. */
const noCalls: AnswerCall = () => Promise.resolve(undefined)

/** For the pages of our own hosts; those of others have been refused. */
function allow(response: Context['res'], origin: string): void {
  response.setHeader('Access-Control-Allow-Origin', origin)
  response.setHeader('Vary', 'Origin')
  response.setHeader('Access-Control-Allow-Methods', METHODS)
  response.setHeader(
    'Access-Control-Allow-Headers',
    'Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, SIGN-IN-WITH-X',
  )
}
