import { setTimeout as delay } from 'node:timers/promises'
import type { PaymentRecord } from '../../../src/engine/ledger/payment-record.ts'
import type { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { addressOf } from '../../support/payment.ts'
import { Secrets } from '../../support/secrets.ts'
import { buyUntil, resendPayments, RETRY_STRATEGIES, type BuyerSettings } from './buyer.ts'
import { openCluster, type Cluster } from './cluster.ts'
import { describeFindings } from './findings.ts'
import { matchCharges } from './match-charges.ts'
import { openMpp } from './mpp.ts'
import { openPurchaseLog, type PurchaseLog } from './purchase-log.ts'
import { seededRandom, type SeededRandom } from './seeded-random.ts'
import type { StoreName } from './store.ts'
import { countTotals, isSettled, type Evidence, type Totals } from './totals.ts'
import { openX402 } from './x402.ts'

export interface ChaosSettings {
  readonly kills: number
  readonly processes: number
  readonly store: StoreName
  readonly protocol: 'x402' | 'mpp'
  readonly buyers: number
  readonly seed: number
  /** Called repeatedly during the run. */
  readonly onProgress: (progress: Progress) => void
}

export interface Progress {
  readonly kills: number
  readonly log: PurchaseLog
}

export interface ChaosResult {
  readonly totals: Totals
  /** Every purchase without exactly one charge and one answer, line by line. */
  readonly findings: readonly string[]
  readonly log: PurchaseLog
  /** Milliseconds from the last answer until the ledger had resolved every payment. */
  readonly recoveryMs: number
  /** Names of secrets found in log lines and error bodies. */
  readonly leaked: readonly string[]
  /** Log lines of the processes about unexpected errors. */
  readonly unexpected: readonly string[]
}

const PROGRESS_MS = 500
/** Share of kills that wait until the processes have answered something: a process that has just started is idle. */
const BUSY_RATE = 0.8
/** Share of kills that hit the store, where it is a process. */
const STORE_RATE = 0.2
const MAX_PAUSE_MS = 1_000
const MAX_WAIT_MS = 10_000
/** Longer than a lease, a sweep and the first checks of unknown outcomes. */
const RECOVERY_MS = 120_000

/** Lets buyers pay while processes are killed and restarted; counts when every purchase has ended. */
export async function runChaos(settings: ChaosSettings): Promise<ChaosResult> {
  const { processes, store, protocol, buyers: count, seed } = settings
  const random = seededRandom(seed)
  const secrets = new Secrets()
  const log = openPurchaseLog()
  const method = await { x402: openX402, mpp: openMpp }[protocol](random, secrets)
  const cluster = await openCluster({ processes, store, method, random })
  try {
    const anyUrl = (): string => cluster.url(random.between(0, processes))
    const buyers: BuyerSettings[] = []
    while (buyers.length < count) {
      const strategy = RETRY_STRATEGIES[buyers.length % RETRY_STRATEGIES.length] ?? 'stock'
      const key = await method.wallet()
      buyers.push({ method, key, address: addressOf(key), strategy, random, log, secrets, anyUrl })
    }
    const ticking = repeat(() => method.tick())
    await killWhileBuying(settings, { cluster, random, buyers, log })
    const ledger = await cluster.openLedger()
    const recoveryMs = await untilSettled(ledger)
    await Promise.all(buyers.map((buyer) => resendUnanswered(buyer)))
    await untilSettled(ledger)
    await ticking.end()
    const output = await cluster.stop()
    secrets.scan(output)
    const records = await recordsOf(ledger)
    await ledger.close()
    const { upstream } = cluster
    const charges = await method.charges()
    const evidence: Evidence = {
      outcomes: matchCharges(log, charges),
      charges,
      records,
      referenceOfKey: method.referenceOfKey,
      runs: upstream.runs(),
      writes: upstream.writes,
      effects: upstream.effects,
      unkeyed: upstream.unkeyed(),
    }
    const [totals, findings] = [countTotals(evidence), describeFindings(evidence)]
    return {
      totals,
      findings,
      log,
      recoveryMs,
      leaked: secrets.leaked(),
      unexpected: unexpectedIn(output),
    }
  } finally {
    await cluster.close()
    await method.close()
  }
}

interface KillContext {
  readonly cluster: Cluster
  readonly random: SeededRandom
  readonly buyers: readonly BuyerSettings[]
  readonly log: PurchaseLog
}

/** Resolves when the last kill is over and every buyer has an answer or has given up. */
async function killWhileBuying(
  { kills, processes, onProgress }: ChaosSettings,
  { cluster, random, buyers, log }: KillContext,
): Promise<void> {
  let killed = 0
  const reporting = setInterval(() => onProgress({ kills: killed, log }), PROGRESS_MS)
  const buying = Promise.all(buyers.map((buyer) => buyUntil(buyer, () => killed === kills)))
  while (killed < kills) {
    if (random.chance(BUSY_RATE)) await nextAnswer(log)
    await delay(random.between(0, MAX_PAUSE_MS))
    const from = Date.now()
    const index = random.between(0, processes)
    if (cluster.killStore !== undefined && random.chance(STORE_RATE)) {
      await cluster.killStore()
      log.kills.push({ target: 'store', from, until: Date.now() })
    } else {
      log.kills.push({ target: cluster.url(index), from, until: from })
      await cluster.kill(index)
    }
    killed += 1
  }
  await buying
  clearInterval(reporting)
}

/** Sends the payments of unanswered purchases once more, when nothing is killed any more. */
async function resendUnanswered(buyer: BuyerSettings): Promise<void> {
  const { log, address } = buyer
  for (const purchase of log.purchases)
    if (purchase.buyer === address && purchase.answer === undefined) await resendPayments(buyer, purchase)
}

/** Resolves when one more purchase is answered, or none is for a while. */
async function nextAnswer({ purchases }: PurchaseLog): Promise<void> {
  const answered = (): number => purchases.filter(({ answer }) => answer !== undefined).length
  const start = { at: Date.now(), answered: answered() }
  while (answered() === start.answered && Date.now() - start.at < MAX_WAIT_MS) await delay(20)
}

/** Milliseconds until the ledger has resolved every payment, or until it should have. */
async function untilSettled(ledger: Ledger): Promise<number> {
  const start = Date.now()
  while (Date.now() - start < RECOVERY_MS && !isSettled(await recordsOf(ledger))) await delay(250)
  return Date.now() - start
}

async function recordsOf(ledger: Ledger): Promise<PaymentRecord[]> {
  const records: PaymentRecord[] = []
  for await (const record of ledger.entries()) records.push(record)
  return records
}

function repeat(work: () => Promise<void>): { readonly end: () => Promise<void> } {
  let over = false
  const working = (async () => {
    while (!over) await work()
  })()
  return {
    end: () => {
      over = true
      return working
    },
  }
}

function unexpectedIn(output: string): string[] {
  return output.split('\n').filter((line) => /^(unexpected: |ledger: the)/.test(line))
}
