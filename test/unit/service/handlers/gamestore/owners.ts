import t from 'tap'
import { ownersByReviews } from '../../../../../src/service/handlers/gamestore/owners.ts'

t.test('estimates fewer owners for each review the younger the game is, as documented', async (t) => {
  const midpoints = [2003, 2013, 2014, 2016, 2017, 2018, 2019, 2020, 2026].map(
    (year) => ownersByReviews({ reviews: 100, year, isFree: false })?.midpoint,
  )
  t.strictSame(midpoints, [8000, 8000, 7000, 7000, 6000, 4500, 4500, 3500, 3500])
  t.match(ownersByReviews({ reviews: 1000, year: 2018, isFree: false }), { low: 27000, high: 72000 })
})

t.test('leaves the estimate out where reviews say too little', async (t) => {
  t.equal(ownersByReviews({ reviews: 0, year: 2020, isFree: false }), undefined)
  t.equal(ownersByReviews({ reviews: 100, year: null, isFree: false }), undefined)
  t.equal(ownersByReviews({ reviews: 100, year: 2020, isFree: true }), undefined)
})
