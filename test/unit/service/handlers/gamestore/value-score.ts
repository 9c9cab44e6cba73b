import t from 'tap'
import { scoreValue } from '../../../../../src/service/handlers/gamestore/value-score.ts'
import { fc } from '../../../../support/fast-check.ts'

t.test('scores a deal as documented, to the digit', async (t) => {
  t.strictSame(
    scoreValue({ discountPercent: 75, positiveReviews: 1363, reviews: 1623, savedUsd: 15 }),
    { score: 76.9, components: { discount: 0.75, review: 0.8212, savings: 0.7052 } },
    '75 % off, 84 % of 1,623 reviews, 19.99 to 4.99',
  )
  t.strictSame(
    scoreValue({ discountPercent: 90, positiveReviews: 9, reviews: 10, savedUsd: 9 }),
    { score: 71.5, components: { discount: 0.9, review: 0.5958, savings: 0.5856 } },
    '90 % off, 9 of 10 reviews, 9.99 to 0.99: few reviews prove little',
  )
  t.strictSame(
    scoreValue({ discountPercent: 50, positiveReviews: 880_000, reviews: 980_000, savedUsd: 30 }),
    { score: 73.4, components: { discount: 0.5, review: 0.8974, savings: 0.8734 } },
    '50 % off, 880,000 of 980,000 reviews, 59.99 to 29.99',
  )
})

t.test('caps savings at 50 dollars, and keeps scores within 0 to 100', async (t) => {
  const bargain = { discountPercent: 60, positiveReviews: 90, reviews: 100 }
  t.strictSame(scoreValue({ ...bargain, savedUsd: 51 }), scoreValue({ ...bargain, savedUsd: 5000 }))
  t.equal(scoreValue({ ...bargain, positiveReviews: 0, reviews: 0, savedUsd: 0 }).components.review, 0)
  fc.assert(
    fc.property(
      fc.nat(100),
      fc.nat(1e7),
      fc.nat(1e7),
      fc.nat(1e5),
      (discountPercent, one, other, savedUsd) => {
        const [positiveReviews, reviews] = [Math.min(one, other), Math.max(one, other)]
        const { score, components } = scoreValue({ discountPercent, positiveReviews, reviews, savedUsd })
        const parts = Object.values(components)
        return score >= 0 && score <= 100 && parts.every((part) => part >= 0 && part <= 1)
      },
    ),
  )
})
