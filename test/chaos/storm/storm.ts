import { setTimeout as delay } from 'node:timers/promises'
import type { Entry } from '../../../src/engine/ledger/entry.ts'
import type { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { addressOf, randomKey } from '../../support/payment.ts'
import { Secrets } from '../../support/secrets.ts'
import { MANNERS, shop, type BuyerSettings } from './buyer.ts'
import { openDiary, type Diary } from './diary.ts'
import { openDice, type Dice } from './dice.ts'
import { openMarket, type Market } from './market.ts'
import { count, isQuiet, type Tally } from './tally.ts'

export interface StormSettings {
  readonly kills: number
  readonly processes: number
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
  readonly diary: Diary
  /** Milliseconds from the last answer until nothing was left for the ledger to find out. */
  readonly recovery: number
  /** What stands in log lines and error bodies and must not, by name. */
  readonly leaked: readonly string[]
  /** What the processes have said that nobody has foreseen. */
  readonly complaints: readonly string[]
}

const PURSE = 10n ** 12n
const PROGRESS_MS = 500
/** So many kills wait for the process to have done some business: one that has just started has none to disturb. */
const BUSY = 0.8
const LONGEST_CALM_MS = 1_000
const LONGEST_WAIT_MS = 10_000
/** Longer than a lease, a sweep and the first looks at what is not known. */
const RECOVERY_MS = 120_000

/** Buyers pay, processes are killed and started again; when all have what they wanted, everything is counted. */
export async function storm(settings: StormSettings): Promise<Aftermath> {
  const { processes, seed } = settings
  const dice = openDice(seed)
  const secrets = new Secrets()
  const diary = openDiary()
  const market = await openMarket({ processes, dice, secrets })
  try {
    const crowd = await gather(settings, market, { dice, secrets, diary })
    await market.witness.setMining('by hand')
    const mining = repeat(async () => {
      await delay(dice.between(20, 400))
      await market.witness.mine()
    })
    await rage(settings, market, dice, crowd)
    const ledger = await market.openLedger()
    const recovery = await quiet(ledger)
    await mining.end()
    const output = await market.shut()
    secrets.listen(output)
    const entries = await all(ledger)
    await ledger.close()
    const uses = await market.witness.uses()
    const { notes, runs } = market.office
    const tally = count({ diary, uses, entries, notes, runs: runs() })
    return { tally, diary, recovery, leaked: secrets.leaked(), complaints: complaintsIn(output) }
  } finally {
    await market.close()
  }
}

type Means = Pick<BuyerSettings, 'dice' | 'secrets' | 'diary'>

async function gather(
  { buyers, processes }: StormSettings,
  market: Market,
  means: Means,
): Promise<BuyerSettings[]> {
  const crowd: BuyerSettings[] = []
  while (crowd.length < buyers) {
    const key = randomKey()
    await market.chain.mint(addressOf(key), PURSE)
    const manner = MANNERS[crowd.length % MANNERS.length] ?? 'stock'
    const anywhere = (): string => market.url(means.dice.between(0, processes))
    crowd.push({ ...means, key, manner, anywhere })
  }
  return crowd
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
    await market.kill(dice.between(0, processes))
    killed += 1
  }
  await shopping
  clearInterval(telling)
}

/** Resolves when something more has been fetched, or does not seem to be. */
async function progressed({ wants }: Diary): Promise<void> {
  const fetched = (): number => wants.filter((want) => want.fetched).length
  const begun = { at: Date.now(), fetched: fetched() }
  while (fetched() === begun.fetched && Date.now() - begun.at < LONGEST_WAIT_MS) await delay(20)
}

/** Milliseconds until the ledger knows how everything has ended, or until it should have. */
async function quiet(ledger: Ledger): Promise<number> {
  const begun = Date.now()
  while (Date.now() - begun < RECOVERY_MS && !isQuiet(await all(ledger))) await delay(250)
  return Date.now() - begun
}

async function all(ledger: Ledger): Promise<Entry[]> {
  const entries: Entry[] = []
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
