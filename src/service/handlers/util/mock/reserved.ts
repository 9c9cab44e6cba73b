import type { Faker } from '@faker-js/faker'

/** Addresses that nobody can own, so that mock data sent by mistake reaches no one. */

/** At example.com, .net or .org (RFC 2606). */
export function email(faker: Faker, firstName: string, lastName: string): string {
  return faker.internet.exampleEmail({ firstName, lastName }).toLowerCase()
}

/** 555-0100 to 555-0199: kept for fiction in the North American plan. */
export function phone(faker: Faker): string {
  const area = faker.helpers.arrayElement([
    '202',
    '212',
    '303',
    '312',
    '404',
    '415',
    '503',
    '617',
    '702',
    '813',
  ])
  return `+1-${area}-555-01${faker.string.numeric(2)}`
}

/** 192.0.2.0/24, for documentation (RFC 5737). */
export function ipAddress(faker: Faker): string {
  return `192.0.2.${faker.number.int({ min: 1, max: 254 })}`
}

/** 00-00-5E-00-53-00 to FF, for documentation (RFC 7042). */
export function macAddress(faker: Faker): string {
  return `00:00:5e:00:53:${faker.string.hexadecimal({ length: 2, prefix: '', casing: 'lower' })}`
}

/** A domain under `.example` (RFC 2606), made from a name. */
export function domain(name: string): string {
  const label = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
  return `${label}.example`
}

/**
 * A town, state and postal code that stand together nowhere: no ZIP code below 00501 was ever assigned, so that a letter
 * to a street that exists by chance is not delivered.
 */
export function town(faker: Faker): {
  readonly city: string
  readonly state: string
  readonly postal_code: string
} {
  return {
    city: faker.helpers.fake('{{location.city_prefix}} {{person.firstName}}{{location.city_suffix}}'),
    state: faker.location.state({ abbreviated: true }),
    postal_code: `00${String(faker.number.int({ min: 1, max: 499 })).padStart(3, '0')}`,
  }
}

/** Numbers that the card schemes and their processors publish for tests. */
const TEST_CARDS = [
  { brand: 'visa', number: '4242424242424242' },
  { brand: 'visa', number: '4111111111111111' },
  { brand: 'mastercard', number: '5555555555554444' },
  { brand: 'amex', number: '378282246310005' },
  { brand: 'discover', number: '6011111111111117' },
] as const

export function testCard(faker: Faker): { readonly brand: string; readonly number: string } {
  return faker.helpers.arrayElement(TEST_CARDS)
}

/** The examples of the SWIFT IBAN registry. */
export function testIban(faker: Faker): string {
  return faker.helpers.arrayElement([
    'DE89370400440532013000',
    'ES9121000418450200051332',
    'FR1420041010050500013M02606',
    'GB29NWBK60161331926819',
    'NL91ABNA0417164300',
  ])
}
