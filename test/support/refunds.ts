import { systemEvery } from '../../src/engine/base/every.ts'
import { join } from 'node:path'
import { openLmdbLedger } from '../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import type { Ledger } from '../../src/engine/ledger/ledger.ts'
import type { PaymentRecord, Purchase, Refund } from '../../src/engine/ledger/payment-record.ts'
import { refundPayment } from '../../src/engine/refunds/refund.ts'
import type { RefundResult } from '../../src/engine/refunds/refund-result.ts'
import type { EvmChain } from '../../src/sandbox/evm/chain.ts'
import { startBase } from './base-chain.ts'
import { HOUR, purchaseOf, receiptOf, sell, type LedgerFixture } from './ledger-fixture.ts'
import { addressOf, randomKey, type Hex } from './payment.ts'
import { PATH_USD, startTempo, TEMPO_CHAIN, type TempoChain } from './tempo.ts'

/** A chain on which payments were taken, as far as refunds see it. */
export interface RefundPlace {
  readonly chainId: number
  readonly rpcUrl: string
  readonly purchase: () => Purchase
  /** The key of an account with tokens and gas. */
  readonly account: () => Promise<Hex>
  /** What an address holds that was empty before, in atomic units. */
  readonly balance: (address: string) => Promise<bigint>
}

interface RefundPlaces {
  readonly x402: RefundPlace
  readonly mpp: RefundPlace
  readonly base: EvmChain
  readonly tempo: TempoChain
  stop(): Promise<void>
}

export async function openRefundPlaces(): Promise<RefundPlaces> {
  const [base, tempo] = await Promise.all([startBase(), startTempo()])
  return {
    base,
    tempo,
    x402: {
      chainId: 8453,
      rpcUrl: base.rpcUrl,
      purchase: () => purchaseOf(),
      account: async () => {
        const key = randomKey()
        await base.mint(addressOf(key), 1_000_000n)
        await base.setGas(addressOf(key), 10n ** 18n)
        return key
      },
      balance: (address) => base.balance(address as Hex),
    },
    mpp: {
      chainId: TEMPO_CHAIN,
      rpcUrl: tempo.rpcUrl,
      purchase: () => {
        const network = `eip155:${TEMPO_CHAIN}`
        return purchaseOf({ key: `mpp:${network}:${randomKey()}`, protocol: 'mpp', network, asset: PATH_USD })
      },
      account: () => tempo.wallet(),
      balance: async (address) => (await tempo.received(address)).reduce((sum, each) => sum + each, 0n),
    },
    stop: async () => {
      await Promise.all([base.stop(), tempo.stop()])
    },
  }
}

/** Where and when a refund is sent from. */
export interface RefundSite extends Pick<RefundPlace, 'chainId' | 'rpcUrl'> {
  /** Milliseconds by which the time is ahead of this machine’s. */
  readonly ahead?: number
}

/** As `ratecard payments refund` does. */
export async function refund(
  { dataDir }: Pick<LedgerFixture, 'dataDir'>,
  site: RefundSite,
  key: Hex,
  id: string,
): Promise<RefundResult> {
  const ledger = await openLmdbLedger(join(dataDir, 'ledger'))
  try {
    return await refundIn(ledger, site, key, id)
  } finally {
    await ledger.close()
  }
}

/** How far the clock of all refunds runs ahead, in milliseconds: it never goes back, or leases would seem held. */
let waited = 0

/** The same in an open ledger, as the command called `owner`. */
export async function refundIn(
  ledger: Ledger,
  { chainId, rpcUrl, ahead = 0 }: RefundSite,
  key: Hex,
  id: string,
  owner = 'a command',
): Promise<RefundResult> {
  // A minute of waiting takes six seconds here: the chain has a block each second.
  const now = (): number => Date.now() + ahead + waited
  const sleep = async (ms: number): Promise<void> => {
    waited += ms
    await new Promise((resolve) => setTimeout(resolve, ms / 10))
  }
  const record = await ledger.find(id)
  if (record === undefined) throw new Error(`there is no payment ${id}`)
  const rpcUrls = { [chainId]: rpcUrl }
  const keys = { evm: key, svm: undefined }
  const settings = { ledger, owner, rpcUrls, svmRpcUrls: {}, keys, caller: fetch, now, sleep }
  return refundPayment({ ...settings, every: systemEvery }, record)
}

export async function refundOf(fixture: Pick<LedgerFixture, 'all'>): Promise<Refund | undefined> {
  return (await fixture.all())[0]?.refund
}

export function bookSale(fixture: LedgerFixture, purchase: Purchase): Promise<PaymentRecord> {
  return fixture.record(purchase, Date.now() - HOUR, sell(receiptOf(purchase)))
}
