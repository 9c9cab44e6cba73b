import t from 'tap'
import { formatDuration, parseDuration } from '../../../src/engine/base/duration.ts'
import { fc } from '../../support/fast-check.ts'

t.test('reads a duration as the catalog states it', async (t) => {
  t.equal(parseDuration('500ms'), 500)
  t.equal(parseDuration('60s'), 60_000)
  t.equal(parseDuration('10m'), 600_000)
  t.equal(parseDuration('24h'), 86_400_000)
  t.equal(parseDuration('7d'), 604_800_000)
  t.equal(parseDuration('9999999s'), 9_999_999_000)
})

t.test('rejects ambiguous durations', async (t) => {
  const texts = [
    '',
    '0s',
    '05m',
    '5',
    '5 m',
    '5min',
    '1h30m',
    '1.5h',
    '-1s',
    '5M',
    'm',
    '10000000s',
    '5m ',
    '5m\n',
    '٥m',
  ]
  for (const text of texts) t.equal(parseDuration(text), undefined, JSON.stringify(text))
})

t.test('prints a duration in its largest exact unit', async (t) => {
  t.equal(formatDuration(600_000), '10m')
  t.equal(formatDuration(90_000), '90s')
  t.equal(formatDuration(86_400_000), '1d')
  t.equal(formatDuration(90_000_000), '25h')
  t.equal(formatDuration(1500), '1500ms')
  t.equal(formatDuration(0), '0ms')
})

t.test('keeps every duration when it is printed and read again', async () => {
  const duration = fc.tuple(fc.integer({ min: 1, max: 9_999_999 }), fc.constantFrom('ms', 's', 'm', 'h', 'd'))
  fc.assert(
    fc.property(duration, ([count, unit]) => {
      const ms = parseDuration(`${count}${unit}`)
      return ms !== undefined && parseDuration(formatDuration(ms)) === ms
    }),
  )
})
