import { parseDuration } from '../../base/duration.ts'
import { formatShort, parsePrice } from '../../base/money.ts'
import { type CheckContext, entriesOf } from '../check-context.ts'
import { faultMessage } from '../price/check-prices.ts'
import { error, type Issue } from '../issue.ts'

const AT = ['payments', 'payers', 'limits']

const LONGEST_PERIOD = 366 * 86_400_000

/** Checks what is sent before it is paid. */
export function* checkStreamCredit({ declared, document }: CheckContext): Generator<Issue> {
  for (const [key, value] of Object.entries(declared.payments?.payers?.credit ?? {})) {
    const at = ['payments', 'payers', 'credit', key]
    const amount = parsePrice(key === 'streams' ? '1' : (document.spelling(at) ?? String(value)))
    if (amount.kind === 'fault')
      yield error(
        amount.fault,
        document.at(at),
        faultMessage(amount.fault, document.spelling(at) ?? '', 'amount'),
      )
  }
}

/** Checks what one payer may buy: a limit below the price of a route would never sell it. */
export function* checkPayerLimits({ declared, document }: CheckContext): Generator<Issue> {
  const limits = declared.payments?.payers?.limits
  if (limits === undefined) return
  const per = parseDuration(limits.per) ?? LONGEST_PERIOD
  if (per < 1_000 || per > LONGEST_PERIOD)
    yield error(
      'limit_out_of_range',
      document.at([...AT, 'per']),
      'a period is 1s to 366d long; 1d suits most',
    )
  if (limits.calls === undefined && limits.spend === undefined)
    yield error('limit_missing', document.atKey(AT), 'write what is limited: "calls", "spend" or both')
  const at = [...AT, 'spend']
  const spelling = document.spelling(at)
  if (spelling === undefined) return
  const spend = parsePrice(spelling)
  if (spend.kind === 'fault') {
    yield error(spend.fault, document.at(at), faultMessage(spend.fault, spelling.trim(), 'amount'))
    return
  }
  for (const entry of entriesOf(declared)) {
    const price = parsePrice(document.spelling([...entry.at, 'price']) ?? '')
    if (price.kind !== 'price' || price.value <= spend.value) continue
    const message = `${entry.at.at(-1) ?? ''} costs ${formatShort(price.value)} USD, so that nobody could buy it with this limit`
    yield error('limit_below_price', document.at(at), message)
  }
}
