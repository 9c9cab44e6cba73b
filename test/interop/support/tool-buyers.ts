import {
  Client as Client2026,
  StreamableHTTPClientTransport as Transport2026,
} from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2026 } from '@modelcontextprotocol/client/stdio'
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Stdio2025 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { x402Client } from '@x402/core/client'
import { decodePaymentRequiredHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { UptoEvmScheme } from '@x402/evm/upto/client'
import { withX402Client } from 'agents/x402'
import { tempo } from 'mppx/client'
import { McpClient } from 'mppx/mcp/client'
import { createClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { tempoModerato } from 'viem/chains'
import type { Json, JsonObject } from '../../../src/engine/base/json.ts'
import type { Hex } from '../../support/payment.ts'

const ME = { name: 'buyer', version: '1.0.0' }

/** A wallet with a third-party client that calls tools. */
export interface ToolBuyer {
  /** Names of the listed tools; afterwards the client knows their schemas and validates answers against them. */
  list(): Promise<string[]>
  /** Calls a tool, pays what it asks for, and returns the result. */
  buy(name: string, args: JsonObject): Promise<JsonObject>
  close(): Promise<void>
}

type Call = { name: string; arguments: Record<string, unknown>; _meta?: Record<string, unknown> }
type Caller = (call: Call) => Promise<unknown>

async function connect2025(url: URL): Promise<Client2025> {
  const client = new Client2025(ME)
  await client.connect(new Transport2025(url))
  return client
}

async function connect2026(url: URL, mode: 'legacy' | 'auto'): Promise<Client2026> {
  const client = new Client2026(ME, { versionNegotiation: { mode } })
  await client.connect(new Transport2026(url))
  return client
}

/** Pays as documented: signs the offer of the result and sends the payment in `_meta`. */
async function payByHand(caller: Caller, key: Hex, call: Call): Promise<unknown> {
  const { structuredContent } = asObject(await caller(call))
  return caller({ ...call, _meta: { 'x402/payment': await signOffer(key, structuredContent) } })
}

/** A payment by the library of x402 for what a server offers. */
export async function signOffer(key: Hex, offer: Json | undefined): Promise<Json> {
  const account = privateKeyToAccount(key)
  const wallet = new x402Client()
    .register('eip155:*', new ExactEvmScheme(account))
    .register('eip155:*', new UptoEvmScheme(account))
  const header = Buffer.from(JSON.stringify(offer)).toString('base64')
  return asObject(await wallet.createPaymentPayload(decodePaymentRequiredHeader(header)))
}

function buyer(
  client: { close(): Promise<void>; listTools(): Promise<{ tools: { name: string }[] }> },
  pay: Caller,
): ToolBuyer {
  return {
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    buy: async (name, args) => asObject(await pay({ name, arguments: { ...args } })),
    close: () => client.close(),
  }
}

/** The clients that can pay. */
export const BUYERS: Readonly<Record<string, (url: URL, key: Hex) => Promise<ToolBuyer>>> = {
  'SDK 1.x': async (url, key) => {
    const client = await connect2025(url)
    return buyer(client, (call) => payByHand((each) => client.callTool(each), key, call))
  },
  'SDK 2.x, older revisions': async (url, key) => {
    const client = await connect2026(url, 'legacy')
    return buyer(client, (call) => payByHand((each) => client.callTool(each), key, call))
  },
  'SDK 2.x, the newest revision': async (url, key) => {
    const client = await connect2026(url, 'auto')
    return buyer(client, (call) => payByHand((each) => client.callTool(each), key, call))
  },
  'Cloudflare’s client around SDK 1.x': async (url, key) => {
    const client = withX402Client(await connect2025(url), { account: privateKeyToAccount(key) })
    return buyer(client, (call) => client.callTool(null, call))
  },
  'Cloudflare’s client around SDK 2.x': async (url, key) => {
    const client = withX402Client(await connect2026(url, 'auto'), { account: privateKeyToAccount(key) })
    return buyer(client, (call) => client.callTool(null, call))
  },
}

/** The client of mppx, on a Tempo chain. */
export async function openMppBuyer(url: URL, rpcUrl: string, key: Hex): Promise<ToolBuyer> {
  const account = privateKeyToAccount(key)
  // The network of the sandbox.
  const chain = { ...tempoModerato, rpcUrls: { default: { http: [rpcUrl] } } }
  const method = tempo.charge({
    account,
    getClient: () => createClient({ account, chain, transport: http(rpcUrl) }),
  })
  const client = McpClient.wrap(await connect2025(url), { methods: [method] })
  return buyer(client, (call) => client.callTool(call))
}

function asObject(value: unknown): Record<string, Json> {
  const parsed: unknown = JSON.parse(JSON.stringify(value))
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw new Error('no object')
  return { ...parsed } as Record<string, Json>
}

/** A server that the client starts as its child. */
export interface LocalServer {
  readonly command: string
  readonly args: string[]
  readonly env: Record<string, string>
  readonly cwd: string
}

/** Answers a question to the person at the client. */
type Person = (question: string) => 'accept' | 'decline'

/** The clients that cannot pay: the proxy that they start pays for them. */
export const CLIENTS: Readonly<Record<string, (server: LocalServer, person: Person) => Promise<ToolBuyer>>> =
  {
    'SDK 1.x': async (server, person) => {
      const client = new Client2025(ME, { capabilities: { elicitation: {} } })
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({
        action: person(params.message),
        content: {},
      }))
      await client.connect(new Stdio2025(server))
      return buyer(client, (call) => client.callTool(call))
    },
    'SDK 2.x': async (server, person) => {
      const client = new Client2026(ME, {
        capabilities: { elicitation: { form: {} } },
        versionNegotiation: { mode: 'auto' },
      })
      client.setRequestHandler('elicitation/create', ({ params }) => ({
        action: person(params.message),
        content: {},
      }))
      await client.connect(new Stdio2026(server))
      return buyer(client, (call) => client.callTool(call))
    },
  }
