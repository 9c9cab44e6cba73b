import { FLAG, kind, TEXT, TIME, UUID, WHOLE } from './kind.ts'

/** What people write, by the stars they give: the text of a review agrees with its rating. */
const PHRASES = [
  ['Stopped working after two days.', 'Nothing like the pictures.', 'I sent it back.', 'A waste of money.'],
  ['Arrived late and scratched.', 'The size runs small.', 'I expected more for this price.', 'Feels cheap.'],
  ['Does what it should.', 'Neither good nor bad.', 'Fine for the price.', 'The manual could be clearer.'],
  ['Well made.', 'Delivery was quick.', 'I use it every week.', 'One small flaw, otherwise very good.'],
  ['Exactly what I was looking for.', 'I would buy it again.', 'Works perfectly.', 'A gift that pleased.'],
] as const
const TITLES = ['Very disappointing', 'Not convinced', 'It is all right', 'Good value', 'Excellent'] as const

export const reviews = kind(
  {
    id: UUID,
    product: TEXT,
    author: TEXT,
    rating: WHOLE,
    title: TEXT,
    text: TEXT,
    verified_purchase: FLAG,
    helpful_votes: WHOLE,
    created_at: TIME,
  },
  (faker) => {
    const stars = faker.number.int({ min: 0, max: 4 })
    const phrases: readonly string[] = PHRASES[stars] ?? []
    return {
      id: faker.string.uuid(),
      product: faker.commerce.productName(),
      author: `${faker.person.firstName()} ${faker.string.alpha({ length: 1, casing: 'upper' })}.`,
      rating: stars + 1,
      title: TITLES[stars] ?? '',
      text: faker.helpers.arrayElements(phrases, { min: 1, max: 3 }).join(' '),
      verified_purchase: faker.datatype.boolean({ probability: 0.8 }),
      helpful_votes: faker.number.int({ min: 0, max: 120 }),
      created_at: faker.date.recent({ days: 90 }).toISOString(),
    }
  },
)
