import { FLAG, IPV4, kind, NUMBER, oneOf, record, TEXT, TIME, URI, UUID, WHOLE } from './kind.ts'
import { domain, ipAddress, macAddress } from './reserved.ts'

const EVENTS = ['page_view', 'sign_up', 'log_in', 'search', 'add_to_cart', 'checkout', 'purchase'] as const
const LEVELS = ['debug', 'info', 'info', 'info', 'warn', 'error'] as const
const SERVICES = ['api', 'auth', 'billing', 'search', 'worker'] as const
const METHODS = ['GET', 'GET', 'GET', 'POST', 'PUT', 'DELETE'] as const
const STATUSES = [200, 200, 200, 201, 204, 301, 400, 401, 404, 429, 500, 503]
const SENSORS = ['thermostat', 'air_quality', 'soil_moisture', 'door', 'power_meter'] as const

export const events = kind(
  {
    id: UUID,
    type: oneOf(EVENTS),
    user_id: UUID,
    session_id: TEXT,
    url: URI,
    ip: IPV4,
    user_agent: TEXT,
    properties: record({ referrer: URI, duration_ms: WHOLE }),
    occurred_at: TIME,
  },
  (faker) => ({
    id: faker.string.uuid(),
    type: faker.helpers.arrayElement(EVENTS),
    user_id: faker.string.uuid(),
    session_id: faker.string.alphanumeric(16),
    url: `https://${domain('app')}/${faker.lorem.slug(2)}`,
    ip: ipAddress(faker),
    user_agent: faker.internet.userAgent(),
    properties: {
      referrer: `https://${domain(faker.lorem.word())}/`,
      duration_ms: faker.number.int({ min: 20, max: 90_000 }),
    },
    occurred_at: faker.date.recent({ days: 7 }).toISOString(),
  }),
)

export const logs = kind(
  {
    timestamp: TIME,
    level: oneOf([...new Set(LEVELS)]),
    service: oneOf(SERVICES),
    host: TEXT,
    method: TEXT,
    path: TEXT,
    status: WHOLE,
    duration_ms: WHOLE,
    client_ip: IPV4,
    request_id: UUID,
    message: TEXT,
  },
  (faker) => {
    const service = faker.helpers.arrayElement(SERVICES)
    return {
      timestamp: faker.date.recent({ days: 1 }).toISOString(),
      level: faker.helpers.arrayElement(LEVELS),
      service,
      host: domain(`${service}-${faker.number.int({ min: 1, max: 12 })}`),
      method: faker.helpers.arrayElement(METHODS),
      path: `/${faker.lorem.slug(1)}/${faker.number.int({ min: 1, max: 9999 })}`,
      status: faker.helpers.arrayElement(STATUSES),
      duration_ms: faker.number.int({ min: 1, max: 2500 }),
      client_ip: ipAddress(faker),
      request_id: faker.string.uuid(),
      message: faker.hacker.phrase(),
    }
  },
)

export const iot = kind(
  {
    device_id: TEXT,
    type: oneOf(SENSORS),
    mac_address: TEXT,
    ip: IPV4,
    firmware: TEXT,
    online: FLAG,
    battery_percent: WHOLE,
    signal_dbm: WHOLE,
    readings: record({ temperature_c: NUMBER, humidity_percent: NUMBER }),
    recorded_at: TIME,
  },
  (faker) => ({
    device_id: `dev-${faker.string.hexadecimal({ length: 8, prefix: '', casing: 'lower' })}`,
    type: faker.helpers.arrayElement(SENSORS),
    mac_address: macAddress(faker),
    ip: ipAddress(faker),
    firmware: faker.system.semver(),
    online: faker.datatype.boolean({ probability: 0.9 }),
    battery_percent: faker.number.int({ min: 0, max: 100 }),
    signal_dbm: faker.number.int({ min: -95, max: -40 }),
    readings: {
      temperature_c: faker.number.int({ min: -100, max: 400 }) / 10,
      humidity_percent: faker.number.int({ min: 100, max: 950 }) / 10,
    },
    recorded_at: faker.date.recent({ days: 1 }).toISOString(),
  }),
)
