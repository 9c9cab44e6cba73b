import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { createWalletClient, http, publicActions, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { EvmChain } from '../../src/sandbox/evm/chain.ts'
import { listening } from './listening.ts'
import { addressOf, randomKey } from './payment.ts'
import { base } from './base-chain.ts'

/** How a facilitator answers POST /verify. */
export type VerifyWay =
  | 'honest'
  /** A proxy in front of it answers. */
  | 'html'
  /** The connection is cut when the request is there. */
  | 'cut'
  | { readonly invalid: string }

/** How it answers POST /settle. */
export type SettleWay =
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
  /** Refused, unsettled unless it says so. */
  | { readonly refused: string; readonly status?: number; readonly settled?: true }

/** The facilitator of the SDK behind HTTP, on a chain, with every fault one can have. */
export interface StandIn {
  readonly url: string
  readonly token: string
  readonly address: Hex
  readonly set: (ways: { readonly verify?: VerifyWay; readonly settle?: SettleWay }) => void
  /** Bodies of POST /settle so far, also of those that were not settled. */
  readonly settles: () => readonly Asked[]
  readonly verifies: () => readonly Asked[]
  /** Closes its port. */
  readonly refuse: () => Promise<void>
  /** Listens again. */
  readonly accept: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Body of /verify and /settle. */
export interface Asked {
  readonly x402Version: number
  readonly paymentPayload: Parameters<x402Facilitator['verify']>[0]
  readonly paymentRequirements: Parameters<x402Facilitator['verify']>[1]
}

/** What a facilitator answers for a payment it has settled before: the SDK only sees a used nonce, hosted ones remember. */
export type Memory = 'forgets' | 'remembers'

export async function openFacilitator(chain: EvmChain, memory: Memory = 'remembers'): Promise<StandIn> {
  const key = randomKey()
  const address = addressOf(key)
  await chain.setGas(address, 10n ** 18n)
  const facilitator = sdkFacilitator(chain, key)
  const token = `token-${randomKey().slice(2, 18)}`
  const settled = new Map<string, object>()
  const settles: Asked[] = []
  const verifies: Asked[] = []
  let ways: { verify: VerifyWay; settle: SettleWay } = { verify: 'honest', settle: 'honest' }

  const reallySettle = async ({ paymentPayload, paymentRequirements }: Asked): Promise<object> => {
    const id = JSON.stringify(paymentPayload.payload)
    const known = memory === 'remembers' ? settled.get(id) : undefined
    if (known !== undefined) return known
    const result = await facilitator.settle(paymentPayload, paymentRequirements)
    if (result.success) settled.set(id, result)
    return result
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
    if (typeof way === 'object') {
      const { refused, status = 200, settled = false } = way
      if (settled) await reallySettle(asked)
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
    if (request.headers.authorization !== `Bearer ${token}`)
      return json(response, 401, { error: 'unauthorized' })
    switch (`${request.method} ${request.url}`) {
      case 'GET /supported':
        return json(response, 200, facilitator.getSupported())
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
    settles: () => settles,
    verifies: () => verifies,
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

function sdkFacilitator({ rpcUrl }: EvmChain, key: Hex): x402Facilitator {
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
    waitForTransactionReceipt: (call) => client.waitForTransactionReceipt(call),
    getCode: (call) => client.getCode(call),
  })
  return new x402Facilitator().register('eip155:8453', new ExactEvmScheme(signer))
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
