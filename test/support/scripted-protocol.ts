import { systemEvery } from '../../src/engine/base/every.ts'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Route } from '../../src/engine/catalog/catalog.ts'
import type { PaymentRecord, Receipt, State, StoredAnswer } from '../../src/engine/ledger/payment-record.ts'
import { BuyerConnections } from '../../src/engine/http/buyer-connections.ts'
import { LEASE_MS } from '../../src/engine/base/money-times.ts'
import { buyerKeyOf } from '../../src/engine/ledger/payment-lifecycle.ts'
import { cleanUp } from '../../src/engine/ledger/clean-up.ts'
import type { Ledger } from '../../src/engine/ledger/ledger.ts'
import { writeAnswer } from '../../src/engine/ledger/answers.ts'
import {
  type Fulfillment,
  type PurchaseDeps,
  type PurchaseRequest,
  type Store,
} from '../../src/engine/purchase/request.ts'
import { type PurchaseResult } from '../../src/engine/purchase/result.ts'
import { PaymentLocks } from '../../src/engine/purchase/payment-locks.ts'
import { purchase } from '../../src/engine/purchase/purchase.ts'
import { recover, type RecoveryDeps } from '../../src/engine/purchase/recovery.ts'
import type { Offer, SettledPayment } from '../../src/engine/payment/payment.ts'
import type { Protocol } from '../../src/engine/payment/protocol.ts'
import type { Refusal } from '../../src/engine/base/errors.ts'
import type { Settlement } from '../../src/engine/payment/settlement.ts'
import { toMicros } from '../../src/engine/base/money.ts'
import { compileRoutes, routeAt, fixedPriceOf } from './catalogs.ts'
import { makeRecord } from './payment-records.ts'
import { openTemporaryLedger } from './temporary-ledger.ts'

export const NOW = 1_800_000_000_000
export const KEY = 'test:one'
export const RECEIPT: Receipt = { transaction: '0x01', network: 'test:1', payer: 'buyer', amount: '5000' }
export const TRANSACTION = { kind: 'own', hash: '0x01', raw: '0x02', signer: '0x03', nonce: 4 } as const
export const SETTLED: Settlement = { kind: 'settled', receipt: RECEIPT }
export const UNKNOWN: Settlement = { kind: 'unknown', detail: 'nobody knows' }
export const FAILED: Settlement = {
  kind: 'failed',
  refusal: { code: 'settlement_failed', detail: 'it did not move' },
}
export const AWAY: Settlement = { kind: 'failed', refusal: { code: 'chain_unavailable', detail: 'away' } }
export const FORGED: Refusal = { code: 'invalid_exact_evm_signature', detail: 'forged' }
export const POOR: Refusal = { code: 'invalid_exact_evm_insufficient_balance', detail: 'poor' }
export const STORED: StoredAnswer = { kind: 'json', value: { run: 0 } }

const catalog = compileRoutes(`  /paid/tide:
    price: 0.005
    handler: tide
    summary: Tides
    timeout: 20s
    example: { tide: 1 }
  /paid/moon:
    price: 0.005
    handler: moon
    summary: Moons
    example: { moon: 1 }
  /paid/deep:
    price: 0.005
    handler: deep
    settle: upfront
    timeout: 20s
    summary: Depths
    example: { deep: 1 }
  /paid/flow:
    price: 0.005
    handler: flow
    timeout: 20s
    summary: Flows
    response: { stream: true, media_type: text/event-stream }
`)
export const TIDE = routeAt(catalog, '/paid/tide')
export const MOON = routeAt(catalog, '/paid/moon')
/** Settles before the work. */
export const DEEP = routeAt(catalog, '/paid/deep')
/** Streams. */
export const FLOW = routeAt(catalog, '/paid/flow')

/** The outcome of each step of a payment; steps that are left out succeed. */
interface ScriptedProtocol {
  check: Refusal | undefined
  verify: Refusal | undefined
  /** Milliseconds since the epoch. */
  validBefore: number
  simulate: Refusal | undefined
  /** One for each attempt; the last one is repeated. */
  settlements: Settlement[]
  resolution: Settlement
  /** Between the call to settle and the record of its transaction. */
  beforeRecord: () => Promise<void>
  /** Money moved. */
  charges: number
  resolved: number
}

export type Changes = Partial<Omit<PurchaseRequest, 'fulfillment' | 'offer'>> & {
  readonly route?: Route
  readonly run?: Fulfillment['run']
  readonly check?: Fulfillment['preflight']
  readonly store?: Store
}

function offerOf(route: Route): Offer {
  const price = fixedPriceOf(route)
  return { endpoint: route, resource: 'https://shop.example/paid/tide', scope: 'scope', price }
}

/** A payment of the scripted protocol. */
type ScriptedPayment = SettledPayment & { readonly protocol: Protocol }

export interface Shop {
  readonly ledger: Ledger
  readonly clock: { now: number }
  readonly bank: ScriptedProtocol
  readonly deps: PurchaseDeps
  readonly payment: (changes?: Partial<Omit<SettledPayment, 'protocol'>>) => ScriptedPayment
  readonly buy: (changes?: Changes, deps?: PurchaseDeps) => Promise<PurchaseResult>
  readonly runs: () => number
  readonly stored: () => Promise<PaymentRecord | undefined>
  /** States the entry has had, in order. */
  readonly history: State[]
}

