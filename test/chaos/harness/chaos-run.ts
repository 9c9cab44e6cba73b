import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { PaymentRecord } from '../../../src/engine/ledger/payment-record.ts'
import type { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { addressOf } from '../../support/payment.ts'
import { Secrets } from '../../support/secrets.ts'
import { buy, resendPayments, RETRY_STRATEGIES, type BuyerSettings, type Phase } from './buyer.ts'
import { openCluster, type Cluster } from './cluster.ts'
import { describeFindings } from './findings.ts'
import { consoleMismatches, UNWRITTEN_MS, type ShownFigures } from './operator.ts'
import { matchCharges } from './match-charges.ts'
import { openMpp } from './mpp.ts'
import type { PaymentMethod } from './payment-method.ts'
import { openPurchaseLog, type PurchaseLog } from './purchase-log.ts'
import { seededRandom, type SeededRandom } from './seeded-random.ts'
import type { StoreName } from './store.ts'
import { countTotals, isSettled, ledgerMismatches, type Evidence, type Totals } from './totals.ts'
import { openChannelMethod } from './channels.ts'
import { openSvm } from './svm.ts'
import { openUpto } from './upto.ts'
import { openX402 } from './x402.ts'

const METHODS = {
  x402: (random: SeededRandom, secrets: Secrets) => openX402(random, secrets),
  upto: openUpto,
  channels: openChannelMethod,
  svm: openSvm,
  mpp: openMpp,
}

export interface ChaosSettings {
  readonly kills: number
  readonly processes: number
  readonly store: StoreName
  /** How buyers pay: by scheme exact of x402 on an EVM chain or on Solana, by its schemes upto or batch-settlement, or by MPP. */
  readonly protocol: keyof typeof METHODS
  readonly buyers: number
  readonly seed: number
  /** Milliseconds between two reorganizations of the chain; 0: there are none. */
  readonly reorgMs: number
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
  /** Milliseconds for which buyers and chain stood still at most: an answer that came meanwhile was read late. */
  readonly longestStallMs: number
  /** Pages of the console that were read during the run. */
  readonly pagesRead: number
  /** What the console showed in the end. */
  readonly shown: ShownFigures
  /** Where the console differs from the list of payments and the chain. */
  readonly consoleMismatches: readonly string[]
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
const REORG_DEPTH = 3
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
  const method = await METHODS[protocol](random, secrets)
  let phase: Phase = 'killing'
  let cluster: Cluster | undefined
  const work: Promise<unknown>[] = []
  const stalls = monitorEventLoopDelay()
  stalls.enable()
  try {
    const running = (cluster = await openCluster({ processes, store, method, random }))
    const anyUrl = (): string => running.url(random.between(0, processes))
    const buyers: BuyerSettings[] = []
    while (buyers.length < count) {
      const strategy = RETRY_STRATEGIES[buyers.length % RETRY_STRATEGIES.length] ?? 'stock'
      const key = await method.wallet()
      buyers.push({ method, key, address: addressOf(key), strategy, random, log, secrets, anyUrl })
    }
    const ticking = advance(method, settings, log, () => phase)
    const buying = Promise.all(buyers.map((buyer) => buy(buyer, () => phase)))
    work.push(ticking, buying)
    // They are awaited below, or have failed because the run has.
    for (const each of work) each.catch(() => undefined)
    // Without its chain the run would go on in vain.
    await Promise.race([killProcesses(settings, { cluster, random, log, phase: () => phase }), ticking])
    phase = 'over'
    await buying
    const ledger = await cluster.openLedger()
    const recoveryMs = await untilSettled(ledger)
    await Promise.all(buyers.map((buyer) => resendUnanswered(buyer)))
    await untilSettled(ledger)
    await untilEqual(ledger, method)
    await untilCounted(running)
    const [shown, listed] = [await running.shown(), await running.listed()]
    phase = 'ended'
    await ticking
    const output = await cluster.stop()
    secrets.scan(output)
    const records = await recordsOf(ledger)
    await ledger.close()
    const { upstream } = cluster
    const charges = await method.charges(records)
    const evidence: Evidence = {
      outcomes: matchCharges(log, charges),
      charges,
      records,
      method,
      runs: upstream.runs(),
      writes: upstream.writes,
      effects: upstream.effects,
      unkeyed: upstream.unkeyed(),
    }
    const [totals, findings] = [countTotals(evidence), await describeFindings(evidence, log)]
    const told = consoleMismatches({ shown, listed, charges, records, log })
    return {
      totals,
      findings,
      log,
      recoveryMs,
      longestStallMs: Math.round(stalls.max / 1e6),
      pagesRead: running.pagesRead(),
      shown,
      consoleMismatches: told,
      leaked: secrets.leaked(),
      unexpected: unexpectedIn(output),
    }
  } finally {
    phase = 'ended'
    await cluster?.close()
    await Promise.allSettled(work)
    await method.close()
  }
}

/** Advances the chain until the run has ended, and replaces its newest blocks now and then while processes are killed. */
async function advance(
  method: PaymentMethod,
  { reorgMs }: ChaosSettings,
  { reorganizations }: PurchaseLog,
  phase: () => Phase,
): Promise<void> {
  let last = Date.now()
  while (phase() !== 'ended') {
    await method.tick()
    if (reorgMs === 0 || phase() !== 'killing' || Date.now() - last < reorgMs) continue
    const reorganization = await method.reorganize(REORG_DEPTH)
    if (reorganization === undefined) continue
    last = Date.now()
    reorganizations.push(reorganization)
  }
}

interface KillContext {
  readonly cluster: Cluster
  readonly random: SeededRandom
  readonly log: PurchaseLog
  readonly phase: () => Phase
}

/** Resolves when the last killed process has been replaced. */
async function killProcesses(
  { kills, processes, onProgress }: ChaosSettings,
  { cluster, random, log, phase }: KillContext,
): Promise<void> {
  let reported = Date.now()
  for (let killed = 0; killed < kills && phase() === 'killing'; killed += 1) {
    if (Date.now() - reported >= PROGRESS_MS) {
      reported = Date.now()
      onProgress({ kills: killed, log })
    }
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
  }
  onProgress({ kills, log })
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

/** Resolves when the ledger and the chain name the same charges, or when they should have. */
async function untilEqual(ledger: Ledger, method: PaymentMethod): Promise<void> {
  const start = Date.now()
  const differ = async (): Promise<boolean> => {
    const records = await recordsOf(ledger)
    return ledgerMismatches({ charges: await method.charges(records), records, method }).length > 0
  }
  while (Date.now() - start < RECOVERY_MS && (await differ())) await delay(1_000)
}

/** Resolves when no process has written down more counts for longer than it takes to. */
async function untilCounted({ shown }: Cluster): Promise<void> {
  const start = Date.now()
  const counts = async (): Promise<string> => {
    const { settled, delivered } = await shown()
    return `${settled} ${delivered}`
  }
  for (let last = '', now = await counts(); now !== last && Date.now() - start < RECOVERY_MS;) {
    last = now
    await delay(UNWRITTEN_MS)
    now = await counts()
  }
}

async function recordsOf(ledger: Ledger): Promise<PaymentRecord[]> {
  const records: PaymentRecord[] = []
  for await (const record of ledger.records()) records.push(record)
  return records
}

function unexpectedIn(output: string): string[] {
  return output.split('\n').filter((line) => /^(unexpected: |ledger: the)/.test(line))
}
