import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createMemoryCache, Cache } from '../../../src/engine/cache/cache.ts'
import type { Catalog } from '../../../src/engine/catalog/catalog.ts'
import type { Arguments, HandlerMap } from '../../../src/engine/handler.ts'
import { attach, createHttpServer } from '../../../src/engine/http/server.ts'
import { createService } from '../../../src/engine/http/service.ts'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { toMicros } from '../../../src/engine/base/money.ts'
import type { Detection, Offer, Payment } from '../../../src/engine/payment/payment.ts'
import type { Protocol } from '../../../src/engine/payment/protocol.ts'
import { systemRuntime } from '../../../src/engine/base/runtime.ts'
import { listening } from '../../support/http.ts'

/** A request as it reached the upstream. */
export interface UpstreamCall {
  readonly kind: 'upstream'
  readonly url: URL
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly type: string
  readonly bytes: Buffer
}

/** The arguments with which a handler ran. */
export interface HandlerCall {
  readonly kind: 'handler'
  readonly args: Arguments
}

/** A service whose upstream and handlers record what reaches them, and whose payments cost nothing to make. */
export interface RecordingShop {
  readonly url: string
  readonly upstream: string
  /** Serves another catalog; its handlers are those that `record` has made. */
  readonly serve: (catalog: Catalog) => Promise<void>
  /** What has reached the upstream and the handlers since the last call of this function. */
  readonly take: () => readonly (UpstreamCall | HandlerCall)[]
  /** Amounts that have been settled since the last call of this function. */
  readonly charged: () => readonly bigint[]
}

/** The header and the member of `_meta` that carry a payment. */
export const PAYMENT = 'x-test-payment'
/** The header that carries the amount of a challenge. */
export const OFFER = 'x-test-offer'

/** Names of the handlers that record their arguments. */
export const HANDLER_NAMES = Array.from({ length: 20 }, (_, place) => `record${place}`)

export async function openRecordingShop(
  t: Test,
  first: (upstream: string) => Catalog,
): Promise<RecordingShop> {
  const recorded: (UpstreamCall | HandlerCall)[] = []
  const settled: bigint[] = []
  const upstream = await listening(
    createServer((request, response) => {
      void buffer(request).then((bytes) => {
        const { url = '/', headers } = request
        const type = headers['content-type'] ?? ''
        recorded.push({ kind: 'upstream', url: new URL(url, 'http://upstream'), headers, type, bytes })
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      })
    }),
  )
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-'))
  const ledger = await openLmdbLedger(directory)
  const handlers: HandlerMap = Object.fromEntries(
    HANDLER_NAMES.map((name) => [
      name,
      async (args: Arguments) => {
        recorded.push({ kind: 'handler', args })
        return { source: [], body: {} }
      },
    ]),
  )
  const faults: unknown[] = []
  const server = createHttpServer()
  const { url, close } = await listening(server)
  const service = await createService(
    {
      ...systemRuntime,
      now: ledger.now,
      catalog: first(upstream.url),
      handlers,
      protocols: () => [freeProtocol((amount) => settled.push(amount))],
      baseUrl: url,
      mcpUrls: {},
      trustProxy: false,
      observe: undefined,
      sandbox: false,
      figures: () => new Map(),
      bound: () => '127.0.0.1',
      settle: undefined,
      operatorRoute: undefined,
      ledger,
      cache: new Cache(createMemoryCache(), ledger.now),
      proxy: { fetcher: fetch, secret: () => undefined, report: (fault) => faults.push(fault) },
      networks: async () => [],
      listings: async () => [],
      owner: 'test',
      report: (fault) => faults.push(fault),
    },
    async () => new Map(),
  )
  attach(server, service.koa)
  t.teardown(async () => {
    await close()
    await service.idle()
    // Assertions come too late here.
    if (faults.length > 0) throw new AggregateError(faults, 'faults that nobody has foreseen')
    await ledger.close()
    await upstream.close()
    rmSync(directory, { recursive: true, force: true })
  })
  return {
    url,
    upstream: upstream.url,
    serve: async (catalog) => {
      await service.swap(catalog, handlers, async () => new Map())
    },
    take: () => recorded.splice(0),
    charged: () => settled.splice(0),
  }
}

/** A protocol whose payments are names and amounts: whoever presents one has signed it, and it settles at once. */
function freeProtocol(settle: (amount: bigint) => void): Protocol {
  const detect = (text: unknown): Detection => {
    if (typeof text !== 'string') return { kind: 'none' }
    const [name = '', amount = ''] = text.split(' ')
    return { kind: 'payment', payment: paymentOf(name, BigInt(amount)) }
  }
  const paymentOf = (name: string, amount: bigint): Payment => ({
    protocol,
    scheme: 'test',
    key: `test:${name}`,
    network: 'test:1',
    asset: 'coin',
    authorizationHash: name,
    payee: 'shop',
    authorizedAmount: amount,
    amountFor: () => amount,
    token: undefined,
    identifier: undefined,
    copies: 'wait',
    check: ({ price }: Offer) =>
      price === amount
        ? undefined
        : { code: 'no_matching_requirements', detail: `${amount} was paid, and the call costs ${price}` },
    // Each payment has a payer of its own, so that no call is answered with the answer of another.
    verify: async () => ({
      kind: 'verified',
      payer: `payer-${name}`,
      account: 'key',
      validBefore: Date.now() + 600_000,
    }),
    simulate: async () => undefined,
    release: () => undefined,
    settle: async (charged, journal) => {
      await journal.record({ kind: 'own', hash: '0x01', raw: '0x02', signer: '0x03', nonce: 4 })
      settle(charged)
      const receipt = { transaction: '0x01', network: 'test:1', payer: name, amount: charged.toString() }
      return { kind: 'settled', receipt }
    },
  })
  const protocol: Protocol = {
    name: 'test',
    longestWork: 300_000,
    payerKeys: (text) => [text],
    detect: (headers) => detect(headers[PAYMENT]),
    challenge: (_, amount = toMicros(0n)) => ({
      issue: () => ({ headers: { [OFFER]: amount.toString() }, members: `"test":"${amount}"` }),
      demand: () => ({ content: { [OFFER]: amount.toString() }, meta: {} }),
      published: {},
      headerBytes: 0,
    }),
    resolve: async () => ({ kind: 'unknown', detail: 'nothing is left open' }),
    lookAtBlocks: async () => () => ({ kind: 'unknown' }),
    receiptHeaders: () => ({}),
    failureHeaders: () => ({}),
    tools: {
      capabilities: {},
      detect: (meta) => detect(meta[PAYMENT]),
      receipt: () => ({}),
      failure: () => ({}),
    },
  }
  return protocol
}
