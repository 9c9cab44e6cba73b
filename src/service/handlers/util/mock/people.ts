import type { Faker } from '@faker-js/faker'
import type { JsonObject } from 'ratecard/handler'
import { DATE, EMAIL, kind, NUMBER, record, TEXT, URI, UUID, WHOLE } from './kind.ts'
import { domain, email, phone, town } from './reserved.ts'

export const ADDRESS = record({ street: TEXT, city: TEXT, state: TEXT, postal_code: TEXT, country: TEXT })

export function addressOf(faker: Faker): JsonObject {
  return {
    street: faker.location.streetAddress(),
    ...town(faker),
    country: 'US',
  }
}

export const people = kind(
  {
    id: UUID,
    name: TEXT,
    first_name: TEXT,
    last_name: TEXT,
    email: EMAIL,
    phone: TEXT,
    birth_date: DATE,
    job_title: TEXT,
    company: TEXT,
    address: ADDRESS,
  },
  (faker) => {
    const firstName = faker.person.firstName()
    const lastName = faker.person.lastName()
    return {
      id: faker.string.uuid(),
      name: `${firstName} ${lastName}`,
      first_name: firstName,
      last_name: lastName,
      email: email(faker, firstName, lastName),
      phone: phone(faker),
      birth_date: faker.date.birthdate({ mode: 'age', min: 18, max: 80 }).toISOString().slice(0, 10),
      job_title: faker.person.jobTitle(),
      company: faker.company.name(),
      address: addressOf(faker),
    }
  },
)

export const companies = kind(
  {
    id: UUID,
    name: TEXT,
    industry: TEXT,
    catch_phrase: TEXT,
    website: URI,
    email: EMAIL,
    phone: TEXT,
    employees: WHOLE,
    founded: WHOLE,
    address: ADDRESS,
  },
  (faker) => {
    const name = faker.company.name()
    return {
      id: faker.string.uuid(),
      name,
      industry: faker.commerce.department(),
      catch_phrase: faker.company.catchPhrase(),
      website: `https://${domain(name)}/`,
      email: email(faker, 'office', faker.person.lastName()),
      phone: phone(faker),
      employees: faker.number.int({ min: 1, max: 20_000 }),
      founded: faker.number.int({ min: 1900, max: 2025 }),
      address: addressOf(faker),
    }
  },
)

export const addresses = kind(
  {
    id: UUID,
    recipient: TEXT,
    street: TEXT,
    secondary: TEXT,
    city: TEXT,
    state: TEXT,
    postal_code: TEXT,
    country: TEXT,
    latitude: NUMBER,
    longitude: NUMBER,
    time_zone: TEXT,
  },
  (faker) => ({
    id: faker.string.uuid(),
    recipient: `${faker.person.firstName()} ${faker.person.lastName()}`,
    street: faker.location.streetAddress(),
    secondary: faker.location.secondaryAddress(),
    ...town(faker),
    country: 'US',
    // two decimals: a square of a kilometre, no house
    latitude: faker.location.latitude({ min: 25, max: 49, precision: 2 }),
    longitude: faker.location.longitude({ min: -124, max: -67, precision: 2 }),
    time_zone: faker.helpers.arrayElement([
      'America/New_York',
      'America/Chicago',
      'America/Denver',
      'America/Los_Angeles',
    ]),
  }),
)
