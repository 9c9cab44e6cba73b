import { setTimeout as delay } from 'node:timers/promises'
import { Challenge } from 'mppx'
import type { Route } from '../../src/engine/catalog/catalog.ts'
import type { Dispatch } from '../../src/engine/ledger/payment-record.ts'
import { realmOf } from '../../src/engine/mpp/mpp-challenge.ts'
import { createMpp } from '../../src/engine/mpp/mpp.ts'
import { PendingTransfers } from '../../src/engine/mpp/pending-transfers.ts'
import { openTempoChain } from '../../src/engine/mpp/payer-transfer.ts'
import { Validator } from '../../src/engine/mpp/transfer-validator.ts'
import type { Offer, Payment } from '../../src/engine/payment/payment.ts'
import type { Protocol } from '../../src/engine/payment/protocol.ts'
import type { Refusal } from '../../src/engine/base/errors.ts'
import type { Settlement } from '../../src/engine/payment/settlement.ts'
import { compileRoutes, routeAt, fixedPriceOf } from './catalogs.ts'
import { PATH_USD, TEMPO_CHAIN, type EchoedChallenge, startTempo, type TempoChain } from './tempo.ts'
import { randomBytes } from './random.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openRpcProxy, type RpcProxy } from './rpc-proxy.ts'
import { addressOf, randomKey, type Hex } from './payment.ts'
import { startServer, type RunningServer } from './server.ts'
import { openCountingUpstream, type CountingUpstream } from './upstream.ts'

const SCOPE = 'ping:the-arguments'
const ROUTE = routeAt(compileRoutes('  /paid/ping: { price: 0.005, summary: Answers }\n'), '/paid/ping')

/** The protocol with a thread of its own, without a server. */
interface MppFixture {
  readonly protocol: Protocol
  readonly validator: Validator
  readonly route: Route
  readonly offer: Offer
  /** Why the thread has ended. */
  readonly reports: unknown[]
  challenge(): EchoedChallenge
  /** The payment in a request; throws when it is malformed. */
  take(authorization: string): Payment
  /** Runs check, signature and simulation, as for a new payment. */
  refusal(authorization: string, offer?: Offer): Promise<Refusal | undefined>
  /** Runs every step; `dispatched` holds what was recorded. */
  settle(authorization: string): Promise<{ settlement: Settlement; dispatched: Dispatch[] }>
  close(): Promise<void>
}

interface MppSettings {
  readonly rpcUrl: string
  readonly recipient: string
  readonly secretKeys?: readonly string[]
  readonly now?: () => number
  readonly sleep?: (ms: number) => Promise<void>
}

export function openMppProtocol({
  rpcUrl,
  recipient,
  secretKeys = ['k'.repeat(32)],
  now = () => Date.now(),
  sleep = async (ms) => {
    await delay(ms)
  },
}: MppSettings): MppFixture {
  const baseUrl = 'http://localhost:4021'
  const reports: unknown[] = []
  const validator = new Validator({
    realm: realmOf(baseUrl),
    secretKeys,
    rpcUrls: { [TEMPO_CHAIN]: rpcUrl },
    report: (fault) => reports.push(fault),
  })
  const terms = {
    realm: realmOf(baseUrl),
    chainId: TEMPO_CHAIN,
    currency: PATH_USD,
    recipient,
    testnet: false,
  }
  const chain = openTempoChain(rpcUrl, fetch)
  const pending = new PendingTransfers(chain, { now, sleep })
  const protocol = createMpp({ terms, secretKeys, validator, chain, pending, now, sleep }, randomBytes)
  const offer = {
    endpoint: ROUTE,
    resource: `${baseUrl}/paid/ping`,
    scope: SCOPE,
    price: fixedPriceOf(ROUTE),
  }
  const counter: MppFixture = {
    protocol,
    validator,
    route: ROUTE,
    offer,
    reports,
    challenge: () => {
      const issued = protocol
        .challenge(ROUTE)
        ?.issue({ resource: offer.resource, scope: SCOPE, error: 'payment_required' })
      return Challenge.deserialize(issued?.headers['WWW-Authenticate'] ?? '')
    },
    take: (authorization) => {
      const detection = protocol.detect({ authorization })
      if (detection.kind !== 'payment') throw new Error(`no payment: ${detection.kind}`)
      return detection.payment
    },
    refusal: async (authorization, asked = offer) => {
      const payment = counter.take(authorization)
      const unfit = payment.check(asked, now())
      if (unfit !== undefined) return unfit
      const verification = await payment.verify()
      if (verification.kind === 'refused') return verification.refusal
      return payment.simulate().finally(() => payment.release())
    },
    settle: async (authorization) => {
      const dispatched: Dispatch[] = []
      const payment = counter.take(authorization)
      if (payment.settle === undefined) throw new Error('charged without a transfer')
      const settlement = await payment.settle(payment.authorizedAmount, {
        record: async (dispatch) => {
          dispatched.push(dispatch)
        },
      })
      return { settlement, dispatched }
    },
    close: () => validator.close(),
  }
  return counter
}

const CATALOG = fileURLToPath(new URL('../fixtures/payments/mpp.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('../fixtures/payments/handlers', import.meta.url))

/** A service as an operator runs it, on a local Tempo chain with worthless money. */
interface MppService {
  readonly url: string
  readonly server: RunningServer
  readonly chain: TempoChain
  readonly node: RpcProxy
  readonly upstream: CountingUpstream
  readonly recipient: Hex
  readonly secret: string
  /** Kills the server and starts it again on its data. */
  restart(): Promise<void>
  readonly close: () => Promise<void>
}

export async function openMppService(more: Readonly<Record<string, string>> = {}): Promise<MppService> {
  const [chain, upstream] = await Promise.all([startTempo(), openCountingUpstream()])
  const node = await openRpcProxy(chain.rpcUrl)
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
  const recipient = addressOf(randomKey())
  const secret = randomKey()
  const start = (): Promise<RunningServer> =>
    startServer({
      args: ['--catalog', CATALOG, '--handlers', HANDLERS],
      dataDir,
      env: {
        HOST: '127.0.0.1',
        PAY_TO: addressOf(randomKey()),
        SETTLER_PRIVATE_KEY: randomKey(),
        RPC_URL_8453: 'http://127.0.0.1:1',
        [`RPC_URL_${TEMPO_CHAIN}`]: node.url,
        MPP_RECIPIENT: recipient,
        MPP_SECRET_KEY: secret,
        UPSTREAM_URL: upstream.url,
        ...more,
      },
    })
  let server = await start()
  return {
    get url() {
      return server.url
    },
    get server() {
      return server
    },
    chain,
    node,
    upstream,
    recipient,
    secret,
    restart: async () => {
      await server.kill()
      server = await start()
    },
    close: async () => {
      await server.stop()
      await Promise.all([node.close(), upstream.close(), chain.stop()])
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
