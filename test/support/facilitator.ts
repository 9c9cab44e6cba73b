import { generateKeyPairSync, verify as verifySignature, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/facilitator'
import { UptoEvmScheme } from '@x402/evm/upto/facilitator'
import { createWalletClient, http, publicActions, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { EvmChain } from '../../src/sandbox/evm/chain.ts'
import { listening } from './http.ts'
import { addressOf, randomKey } from './payment.ts'
import { base } from './base-chain.ts'
import { receiptOf } from './receipt-of.ts'
import { askNode } from './rpc-proxy.ts'

/** How a facilitator answers POST /verify. */
type VerifyBehavior =
  | 'honest'
  /** A proxy in front of it answers. */
  | 'html'
  /** The connection is cut when the request is there. */
  | 'cut'
  | { readonly invalid: string }

/** How it answers POST /settle. */
type SettleBehavior =
  | 'honest'
  /** Honest, two seconds later. */
  | 'slow'
  /** Unsettled, without an answer. */
  | 'cut'
  /** Settled, without an answer. */
  | 'cut_after'
  | 'html'
  | 'html_after'
  /** Settled, with a truncated answer. */
  | 'garbled_after'
  /** Unsettled, with success claimed. */
  | 'lies'
  /** Settled, and reported as pending, as the Coinbase service does: HTTP 500 with a body. */
  | 'pending'
  /** The same once, the truth afterwards. */
  | 'pending_once'
  /** Another amount than it was asked for is settled by upto, and stated or not. */
  | { readonly moves: bigint; readonly states: 'the truth' | 'what was asked' }
  /** Refused for a reason, and unsettled by default. */
  | { readonly refused: string; readonly status?: number; readonly settled?: Settled }
  /** A status without a word on the payment, and unsettled by default. */
  | { readonly declined: number; readonly settled?: Settled }

/** Settled before the answer, or broadcast and in no block yet. */
type Settled = 'mined' | 'broadcast'

/** The facilitator of the SDK behind HTTP, on a chain, with every fault one can have. */
export interface FacilitatorServer {
  readonly url: string
  readonly token: string
  readonly address: Hex
  readonly set: (ways: { readonly verify?: VerifyBehavior; readonly settle?: SettleBehavior }) => void
  /** Sets the listing reports that it sends: JSON of EXTENSION-RESPONSES. */
  readonly list: (responses: object) => void
  /** Sets the schemes that GET /supported lists; all of them at first. */
  readonly support: (schemes: readonly string[]) => void
  /** Requests that it has declined, each with the error of its token. */
  readonly declined: () => readonly string[]
  /** Bodies of POST /settle so far, also of those that were not settled. */
  readonly settles: () => readonly Asked[]
  readonly verifies: () => readonly Asked[]
  /** How often GET /supported was answered. */
  readonly surveys: () => number
  /** Closes its port. */
  readonly refuse: () => Promise<void>
  /** Listens again. */
  readonly accept: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Body of /verify and /settle. */
interface Asked {
  readonly x402Version: number
  readonly paymentPayload: Parameters<x402Facilitator['verify']>[0]
  readonly paymentRequirements: Parameters<x402Facilitator['verify']>[1]
}

/** What a facilitator answers for a payment it has settled before: the SDK only sees a used nonce, hosted ones remember. */
type SettlementMemory = 'forgets' | 'remembers'

/** An API key of CDP as its portal gives it out, and the half that a facilitator checks its tokens with. */
interface CdpKeyPair {
  readonly keyId: string
  readonly keySecret: string
  readonly publicKey: KeyObject
}

export function cdpKeyPair(kind: 'ed25519' | 'ec'): CdpKeyPair {
  const keyId = `organizations/${randomKey().slice(2, 10)}/apiKeys/${randomKey().slice(2, 10)}`
  if (kind === 'ec') {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const pem = privateKey.export({ format: 'pem', type: 'sec1' }).toString()
    return { keyId, keySecret: pem.replaceAll('\n', String.raw`\n`), publicKey }
  }
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' })
  const bytes = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')])
  return { keyId, keySecret: bytes.toString('base64'), publicKey }
}

/** Who is let in: everyone with the fixed token, or with a fresh JWT of this key for the very request. */
type FacilitatorAccess = 'token' | CdpKeyPair

/** What is wrong with the token of a request to CDP; undefined: nothing. */
function faultOf(
  { keyId, publicKey }: CdpKeyPair,
  { headers, method, url }: IncomingMessage,
  used: Set<string>,
): string | undefined {
  const token = headers.authorization?.replace(/^Bearer /, '') ?? ''
  const [head = '', claims = '', signature = ''] = token.split('.')
  const read = (part: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(part, 'base64url').toString())
  if (signature === '') return 'no token'
  const { alg, kid, nonce } = read(head)
  const { sub, iss, uris, nbf, exp } = read(claims)
  const isEdwards = publicKey.asymmetricKeyType === 'ed25519'
  if (alg !== (isEdwards ? 'EdDSA' : 'ES256') || kid !== keyId || sub !== keyId || iss !== 'cdp')
    return 'names'
  const key = isEdwards ? publicKey : { key: publicKey, dsaEncoding: 'ieee-p1363' as const }
  const bytes = Buffer.from(`${head}.${claims}`)
  if (!verifySignature(isEdwards ? null : 'sha256', bytes, key, Buffer.from(signature, 'base64url')))
    return 'signature'
  const seconds = Date.now() / 1_000
  if (
    typeof nbf !== 'number' ||
    typeof exp !== 'number' ||
    nbf > seconds + 1 ||
    exp < seconds ||
    exp > nbf + 120
  )
    return 'time'
  if (JSON.stringify(uris) !== JSON.stringify([`${method} ${headers.host}${url}`])) return 'path'
  if (typeof nonce !== 'string' || used.has(nonce)) return 'used before'
  used.add(nonce)
  return undefined
}

function supportedBy(facilitator: x402Facilitator, schemes: readonly string[]): object {
  const answer = facilitator.getSupported()
  return { ...answer, kinds: answer.kinds.filter(({ scheme }) => schemes.includes(scheme)) }
}

export async function openFacilitator(
  chain: EvmChain,
  memory: SettlementMemory = 'remembers',
  doorman: FacilitatorAccess = 'token',
  version: 1 | 2 = 2,
): Promise<FacilitatorServer> {
  const key = randomKey()
  const address = addressOf(key)
  await chain.setGas(address, 10n ** 18n)
  const facilitator = sdkFacilitator(chain, key, version)
  const token = `token-${randomKey().slice(2, 18)}`
  const settled = new Map<string, object>()
  const settles: Asked[] = []
  const verifies: Asked[] = []
  let surveys = 0
  let supported: readonly string[] = ['exact', 'upto']
  let ways: { verify: VerifyBehavior; settle: SettleBehavior } = { verify: 'honest', settle: 'honest' }
  let listing: object | undefined
  const declined: string[] = []
  const nonces = new Set<string>()

  const reallySettle = async ({ paymentPayload, paymentRequirements }: Asked): Promise<object> => {
    const id = JSON.stringify(paymentPayload.payload)
    const known = memory === 'remembers' ? settled.get(id) : undefined
    if (known !== undefined) return known
    const result = await facilitator.settle(paymentPayload, paymentRequirements)
    if (result.success) settled.set(id, result)
    return result
  }

  /** Resolves once a transaction of the facilitator waits for a block. */
  const startSettling = async (asked: Asked): Promise<void> => {
    const before = await pendingNonce(chain, address)
    void reallySettle(asked).catch(() => undefined)
    while ((await pendingNonce(chain, address)) === before) await delay(20)
  }

  const verify = async (
    asked: Asked,
    { socket }: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> => {
    const way = ways.verify
    if (way === 'html') return html(response)
    if (way === 'cut') return void socket.destroy()
    if (way === 'honest')
      return json(response, 200, await facilitator.verify(asked.paymentPayload, asked.paymentRequirements))
    json(response, 200, { isValid: false, invalidReason: way.invalid })
  }

  const settle = async (
    asked: Asked,
    { socket }: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> => {
    const way = ways.settle
    if (typeof way === 'object' && 'moves' in way) {
      const { paymentPayload, paymentRequirements } = asked
      const { amount } = paymentRequirements
      const other = { ...paymentRequirements, amount: way.moves.toString() }
      const result = await facilitator.settle(paymentPayload, other)
      return json(response, 200, way.states === 'the truth' ? result : { ...result, amount })
    }
    if (typeof way === 'object') {
      if (way.settled === 'mined') await reallySettle(asked)
      if (way.settled === 'broadcast') await startSettling(asked)
      if ('declined' in way)
        return void response.writeHead(way.declined, { location: '/elsewhere' }).end('{"error":"gateway"}')
      const { refused, status = 200 } = way
      return json(response, status, {
        success: false,
        errorReason: refused,
        transaction: '',
        network: 'eip155:8453',
      })
    }
    if (way === 'cut') return void socket.destroy()
    if (way === 'html') return html(response)
    if (way === 'lies')
      return json(response, 200, { success: true, transaction: randomKey(), network: 'eip155:8453' })
    if (way === 'slow') await new Promise((resolve) => setTimeout(resolve, 2_000))
    const result = await reallySettle(asked)
    switch (way) {
      case 'cut_after':
        return void socket.destroy()
      case 'html_after':
        return html(response)
      case 'garbled_after':
        return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"success":tr')
      case 'pending_once':
        ways = { ...ways, settle: 'honest' }
        return json(response, 500, { ...result, success: false, errorReason: 'settlement_pending' })
      case 'pending':
        return json(response, 500, { ...result, success: false, errorReason: 'settlement_pending' })
      case 'slow':
      case 'honest':
        return json(response, 200, result)
    }
  }

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = await textOf(request)
    const wrong = request.headers.authorization === `Bearer ${token}` ? undefined : 'another token'
    const fault = doorman === 'token' ? wrong : faultOf(doorman, request, nonces)
    if (fault !== undefined) {
      declined.push(`${request.method} ${request.url}: ${fault}`)
      return json(response, 401, { error: 'unauthorized' })
    }
    if (listing !== undefined)
      response.setHeader('EXTENSION-RESPONSES', Buffer.from(JSON.stringify(listing)).toString('base64'))
    switch (`${request.method} ${request.url}`) {
      case 'GET /supported':
        json(response, 200, supportedBy(facilitator, supported))
        surveys += 1
        return
      case 'POST /verify': {
        const asked = JSON.parse(text) as Asked
        verifies.push(asked)
        return verify(asked, request, response)
      }
      case 'POST /settle': {
        const asked = JSON.parse(text) as Asked
        settles.push(asked)
        return settle(asked, request, response)
      }
      default:
        return json(response, 404, { error: 'not found' })
    }
  }
  const server = createServer((request, response) => {
    // As the example facilitators of the SDK do.
    answer(request, response).catch((fault: unknown) => json(response, 500, { error: String(fault) }))
  })
  const { url, close } = await listening(server)
  return {
    url,
    token,
    address,
    set: (next) => (ways = { verify: 'honest', settle: 'honest', ...next }),
    list: (responses) => (listing = responses),
    support: (schemes) => (supported = schemes),
    declined: () => declined,
    settles: () => settles,
    verifies: () => verifies,
    surveys: () => surveys,
    refuse: close,
    accept: async () => {
      if (server.listening) return
      server.listen(Number(new URL(url).port), '127.0.0.1')
      await once(server, 'listening')
    },
    close: async () => {
      if (server.listening) await close()
    },
  }
}

/** Its types know CAIP-2 only. */
const BASE_IN_V1 = 'base' as `${string}:${string}`

function sdkFacilitator({ rpcUrl }: EvmChain, key: Hex, version: 1 | 2): x402Facilitator {
  const account = privateKeyToAccount(key)
  const client = createWalletClient({
    account,
    chain: base,
    transport: http(rpcUrl),
    pollingInterval: 20,
  }).extend(publicActions)
  let last: Promise<unknown> = Promise.resolve()
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    readContract: (call) => client.readContract(call),
    verifyTypedData: (call) => client.verifyTypedData(call as Parameters<typeof client.verifyTypedData>[0]),
    // One after the other, or the account nonces collide.
    writeContract: (call) => {
      const next = last.then(() => client.writeContract(call))
      last = next.catch(() => undefined)
      return next
    },
    sendTransaction: (call) => client.sendTransaction(call),
    waitForTransactionReceipt: ({ hash }) => receiptOf(client, hash),
    getCode: (call) => client.getCode(call),
  })
  return version === 1
    ? new x402Facilitator().registerV1(BASE_IN_V1, new ExactEvmSchemeV1(signer))
    : new x402Facilitator()
        .register('eip155:8453', new ExactEvmScheme(signer))
        .register('eip155:8453', new UptoEvmScheme(signer))
        .registerExtension({ key: 'eip2612GasSponsoring' })
}

/** Of transactions in the pool too. */
async function pendingNonce({ rpcUrl }: EvmChain, account: Hex): Promise<unknown> {
  return (await askNode(rpcUrl, 'eth_getTransactionCount', [account, 'pending'])).result
}

function html(response: ServerResponse): void {
  response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>502 Bad Gateway</h1>')
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
