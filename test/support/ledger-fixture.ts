import type { PricePart } from '../../src/engine/base/price-part.ts'
import { systemEvery } from '../../src/engine/base/every.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { reserve, type PaymentLease } from '../../src/engine/ledger/lease.ts'
import type {
  PaymentRecord,
  Purchase,
  Receipt,
  StoredAnswer,
} from '../../src/engine/ledger/payment-record.ts'
import { openLmdbLedger } from '../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { isJsonObject, type JsonObject } from '../../src/engine/base/json.ts'
import { addressOf, randomKey } from './payment.ts'
import { makePurchase } from './payment-records.ts'
import { randomHex } from './random.ts'

/** USD Coin on Base. */
export const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
export const PAYEE = '0x00000000000000000000000000000000000000A0'
/** Secret values, one for each field of a ledger that must stay private. */
export const SECRETS = [
  'answer-7f3a',
  'token-7f3a',
  'seal-7f3a',
  '0xfeed7f3a',
  'request-7f3a',
  'identifier-7f3a',
  'digest-7f3a',
  'buyer-7f3a',
]

export const ANSWER: StoredAnswer = { kind: 'json', value: { sold: 'answer-7f3a' } }
export const RAW = '0xfeed7f3a'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE

/** A purchase as x402 makes it on Base, with the secret values. */
export function purchaseOf(changes: Partial<Purchase> = {}): Purchase {
  const payer = changes.payer ?? addressOf(randomKey())
  return makePurchase({
    key: ['x402', 'exact', 'eip155:8453', USDC, payer, randomHex()].join(':'),
    network: 'eip155:8453',
    asset: USDC,
    payer,
    payee: PAYEE,
    authorizationHash: 'seal-7f3a',
    validBefore: Date.now() + HOUR,
    operation: 'util/workday',
    digest: 'digest-7f3a',
    redeliveryToken: 'token-7f3a',
    buyerKey: 'buyer-7f3a',
    identifier: undefined,
    ...changes,
  })
}

export function receiptOf({ network, payer, amount }: Purchase, transaction = randomHash()): Receipt {
  return { transaction, network, payer, amount }
}

export function randomHash(): string {
  return randomHex()
}

/** What a server does with one payment. */
export type Processing = (lease: PaymentLease) => Promise<unknown>

export interface LedgerFixture {
  readonly dataDir: string
  /** Records a payment at a time, processed as the engine does; it is stored when this resolves. */
  record(purchase: Purchase, at: number, work?: Processing): Promise<PaymentRecord>
  /** Changes a stored record. */
  amend(record: PaymentRecord, changes: Partial<PaymentRecord>): Promise<void>
  all(): Promise<PaymentRecord[]>
}

/** The ledger of a data directory, written by the engine's own leases and closed after each: a process opens it once. */
export function openLedgerFixture(t: Test, place: readonly string[] = ['ledger']): LedgerFixture {
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-ledger-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const directory = join(dataDir, ...place)
  return {
    dataDir,
    record: async (purchase, at, work = async () => undefined) => {
      const ledger = await openLmdbLedger(directory)
      try {
        const reservation = await reserve(
          { ledger, owner: 'a server', now: () => at, every: systemEvery },
          purchase,
        )
        if (reservation.kind !== 'reserved') throw new Error(`the payment is ${reservation.record.state}`)
        const { lease } = reservation
        await work(lease)
        lease.stopRenewal()
        return (await ledger.get(purchase.key)) ?? lease.record
      } finally {
        await ledger.close()
      }
    },
    amend: async (record, changes) => {
      const ledger = await openLmdbLedger(directory)
      await ledger.replace(record, { ...record, ...changes, version: record.version + 1 })
      await ledger.close()
    },
    all: async () => {
      const ledger = await openLmdbLedger(directory)
      try {
        const records: PaymentRecord[] = []
        for await (const record of ledger.records()) records.push(record)
        return records
      } finally {
        await ledger.close()
      }
    },
  }
}

/** Worked, charged and answered. */
export function sell(receipt: Receipt): Processing {
  return async (lease) => {
    await lease.advance('fulfilled', { answer: ANSWER })
    await dispatch(lease, receipt.transaction)
    await lease.settle(receipt)
    await lease.advance('sent')
  }
}

/** The same for a price that was known after the work: the receipt has what was charged. */
export function sellMetered(receipt: Receipt, usage: readonly PricePart[]): Processing {
  return async (lease) => {
    await lease.advance('fulfilled', { answer: ANSWER, amount: receipt.amount, usage })
    await dispatch(lease, receipt.transaction)
    await lease.settle(receipt)
    await lease.advance('sent')
  }
}

/** Broadcast, with an unknown outcome. */
export function loseOutcome(state: 'settling' | 'unknown', hash = randomHash()): Processing {
  return async (lease) => {
    await lease.advance('fulfilled', { answer: ANSWER })
    await dispatch(lease, hash)
    if (state === 'unknown') await lease.advance('unknown')
  }
}

async function dispatch(lease: PaymentLease, hash: string): Promise<void> {
  const signer = '0x00000000000000000000000000000000000000b1'
  await lease.advance('settling', { dispatch: { kind: 'own', hash, raw: RAW, signer, nonce: 1 } })
}

export function parse(text: string): JsonObject {
  const value: unknown = JSON.parse(text)
  if (!isJsonObject(value)) throw new Error(text)
  return value
}