/** The clock advances only when a test advances it; copies poll every other millisecond. */
export async function openShop(t: Test): Promise<Shop> {
  const lmdb = await openTemporaryLedger(t)
  const history: State[] = []
  const noted = (record: PaymentRecord): void => {
    if (history.at(-1) !== record.state) history.push(record.state)
  }
  const ledger: Ledger = {
    ...lmdb,
    insert: async (record) => {
      const standing = await lmdb.insert(record)
      if (standing === undefined) noted(record)
      return standing
    },
    commit: async (changes, states) => {
      const made = await lmdb.commit(changes, states)
      if (made)
        for (const { previous, next } of changes)
          if (next !== undefined) noted(next)
          else if (previous !== undefined) noted({ ...previous, state: 'voided' })
      return made
    },
    replace: (previous, next) => ledger.commit([{ previous, next }]),
    replaceSoon: (previous, next) => ledger.commit([{ previous, next }]),
    remove: (record) => ledger.commit([{ previous: record, next: undefined }]),
  }
  const clock = { now: NOW }
  const bank: ScriptedProtocol = {
    check: undefined,
    verify: undefined,
    validBefore: NOW + 60_000,
    simulate: undefined,
    settlements: [SETTLED],
    resolution: SETTLED,
    beforeRecord: async () => {},
    charges: 0,
    resolved: 0,
  }
  const deps: PurchaseDeps = {
    ledger,
    owner: 'mine',
    now: () => clock.now,
    every: systemEvery,
    sleep: async () => {
      await delay(2)
    },
    redeliver: 86_400_000,
    payerLimit: undefined,
    streamCredit: { streams: 2, spend: toMicros(1_000_000n), loss: toMicros(10_000_000n), validity: 60_000 },
    denied: new Set<string>(),
    recentOffers: async () => [],
    buyers: new BuyerConnections(),
    locks: new PaymentLocks({
      ledger,
      owner: 'mine',
      now: () => clock.now,
      every: systemEvery,
      sleep: () => delay(2).then(() => undefined),
    }),
    stopping: new AbortController().signal,
    report: () => undefined,
  }
  const protocol: Protocol = {
    name: 'test',
    longestWork: 30_000,
    payerKeys: (text) => [text],
    detect: () => ({ kind: 'none' }),
    challenge: () => undefined,
    resolve: async () => {
      bank.resolved += 1
      return bank.resolution
    },
    lookAtBlocks: async () => () => ({ kind: 'final' }),
    receiptHeaders: () => ({}),
    failureHeaders: () => ({}),
    tools: {
      capabilities: {},
      detect: () => ({ kind: 'none' }),
      receipt: () => ({}),
      failure: () => ({}),
    },
  }
  const payment = (changes: Partial<Omit<SettledPayment, 'protocol'>> = {}): ScriptedPayment => ({
    protocol,
    scheme: 'exact',
    key: KEY,
    network: 'test:1',
    asset: 'coin',
    authorizationHash: 'what was signed',
    payee: 'shop',
    authorizedAmount: 5_000n,
    amountFor: () => 5_000n,
    token: 'secret',
    identifier: undefined,
    copies: 'wait',
    check: () => bank.check,
    verify: async () =>
      bank.verify === undefined
        ? { kind: 'verified', payer: 'buyer', account: 'key', validBefore: bank.validBefore }
        : { kind: 'refused', refusal: bank.verify },
    simulate: async () => bank.simulate,
    release: () => undefined,
    settle: async (_amount, journal) => {
      await bank.beforeRecord()
      await journal.record(TRANSACTION)
      const [settlement = SETTLED, ...more] = bank.settlements
      if (more.length > 0) bank.settlements = more
      if (settlement.kind === 'settled') bank.charges += 1
      return settlement
    },
    ...changes,
  })
  let runs = 0
  const buy = (
    { route = TIDE, run, check, store, ...changes }: Changes = {},
    at: PurchaseDeps = deps,
  ): Promise<PurchaseResult> =>
    purchase(at, {
      payment: payment(),
      offer: offerOf(route),
      revision: 'r1',
      args: {},
      digest: 'arguments',
      identifier: changes.payment?.identifier,
      fulfillment: {
        run:
          run ??
          (async () => {
            runs += 1
            return { kind: 'json', value: { run: runs } }
          }),
        preflight: check,
        store,
      },
      gone: new AbortController().signal,
      ...changes,
    })
  return {
    ledger,
    clock,
    bank,
    deps,
    payment,
    buy,
    runs: () => runs,
    stored: () => lmdb.get(KEY),
    history,
  }
}

/** Recovers every payment that is due and cleans up meanwhile; resolves to the number of recovered ones when all is done. */
export async function recoverAll(deps: RecoveryDeps): Promise<number> {
  const cleaning = cleanUp(deps)
  const recovered = await Promise.all(await recover(deps))
  await cleaning
  return recovered.length
}

/** An entry that a process which has died has left. */
export async function leave(
  { ledger, history }: Shop,
  state: State,
  changes: Partial<PaymentRecord> = {},
): Promise<PaymentRecord> {
  const left: PaymentRecord = {
    ...makeRecord(KEY, NOW - LEASE_MS, 'dead'),
    protocol: 'test',
    redeliver: 86_400_000,
    buyerKey: buyerKeyOf('buyer', TIDE.operation.id, 'arguments'),
    identifier: undefined,
    operation: TIDE.operation.id,
    digest: 'arguments',
    redeliveryToken: 'secret',
    state,
    ...(state === 'settling' || state === 'unknown' ? { dispatch: TRANSACTION } : {}),
    ...(state === 'settled' || state === 'sent' ? { receipt: RECEIPT } : {}),
    ...changes,
  }
  const unworked = state === 'reserved' || state === 'voided'
  const answer = unworked ? undefined : await writeAnswer(ledger.answers, left, STORED)
  const record = answer === undefined || 'answer' in changes ? left : { ...left, answer }
  await ledger.insert(record)
  history.length = 0
  return (await ledger.get(record.key)) ?? record
}
