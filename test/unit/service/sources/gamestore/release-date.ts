import t from 'tap'
import { readReleaseDate } from '../../../../../src/service/sources/gamestore/release-date.ts'

t.test('gives a release date only when the store names a day', async (t) => {
  for (const [text, date, year] of [
    ['Aug 21, 2012', '2012-08-21', 2012],
    ['21 Aug, 2012', '2012-08-21', 2012],
    ['1 September, 2026', '2026-09-01', 2026],
    ['Feb 31, 2026', null, 2026],
    ['Aug 2026', null, 2026],
    ['Q4 2026', null, 2026],
    ['2027', null, 2027],
    ['Coming soon', null, null],
    ['To be announced', null, null],
    ['', null, null],
  ] as const) {
    t.strictSame(readReleaseDate(text, false), { comingSoon: false, date, year, text }, text)
  }
})
