import { Agent, request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { Challenge as MppChallenge } from 'mppx'
import {
  encode,
  sign,
  writtenInV1,
  type Challenge,
  type Faults,
  type Hex,
  type SignedPayment,
} from '../../../support/payment.ts'
import {
  credentialOf,
  signTransfer,
  type EchoedChallenge,
  type TransactionFaults,
} from '../../../support/tempo.ts'

import { signPermit } from '../../../support/upto.ts'

/** An answer as it came, headers by their names in lower case. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface RequestSpec {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A connection that is kept open: the next request shows that the answer before it has arrived. */
export interface Connection {
  send(request: RequestSpec): Promise<Answer>
  close(): void
}

export function connect(url: string): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    send: async ({ method = 'GET', path, headers = {}, body }) => {
      const { hostname, port } = new URL(url)
      const sent = httpRequest({ agent, hostname, port, path, method, headers })
      const answered = new Promise<Answer>((resolve, reject) => {
        sent.once('error', reject)
        sent.once('response', (response) => {
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
      sent.end(body)
      return answered
    },
    close: () => agent.destroy(),
  }
}

/** A payment in the form of each transport. */
export interface Payment {
  readonly http: Readonly<Record<string, string>>
  readonly mcp: Readonly<Record<string, unknown>>
}

/** The offers in the answer to an unpaid request. */
export interface Offers {
  readonly x402: Challenge
  readonly mpp: EchoedChallenge
}

/** A body instead of arguments. */
export interface RawBody {
  readonly raw?: string
  readonly type?: string
}

/** Calls an operation over HTTP or MCP: `item`, or with a method other than GET `POST note`. */
export interface Transport {
  readonly name: 'http' | 'mcp'
  request(operation: string, args: object, payment?: Payment): RequestSpec
  offers(answer: Answer): Offers
}

export const HTTP: Transport = {
  name: 'http',
  request: (operation, args, payment) => {
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
    // Metered work is not sold by it.
    get mpp() {
      return MppChallenge.fromResponse(new Response(null, { status, headers }))
    },
  }),
}

const REVISION = '2026-07-28'

export function toolCall(
  name: string,
  args: object,
  meta: Readonly<Record<string, unknown>> = {},
): RequestSpec {
  return mcpRequest('tools/call', { name, arguments: args, _meta: meta }, { 'mcp-name': name })
}

export function mcpRequest(
  method: string,
  params: { readonly _meta?: Readonly<Record<string, unknown>>; readonly [name: string]: unknown },
  headers: Readonly<Record<string, string>> = {},
): RequestSpec {
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

/** The MCP message in an answer: a JSON body, or a stream of one event with JSON. */
export function messageOf({ body }: Answer): unknown {
  return JSON.parse(/^data: (.*)$/m.exec(body)?.[1] ?? body)
}

interface PaymentRequiredResult {
  readonly result: {
    readonly _meta: {
      readonly 'x402/error': Challenge
      readonly 'org.paymentauth/payment-required': { readonly challenges: readonly [EchoedChallenge] }
    }
  }
}

const mcp: Transport = {
  name: 'mcp',
  request: (operation, args, payment) => toolCall(operation.replace('-', '_'), args, payment?.mcp),
  offers: (answer) => {
    const { _meta: meta } = (messageOf(answer) as PaymentRequiredResult).result
    return { x402: meta['x402/error'], mpp: meta['org.paymentauth/payment-required'].challenges[0] }
  },
}

export const TRANSPORTS: readonly Transport[] = [HTTP, mcp]

/** An x402 payload in the form of each transport. */
export function x402Payment(payload: object): Payment {
  return {
    http: { 'payment-signature': encode(payload as Parameters<typeof encode>[0]) },
    mcp: { 'x402/payment': payload },
  }
}

/** The same payment in the envelope of x402 version 1. */
export function v1Payment(signed: SignedPayment): Payment {
  const payload = writtenInV1(signed, 'base')
  return { http: { 'x-payment': encode(payload) }, mcp: { 'x402/payment': payload } }
}

export async function payByX402({ x402 }: Offers, key: Hex, faults: Faults = {}): Promise<Payment> {
  return x402Payment((await sign(x402, key, faults)).payload)
}

export async function payByUpto({ x402 }: Offers, key: Hex): Promise<Payment> {
  return x402Payment((await signPermit(x402, key)).payload)
}

/** An MPP credential in the form of each transport. */
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
