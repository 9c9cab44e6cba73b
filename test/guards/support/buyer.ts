import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { Challenge as MppChallenge } from 'mppx'
import { encode, sign, type Challenge, type Faults, type Hex } from '../../support/payment.ts'
import {
  credentialOf,
  signTransfer,
  type EchoedChallenge,
  type TransactionFaults,
} from '../../support/tempo.ts'

/** An answer as it came, headers by their names in lower case. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Question {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** One connection to a server, as a buyer keeps it: the next request tells that the answer before has arrived. */
export interface Connection {
  ask(question: Question): Promise<Answer>
  close(): void
}

export function connect(url: string): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    ask: async ({ method = 'GET', path, headers = {}, body }) => {
      const { hostname, port } = new URL(url)
      const asking = request({ agent, hostname, port, path, method, headers })
      const answered = new Promise<Answer>((resolve, reject) => {
        asking.once('error', reject)
        asking.once('response', (response) => {
          const pairs = Object.entries(response.headers).map(
            ([name, value]) => [name, String(value)] as const,
          )
          const { statusCode: status = 0 } = response
          text(response).then(
            (read) => resolve({ status, headers: Object.fromEntries(pairs), body: read }),
            reject,
          )
        })
      })
      asking.end(body)
      return answered
    },
    close: () => agent.destroy(),
  }
}

/** A payment as both faces of an operation take it. */
export interface Payment {
  readonly http: Readonly<Record<string, string>>
  readonly mcp: Readonly<Record<string, unknown>>
}

/** What an unpaid request was told. */
export interface Offers {
  readonly x402: Challenge
  readonly mpp: EchoedChallenge
}

/** A body in the place of arguments. */
export interface RawBody {
  readonly raw?: string
  readonly type?: string
}

/** One of the two ways to an operation: `item`, or by another method `POST note`. */
export interface Face {
  readonly name: 'http' | 'mcp'
  question(operation: string, args: object, payment?: Payment): Question
  offers(answer: Answer): Offers
}

export const HTTP: Face = {
  name: 'http',
  question: (operation, args, payment) => {
    const [method = '', name] = operation.split(' ')
    if (name !== undefined) {
      const { raw = JSON.stringify(args), type = 'application/json' } = args as RawBody
      const headers = { 'content-type': type, ...payment?.http }
      return { method, path: `/paid/${name}`, headers, body: raw }
    }
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(args)) query.set(name, String(value))
    return { path: `/paid/${operation}?${query.toString()}`, headers: payment?.http ?? {} }
  },
  offers: ({ status, headers }) => ({
    x402: JSON.parse(Buffer.from(headers['payment-required'] ?? '', 'base64').toString('utf8')),
    mpp: MppChallenge.fromResponse(new Response(null, { status, headers })),
  }),
}

const REVISION = '2026-07-28'

export function toolCall(name: string, args: object, meta: Readonly<Record<string, unknown>> = {}): Question {
  return mcpQuestion('tools/call', { name, arguments: args, _meta: meta }, { 'mcp-name': name })
}

export function mcpQuestion(
  method: string,
  params: { readonly _meta?: Readonly<Record<string, unknown>>; readonly [name: string]: unknown },
  headers: Readonly<Record<string, string>> = {},
): Question {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'guard', version: '1' },
    ...params._meta,
  }
  return {
    method: 'POST',
    path: '/mcp/tools',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': REVISION,
      'mcp-method': method,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  }
}

/** The message of MCP in an answer: JSON, or a stream of one event that is. */
export function messageOf({ body }: Answer): unknown {
  return JSON.parse(/^data: (.*)$/m.exec(body)?.[1] ?? body)
}

interface Demand {
  readonly result: {
    readonly _meta: {
      readonly 'x402/error': Challenge
      readonly 'org.paymentauth/payment-required': { readonly challenges: readonly [EchoedChallenge] }
    }
  }
}

const mcp: Face = {
  name: 'mcp',
  question: (operation, args, payment) => toolCall(operation.replace('-', '_'), args, payment?.mcp),
  offers: (answer) => {
    const { _meta: meta } = (messageOf(answer) as Demand).result
    return { x402: meta['x402/error'], mpp: meta['org.paymentauth/payment-required'].challenges[0] }
  },
}

export const FACES: readonly Face[] = [HTTP, mcp]

/** The payload of x402 in both places. */
export function x402Payment(payload: object): Payment {
  return {
    http: { 'payment-signature': encode(payload as Parameters<typeof encode>[0]) },
    mcp: { 'x402/payment': payload },
  }
}

export async function payByX402({ x402 }: Offers, key: Hex, faults: Faults = {}): Promise<Payment> {
  return x402Payment((await sign(x402, key, faults)).payload)
}

/** The credential of MPP in both places. */
export function mppPayment(challenge: EchoedChallenge, signature: Hex): Payment {
  return {
    http: { authorization: credentialOf(challenge, signature) },
    mcp: { 'org.paymentauth/credential': { challenge, payload: { type: 'transaction', signature } } },
  }
}

export async function payByMpp(
  rpcUrl: string,
  { mpp }: Offers,
  key: Hex,
  faults: TransactionFaults = {},
): Promise<Payment> {
  return mppPayment(mpp, await signTransfer(rpcUrl, key, mpp, faults))
}
