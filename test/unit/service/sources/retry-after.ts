import t from 'tap'
import { parseReset, parseRetryAfter } from '../../../../src/service/sources/retry-after.ts'

const NOW = new Date('2026-11-20T10:00:00Z')
const CASES: readonly (readonly [string | null, number | undefined, string])[] = [
  [null, undefined, 'no header'],
  ['120', 120, 'seconds'],
  [' 7 ', 7, 'seconds with white space'],
  ['0', 1, 'at once is a second, so that nobody spins'],
  ['999999', 3600, 'a day and more is cut to an hour'],
  ['Fri, 20 Nov 2026 10:00:30 GMT', 30, 'a date'],
  ['Fri, 20 Nov 2026 09:00:00 GMT', 1, 'a date that is past'],
  ['soon', undefined, 'a word'],
  ['', undefined, 'nothing'],
  ['99999999999999999999', undefined, 'a number beyond every date'],
]

t.test('leaves a limited source alone for as long as it asks', async (t) => {
  for (const [header, seconds, name] of CASES) t.equal(parseRetryAfter(header, NOW), seconds, name)
})

t.test('leaves a source alone until the second it names', async (t) => {
  const at = NOW.getTime() / 1000
  t.equal(parseReset(String(at + 40), NOW), 40)
  t.equal(parseReset(String(at - 40), NOW), 1)
  t.equal(parseReset(String(at + 90_000), NOW), 3600)
  for (const header of [null, '', 'soon', '40', '1e9']) t.equal(parseReset(header, NOW), undefined)
})
