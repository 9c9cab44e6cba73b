import type { PaymentRecord, Purchase } from '../../src/engine/ledger/payment-record.ts'
import { LEASE_MS } from '../../src/engine/base/money-times.ts'
import { buyerKeyOf, identifierName, newRecord } from '../../src/engine/ledger/payment-lifecycle.ts'

const PAYER = '0x00000000000000000000000000000000000000b0'

/** A purchase as x402 makes it, with an identifier of its key. */
export function makePurchase(changes: Partial<Purchase> = {}): Purchase {
  const key = changes.key ?? 'x402:exact:eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e:0xbuyer:0x01'
  return {
    key,
    protocol: 'x402',
    scheme: 'exact',
    network: 'eip155:84532',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    payer: PAYER,
    payee: '0x00000000000000000000000000000000000000a0',
    authorizationHash: 'what was signed',
    authorizedAmount: changes.amount ?? '5000',
    amount: '5000',
    validBefore: 1_800_000_060_000,
    operation: '/paid/ping',
    digest: 'the arguments',
    revision: 'r1',
    redeliveryToken: 'shown to the buyer only',
    settle: 'after',
    redeliver: 86_400_000,
    buyerKey: buyerKeyOf(PAYER, '/paid/ping', 'the arguments'),
    identifier: identifierName(PAYER, key),
    ...changes,
  }
}

/** A new record of a process called `owner`. */
export function makeRecord(key: string, now = 1_800_000_000_000, owner = 'owner'): PaymentRecord {
  return newRecord(makePurchase({ key }), owner, now, LEASE_MS)
}

/** The next version of `record`, with the changes. */
export function nextRecord(record: PaymentRecord, changes: Partial<PaymentRecord> = {}): PaymentRecord {
  return { ...record, ...changes, version: record.version + 1 }
}

/** As a ledger returns it: undefined fields are absent. */
export function asStored<T extends PaymentRecord | undefined>(record: T): T {
  return record === undefined ? record : JSON.parse(JSON.stringify(record))
}
