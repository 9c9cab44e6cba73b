import type { Faker } from '@faker-js/faker'
import {
  FLAG,
  kind,
  listOf,
  MONEY,
  NUMBER,
  oneOf,
  record,
  TEXT,
  TIME,
  URI,
  UUID,
  WHOLE,
  EMAIL,
} from './kind.ts'
import { ADDRESS, addressOf } from './people.ts'
import { domain, email, testCard, testIban } from './reserved.ts'

const ORDER_STATES = ['pending', 'paid', 'shipped', 'delivered', 'returned', 'cancelled'] as const
const PAYMENT_STATES = ['authorized', 'captured', 'refunded', 'declined'] as const

function price(faker: Faker): number {
  return faker.number.int({ min: 199, max: 49_999 }) / 100
}

function sku(faker: Faker): string {
  return `${faker.string.alpha({ length: 3, casing: 'upper' })}-${faker.string.numeric(5)}`
}

function recently(faker: Faker): string {
  return faker.date.recent({ days: 90 }).toISOString()
}

export const products = kind(
  {
    id: UUID,
    sku: TEXT,
    name: TEXT,
    description: TEXT,
    category: TEXT,
    price: MONEY,
    currency: TEXT,
    in_stock: FLAG,
    stock: WHOLE,
    rating: NUMBER,
    url: URI,
  },
  (faker) => {
    const stock = faker.number.int({ min: 0, max: 400 })
    const code = sku(faker)
    const adjective = faker.commerce.productAdjective()
    const material = faker.commerce.productMaterial()
    const thing = faker.commerce.product()
    return {
      id: faker.string.uuid(),
      sku: code,
      name: `${adjective} ${material} ${thing}`,
      description: `${adjective} ${thing.toLowerCase()} made of ${material.toLowerCase()}.`,
      category: faker.commerce.department(),
      price: price(faker),
      currency: 'USD',
      in_stock: stock > 0,
      stock,
      rating: faker.number.int({ min: 10, max: 50 }) / 10,
      url: `https://${domain('shop')}/products/${code.toLowerCase()}`,
    }
  },
)

const LINE = record({ sku: TEXT, name: TEXT, quantity: WHOLE, unit_price: MONEY })

export const orders = kind(
  {
    id: UUID,
    number: TEXT,
    status: oneOf(ORDER_STATES),
    customer: record({ name: TEXT, email: EMAIL }),
    lines: listOf(LINE),
    total: MONEY,
    currency: TEXT,
    shipping_address: ADDRESS,
    ordered_at: TIME,
  },
  (faker, index) => {
    const firstName = faker.person.firstName()
    const lastName = faker.person.lastName()
    const lines = Array.from({ length: faker.number.int({ min: 1, max: 4 }) }, () => ({
      sku: sku(faker),
      name: faker.commerce.productName(),
      quantity: faker.number.int({ min: 1, max: 5 }),
      unit_price: price(faker),
    }))
    const cents = lines.reduce((sum, line) => sum + line.quantity * Math.round(line.unit_price * 100), 0)
    return {
      id: faker.string.uuid(),
      number: `ORD-${100_001 + index}`,
      status: faker.helpers.arrayElement(ORDER_STATES),
      customer: { name: `${firstName} ${lastName}`, email: email(faker, firstName, lastName) },
      lines,
      total: cents / 100,
      currency: 'USD',
      shipping_address: addressOf(faker),
      ordered_at: recently(faker),
    }
  },
)

export const transactions = kind(
  {
    id: UUID,
    type: oneOf(['card', 'transfer']),
    status: oneOf(PAYMENT_STATES),
    amount: MONEY,
    currency: TEXT,
    merchant: TEXT,
    card_brand: TEXT,
    card_number: TEXT,
    iban: TEXT,
    created_at: TIME,
  },
  (faker) => {
    const card = testCard(faker)
    return {
      id: faker.string.uuid(),
      type: faker.helpers.arrayElement(['card', 'transfer']),
      status: faker.helpers.arrayElement(PAYMENT_STATES),
      amount: price(faker),
      currency: 'USD',
      merchant: faker.company.name(),
      card_brand: card.brand,
      card_number: card.number,
      iban: testIban(faker),
      created_at: recently(faker),
    }
  },
)
