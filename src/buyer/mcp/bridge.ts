import {
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  inputResponse,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type JSONRPCMessage,
  type RequestId,
  type ServerContext,
  type StandardSchemaV1,
} from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { formatShort } from '../../engine/base/money.ts'
import { listTools, type RemoteTool } from './remote-tools.ts'
import { buyCall, type Buyer, type Consent } from './tool-purchase.ts'

/** The tools of a shop, for the client at standard input and output. */
export interface Bridge {
  readonly shop: URL
  readonly buyer: Buyer
  readonly version: string
  /** Listed before a client connects: a shop that cannot be reached is reported at once. */
  readonly tools: ReadonlyMap<string, RemoteTool>
}

/** Standard output, with a call for every response that was written to it. */
class Output extends StdioServerTransport {
  readonly #written = new Map<RequestId, () => Promise<void>>()

  onWritten(request: RequestId, done: () => Promise<void>): void {
    this.#written.set(request, done)
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    await super.send(message)
    if (!('id' in message) || message.id === undefined || 'method' in message) return
    await this.#written.get(message.id)?.()
    this.#written.delete(message.id)
  }
}

/** The SDK checks calls by a schema; calls of a shop are checked by the shop. */
const ANYTHING: StandardSchemaV1<unknown, unknown> = {
  '~standard': { version: 1, vendor: 'ratecard', validate: (value) => ({ value }) },
}

/** Serves until the client closes standard input. */
export async function serveBridge({ shop, buyer, version, tools: first }: Bridge): Promise<void> {
  const { budget, maxPerCall, log } = buyer
  let tools = first
  const output = new Output()
  const create = (): Server => {
    const server = new Server(
      { name: 'ratecard', title: `${shop.host} (paid by ratecard)`, version },
      {
        capabilities: { tools: {} },
        instructions: `The tools of ${shop.host}. What a tool costs is in its description; it is paid for you, up to ${formatShort(maxPerCall)} USD per call and ${formatShort(budget.max)} USD in all. Results end with what was paid. Repeat a call that failed with the same arguments: it is charged once.`,
      },
    )
    server.setRequestHandler('tools/list', { params: ANYTHING }, async () => {
      tools = await listTools(shop).catch((fault: unknown) => {
        log(`the list of tools was not renewed: ${String(fault)}`)
        return tools
      })
      return { tools: Array.from(tools, ([name, { listed }]) => describe(name, listed)) }
    })
    server.setRequestHandler('tools/call', { params: ANYTHING }, async (params, context) => {
      const { name, arguments: args = {} } = isJsonObject(params) ? params : {}
      const tool = typeof name === 'string' ? tools.get(name) : undefined
      if (tool === undefined)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'there is no tool of this name')
      const consent = (key: string): Consent => consentOf(server, context, key)
      const bought = await buyCall(buyer, { tool, args, consent })
      if (bought.kind === 'question') {
        const { key, message } = bought
        const question = inputRequired.elicit({
          message,
          requestedSchema: { type: 'object', properties: {} },
        })
        return inputRequired({ inputRequests: { [key]: question } })
      }
      if (bought.delivered !== undefined) output.onWritten(context.mcpReq.id, bought.delivered)
      return bought.result
    })
    return server
  }
  // A pipe that breaks closes without an end; a file, such as /dev/null, ends without being closed.
  const closed = new Promise<void>((resolve) => {
    for (const event of ['end', 'close']) process.stdin.once(event, resolve)
  })
  const handle = serveStdio(create, { transport: output, onerror: (fault) => log(fault.message) })
  await closed
  await handle.close()
}

/** What a client lists: the shop's words, without the marks that ask clients to pay themselves. */
function describe(name: string, listed: JsonObject): JsonObject {
  const { _meta: _, ...tool } = listed
  return { ...tool, name }
}

/** What a person has answered: in the repeated call of the newest revision, or on request in those before it. */
function consentOf(server: Server, { mcpReq }: ServerContext, key: string): Consent {
  const envelope: unknown = mcpReq.envelope
  const declared = isJsonObject(envelope)
    ? envelope[CLIENT_CAPABILITIES_META_KEY]
    : server.getClientCapabilities()
  const elicitation: unknown = isJsonObject(declared) ? declared['elicitation'] : undefined
  // An empty object means that forms are supported.
  if (!isJsonObject(elicitation) || ('url' in elicitation && !('form' in elicitation))) return 'unable'
  const response = inputResponse(mcpReq.inputResponses, key)
  if (response.kind !== 'elicit') return 'open'
  return response.action === 'accept' ? 'given' : 'refused'
}
