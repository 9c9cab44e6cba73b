import { LEASE_MS } from '../../src/engine/ledger/claim.ts'
import type { Entry, Purchase } from '../../src/engine/ledger/entry.ts'
import { newEntry } from '../../src/engine/ledger/ledger.ts'

/** A purchase as x402 makes it. */
export function makePurchase(changes: Partial<Purchase> = {}): Purchase {
  return {
    key: 'x402:eip155:84532:0x036cbd53842c5426634e7929541ec2318f3dcf7e:0xbuyer:0x01',
    protocol: 'x402',
    network: 'eip155:84532',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    payer: '0x00000000000000000000000000000000000000b0',
    payee: '0x00000000000000000000000000000000000000a0',
    seal: 'what was signed',
    amount: '5000',
    validBefore: 1_800_000_060_000,
    operation: '/paid/ping',
    digest: 'the arguments',
    revision: 'r1',
    token: 'shown to the buyer only',
    flow: 'authorization',
    redeliver: 86_400_000,
    buyer: 'the buyer of the arguments',
    identifier: undefined,
    ...changes,
  }
}

/** A new entry of a process called `owner`. */
export function makeEntry(key: string, now = 1_800_000_000_000, owner = 'owner'): Entry {
  return newEntry(makePurchase({ key }), owner, now, LEASE_MS)
}

/** What comes after `entry`, with the changes. */
export function nextEntry(entry: Entry, changes: Partial<Entry> = {}): Entry {
  return { ...entry, ...changes, version: entry.version + 1 }
}
