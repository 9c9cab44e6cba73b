import { parseDuration } from '../../base/duration.ts'
import { formatShort, parsePrice, type Micros } from '../../base/money.ts'
import { USUAL_CHANNELS } from '../catalog.ts'
import type { CheckContext } from '../check-context.ts'
import { error, type Issue } from '../issue.ts'
import { faultMessage } from '../price/check-prices.ts'

const AT = ['payments', 'x402', 'channels']

/** What the contract of channels accepts. */
const [SHORTEST_DELAY, LONGEST_DELAY] = [900_000, 2_592_000_000]

/** Checks that what channels owe can be claimed in time, and that they may owe as much as is claimed at once. */
export function* checkChannels({ declared, document }: CheckContext): Generator<Issue> {
  const channels = declared.payments?.x402?.channels
  if (channels === undefined) return
  const delay = parseDuration(channels.withdraw_delay ?? '24h') ?? 0
  if (delay < SHORTEST_DELAY || delay > LONGEST_DELAY || delay % 1000 !== 0)
    yield error(
      'limit_out_of_range',
      document.at([...AT, 'withdraw_delay']),
      'a withdrawal takes 15m to 30d, in whole seconds; 24h suits most',
    )
  const amounts = { ...USUAL_CHANNELS }
  for (const [key, name] of [
    ['least_deposit', 'leastDeposit'],
    ['claim_after', 'claimAfter'],
    ['most_unclaimed', 'mostUnclaimed'],
  ] as const) {
    const spelling = document.spelling([...AT, key])
    if (spelling === undefined) continue
    const parsed = parsePrice(spelling)
    if (parsed.kind === 'price') Object.assign(amounts, { [name]: parsed.value })
    else
      yield error(
        parsed.fault,
        document.at([...AT, key]),
        faultMessage(parsed.fault, spelling.trim(), 'amount'),
      )
  }
  const most: Micros = amounts.mostUnclaimed
  if (amounts.claimAfter > most)
    yield error(
      'limit_out_of_range',
      document.at([...AT, channels.claim_after === undefined ? 'most_unclaimed' : 'claim_after']),
      `a channel may owe ${formatShort(most)} USD (most_unclaimed) and is claimed at ${formatShort(amounts.claimAfter)} USD (claim_after): it would stop before that`,
    )
}
