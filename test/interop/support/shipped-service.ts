import { randomBytes } from 'node:crypto'
import { isJsonObject, type Json, type JsonObject } from '../../../src/engine/base/json.ts'
import { PAID, SAMPLES, type SpecifiedPaidRoute, type SpecifiedRoute } from '../../fixtures/specification.ts'
import { startServer, type RunningServer } from '../../support/server.ts'
import { shippedCatalog } from '../../support/shipped-catalog.ts'

export const BASE_URL = 'https://market.example.com'
/** An address without a listener: neither a 402 nor a document needs a node. */
const NOWHERE = 'http://127.0.0.1:9'

const catalog = shippedCatalog()
const planned = new Set(catalog.routes.filter(({ operation }) => operation.planned).map(({ path }) => path))

/** The routes of the specification, except planned ones. */
export const paid: readonly SpecifiedPaidRoute[] = PAID.filter(({ path }) => !planned.has(path))
export const samples: readonly SpecifiedRoute[] = SAMPLES.filter(({ path }) => !planned.has(path))

/** A valid call of this route: path and query from the examples of the catalog. */
export function exampleCall(path: string): string {
  const route = catalog.routes.find((each) => each.path === path)
  if (route === undefined) throw new Error(`no route ${path}`)
  const query = new URLSearchParams()
  let filled = path
  for (const { name, in: place, example } of route.parameters) {
    if (example === undefined) continue
    if (place === 'path') filled = filled.replace(`{${name}}`, String(example))
    else query.set(name, String(example))
  }
  return query.size === 0 ? filled : `${filled}?${query.toString()}`
}

/** The dollars of the specification as atomic units of a stablecoin. */
export function atomic(price: string): string {
  return String(Math.round(Number(price) * 1_000_000))
}

export interface ShippedService {
  /** Its local address; its documents contain `BASE_URL`. */
  readonly url: string
  readonly server: RunningServer
  /** Requests a path, or an address from a document. */
  ask(path: string, init?: RequestInit): Promise<Response>
  read(path: string): Promise<string>
  readJson(path: string): Promise<JsonObject>
}

interface Teardown {
  teardown(work: () => Promise<unknown>): void
}

/** The shipped service as an operator runs it: four networks and MPP, every credential, https. */
export async function openProductionService(
  t: Teardown,
  { args = [], env = {} }: { readonly args?: readonly string[]; readonly env?: Record<string, string> } = {},
): Promise<ShippedService> {
  const chains = [8453, 137, 42161, 43114, 4217].map((chain) => [`RPC_URL_${chain}`, NOWHERE])
  const server = await startServer({
    args,
    env: {
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      BASE_URL,
      PAY_TO: hex(20),
      SETTLER_PRIVATE_KEY: hex(32),
      MPP_RECIPIENT: hex(20),
      MPP_SECRET_KEY: hex(32),
      TWITCH_CLIENT_ID: 'nobody',
      TWITCH_CLIENT_SECRET: 'nothing',
      ...Object.fromEntries(chains),
      ...env,
    },
  })
  t.teardown(() => server.stop())
  return clientOf(server)
}

/** The shipped service on local chains, with stand-ins for every outside source, so that calls are answered. */
export async function openSandbox(t: Teardown): Promise<ShippedService> {
  const server = await startServer({ args: ['--sandbox', '--offline'] })
  t.teardown(() => server.stop())
  return clientOf(server)
}

function clientOf(server: RunningServer): ShippedService {
  const { url } = server
  const ask = (path: string, init?: RequestInit): Promise<Response> =>
    fetch(url + path.replace(BASE_URL, ''), init)
  const read = async (path: string): Promise<string> => {
    const answer = await ask(path)
    if (answer.status !== 200) throw new Error(`${path} answers ${answer.status}`)
    return answer.text()
  }
  const readJson = async (path: string): Promise<JsonObject> => objectIn(await read(path))
  return { url, server, ask, read, readJson }
}

export function objectIn(text: string): JsonObject {
  const value: unknown = JSON.parse(text)
  if (!isJsonObject(value)) throw new Error('the text is not a JSON object')
  return value as JsonObject
}

/** A string in a document, or an empty one. */
export function textAt(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** Headers that describe the answer, not the connection or the moment. */
export function lastingHeaders({ headers }: Response): Readonly<Record<string, string>> {
  const passing = ['date', 'connection', 'keep-alive', 'x-request-id']
  return Object.fromEntries([...headers].filter(([name]) => !passing.includes(name)))
}

function hex(bytes: number): string {
  return `0x${randomBytes(bytes).toString('hex')}`
}
