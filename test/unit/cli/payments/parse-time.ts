import t from 'tap'
import { UsageError } from '../../../../src/command-line/usage-error.ts'
import { parsePastTime, parseTime } from '../../../../src/cli/payments/parse-time.ts'

const NOW = Date.UTC(2026, 9, 15, 12, 0, 0)

t.test('reads a time as a duration, a day or a moment', async (t) => {
  for (const [text, expected] of [
    ['24h', '2026-10-14T12:00:00.000Z'],
    ['7d', '2026-10-08T12:00:00.000Z'],
    ['90m', '2026-10-15T10:30:00.000Z'],
    ['2026-10-01', '2026-10-01T00:00:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['2026-10-01T08:00Z', '2026-10-01T08:00:00.000Z'],
    ['2026-10-01T08:00:59.5Z', '2026-10-01T08:00:59.500Z'],
    ['2026-10-01T08:00:00+02:00', '2026-10-01T06:00:00.000Z'],
    ['2026-10-01T08:00:00-03:30', '2026-10-01T11:30:00.000Z'],
  ] as const) {
    t.equal(new Date(parseTime('since', text, NOW)).toISOString(), expected, text)
  }
})

t.test('refuses a mistyped date', async (t) => {
  for (const text of [
    '',
    ' ',
    'today',
    '24',
    '24 h',
    '-1h',
    '0h',
    '1.5h',
    '1w',
    '2026-02-29',
    '2026-02-30',
    '2026-13-01',
    '2026-00-10',
    '2026-1-1',
    '2026-10',
    '10/01/2026',
    '2026-10-01T08:00:00',
    '2026-10-01 08:00:00Z',
    '2026-10-01T24:00Z',
    '2026-10-01T08:60Z',
    '2026-10-01T08:00:60Z',
    '2026-10-01T08Z',
    '2026-10-01T08:00+15:00',
    '2026-10-01T08:00+01:60',
    '2026-10-01Z',
    '1790000000',
  ]) {
    t.throws(() => parseTime('since', text, NOW), UsageError, text)
  }
})

t.test('refuses a start in the future', async (t) => {
  t.equal(parsePastTime('since', '2026-10-15T12:00:00Z', NOW), NOW)
  t.throws(
    () => parsePastTime('since', '2026-10-15T12:00:01Z', NOW),
    /--since 2026-10-15T12:00:01Z is in the future/,
  )
})
