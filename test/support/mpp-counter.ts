import { setTimeout as delay } from 'node:timers/promises'
import { Challenge } from 'mppx'
import type { Route } from '../../src/engine/catalog/catalog.ts'
import { Chain, createRpc } from '../../src/engine/chains/evm/rpc.ts'
import type { SettlementAttempt } from '../../src/engine/ledger/payment-record.ts'
import type { Micros } from '../../src/engine/money.ts'
import { realmOf } from '../../src/engine/protocols/mpp/challenge.ts'
import { createMpp } from '../../src/engine/protocols/mpp/mpp.ts'
import { Validator } from '../../src/engine/protocols/mpp/validator.ts'
import type { Offer, Payment, Protocol, Refusal, Settlement } from '../../src/engine/protocols/protocol.ts'
import { compileRoutes, routeAt } from './compiled.ts'
import { PATH_USD, TEMPO_CHAIN, type EchoedChallenge } from './tempo.ts'
import { randomBytes } from './random.ts'

const SCOPE = 'ping:the-arguments'
const ROUTE = routeAt(compileRoutes('  /paid/ping: { price: 0.005, summary: Answers }\n'), '/paid/ping')

/** The protocol with a thread of its own, without a server. */
export interface MppCounter {
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
  settle(authorization: string): Promise<{ settlement: Settlement; dispatched: SettlementAttempt[] }>
  close(): Promise<void>
}

export interface CounterSettings {
  readonly rpcUrl: string
  readonly recipient: string
  readonly secretKeys?: readonly string[]
  readonly now?: () => number
  readonly sleep?: (ms: number) => Promise<void>
}

export function openMppCounter({
  rpcUrl,
  recipient,
  secretKeys = ['k'.repeat(32)],
  now = () => Date.now(),
  sleep = async (ms) => {
    await delay(ms)
  },
}: CounterSettings): MppCounter {
  const baseUrl = 'http://localhost:4021'
  const reports: unknown[] = []
  const validator = new Validator({
    realm: realmOf(baseUrl),
    secretKeys,
    rpcUrls: { [TEMPO_CHAIN]: rpcUrl },
    report: (fault) => reports.push(fault),
  })
  const terms = { realm: realmOf(baseUrl), chainId: TEMPO_CHAIN, currency: PATH_USD, recipient }
  const chain = new Chain(createRpc(rpcUrl, fetch))
  const protocol = createMpp({ terms, secretKeys, validator, chain, now, sleep }, randomBytes)
  const offer = { endpoint: ROUTE, resource: `${baseUrl}/paid/ping`, scope: SCOPE, price: priceOf(ROUTE) }
  const counter: MppCounter = {
    protocol,
    validator,
    route: ROUTE,
    offer,
    reports,
    challenge: () => {
      const issued = protocol
        .challenge(ROUTE)
        ?.prepare({ resource: offer.resource, scope: SCOPE, error: 'payment_required' })()
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
      return verification.kind === 'refused' ? verification.refusal : payment.simulate()
    },
    settle: async (authorization) => {
      const dispatched: SettlementAttempt[] = []
      const settlement = await counter.take(authorization).settle({
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

function priceOf({ operation: { price } }: Route): Micros {
  if (price === undefined) throw new Error('free')
  return price
}
