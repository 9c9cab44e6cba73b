import { setTimeout as delay } from 'node:timers/promises'
import type { PaymentRecord } from '../../../src/engine/ledger/payment-record.ts'
import type { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { addressOf } from '../../support/payment.ts'
import { Secrets } from '../../support/secrets.ts'
import { askOnceMore, MANNERS, shop, type BuyerSettings } from './buyer.ts'
import { openDiary, type Diary } from './diary.ts'
import { openDice, type Dice } from './dice.ts'
import { tell } from './findings.ts'
import { openMarket, type Market } from './market.ts'
import { openMpp } from './mpp.ts'
import type { StoreName } from './store.ts'
import { count, isQuiet, type Evidence, type Tally } from './tally.ts'
import { judge } from './verdict.ts'
import { openX402 } from './x402.ts'

export interface StormSettings {
  readonly kills: number
  readonly processes: number
  readonly store: StoreName
  readonly protocol: 'x402' | 'mpp'
  readonly buyers: number
  readonly seed: number
  /** Told now and then how far it is. */
  readonly progress: (progress: Progress) => void
}

export interface Progress {
  readonly kills: number
  readonly diary: Diary
}

export interface Aftermath {
  readonly tally: Tally
  /** Every want that did not come to one charge and one answer, line by line. */
  readonly findings: readonly string[]
  readonly diary: Diary
  /** Milliseconds from the last answer until nothing was left for the ledger to find out. */
  readonly recovery: number
  /** What stands in log lines and error bodies and must not, by name. */
  readonly leaked: readonly string[]
  /** What the processes have said that nobody has foreseen. */
  readonly complaints: readonly string[]
}

const PROGRESS_MS = 500
/** So many kills wait for the process to have done some business: one that has just started has none to disturb. */
const BUSY = 0.8
/** So many hit the store, where that is a process. */
const STORE = 0.2
const LONGEST_CALM_MS = 1_000
const LONGEST_WAIT_MS = 10_000
/** Longer than a lease, a sweep and the first looks at what is not known. */
const RECOVERY_MS = 120_000

/** Buyers pay, processes are killed and started again; when all have what they wanted, everything is counted. */
export async function storm(settings: StormSettings): Promise<Aftermath> {
  const { processes, store, protocol, buyers, seed } = settings
  const dice = openDice(seed)
  const secrets = new Secrets()
  const diary = openDiary()
  const money = await { x402: openX402, mpp: openMpp }[protocol](dice, secrets)
  const market = await openMarket({ processes, store, money, dice })
  try {
    const anywhere = (): string => market.url(dice.between(0, processes))
    const crowd: BuyerSettings[] = []
    while (crowd.length < buyers) {
      const manner = MANNERS[crowd.length % MANNERS.length] ?? 'stock'
      const key = await money.wallet()
      crowd.push({ money, key, address: addressOf(key), manner, dice, diary, secrets, anywhere })
    }
    const ticking = repeat(() => money.tick())
    await rage(settings, market, dice, crowd)
    const ledger = await market.openLedger()
    const recovery = await quiet(ledger)
    await Promise.all(crowd.map((buyer) => collect(buyer)))
    await quiet(ledger)
    await ticking.end()
    const output = await market.shut()
    secrets.listen(output)
    const entries = await all(ledger)
    await ledger.close()
    const { notes, runs } = market.office
    const charges = await money.charges()
    const { markOfKey } = money
    const verdicts = judge(diary, charges)
    const evidence: Evidence = { verdicts, charges, entries, markOfKey, notes, runs: runs() }
    const [tally, findings] = [count(evidence), tell(evidence)]
    return { tally, findings, diary, recovery, leaked: secrets.leaked(), complaints: complaintsIn(output) }
  } finally {
    await market.close()
    await money.close()
  }
}

/** Resolves when the last kill is over and the last buyer has an answer, or has lost patience. */
async function rage(
  { kills, processes, progress }: StormSettings,
  market: Market,
  dice: Dice,
  crowd: readonly BuyerSettings[],
): Promise<void> {
  let killed = 0
  const [{ diary } = { diary: openDiary() }] = crowd
  const telling = setInterval(() => progress({ kills: killed, diary }), PROGRESS_MS)
  const shopping = Promise.all(crowd.map((buyer) => shop(buyer, () => killed === kills)))
  while (killed < kills) {
    if (dice.chance(BUSY)) await progressed(diary)
    await delay(dice.between(0, LONGEST_CALM_MS))
    const begun = Date.now()
    const place = dice.between(0, processes)
    if (market.killStore !== undefined && dice.chance(STORE)) {
      await market.killStore()
      diary.blows.push({ to: 'store', begun, over: Date.now() })
    } else {
      diary.blows.push({ to: market.url(place), begun, over: begun })
      await market.kill(place)
    }
    killed += 1
  }
  await shopping
  clearInterval(telling)
}

/** What was not fetched before is asked for in the calm. */
async function collect(buyer: BuyerSettings): Promise<void> {
  const { diary, address } = buyer
  for (const want of diary.wants)
    if (want.buyer === address && want.received === undefined) await askOnceMore(buyer, want)
}

/** Resolves when something more has been fetched, or does not seem to be. */
async function progressed({ wants }: Diary): Promise<void> {
  const fetched = (): number => wants.filter(({ received }) => received !== undefined).length
  const begun = { at: Date.now(), fetched: fetched() }
  while (fetched() === begun.fetched && Date.now() - begun.at < LONGEST_WAIT_MS) await delay(20)
}

/** Milliseconds until the ledger knows how everything has ended, or until it should have. */
async function quiet(ledger: Ledger): Promise<number> {
  const begun = Date.now()
  while (Date.now() - begun < RECOVERY_MS && !isQuiet(await all(ledger))) await delay(250)
  return Date.now() - begun
}

async function all(ledger: Ledger): Promise<PaymentRecord[]> {
  const entries: PaymentRecord[] = []
  for await (const entry of ledger.entries()) entries.push(entry)
  return entries
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

function complaintsIn(output: string): string[] {
  return output.split('\n').filter((line) => /^(unexpected: |ledger: the)/.test(line))
}
