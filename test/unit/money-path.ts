import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import * as times from '../../src/engine/base/money-times.ts'
import { SITUATIONS } from '../../src/engine/ledger/payment-lifecycle.ts'

const PAGE = readFileSync(fileURLToPath(new URL('../../docs/money-path.md', import.meta.url)), 'utf8')

const UNITS: Readonly<Record<string, number>> = { s: 1, min: 60, h: 3_600, d: 86_400 }

/** First two cells of the rows of a section whose first cell is code. */
function rowsOf(title: string): [string, string][] {
  const [, section = ''] = PAGE.split(`## ${title}\n`)
  const [own = ''] = section.split('\n## ')
  return [...own.matchAll(/^\| `([^`]+)` *\| *([^|]*?) *\|/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ])
}

t.test('the money path explains every situation of a record', async (t) => {
  t.same(
    rowsOf('What a record can be')
      .map(([name]) => name)
      .toSorted(),
    SITUATIONS.toSorted(),
  )
})

t.test('the money path lists every time on which money depends, with its value', async (t) => {
  const shown = rowsOf('Times').map(([name, value]) => {
    const [number = '', unit = ''] = value.split(' ')
    const seconds = Number(number) * (UNITS[unit] ?? NaN)
    return [name, name.endsWith('_S') ? seconds : seconds * 1000]
  })
  t.same(Object.fromEntries(shown), { ...times })
})

t.test('the times of money fit together', async (t) => {
  t.ok(times.LOCK_PATIENCE_MS > times.LOCK_MS)
  t.ok(times.VALIDITY_MARGIN_S * 1000 >= times.SETTLING_MS)
  t.ok(times.LONGEST_UNPAID_MS > times.VALIDITY_SLACK_S * 1000)
  t.ok(times.EARLIEST_LOOK_MS < times.FIRST_LOOK_MS)
  t.ok(times.FIRST_LOOK_MS < times.LONGEST_LOOK_MS && times.LONGEST_LOOK_MS < times.LOOKS_GIVEN_UP_MS)
})
