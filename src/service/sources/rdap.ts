import { isJsonObject, type Context, type Json, type JsonObject } from 'ratecard/handler'
import type { Egress } from './egress.ts'
import type { SourceMetrics } from './source-metrics.ts'
import { cacheIfComplete } from './cache-if-complete.ts'

/** A registry's data of a name, without personal data. */
export interface Registration {
  readonly registered: boolean
  readonly registrar: string | null
  readonly registrar_iana_id: string | null
  readonly created_at: string | null
  readonly expires_at: string | null
  readonly updated_at: string | null
  readonly status: readonly string[]
  readonly dnssec: boolean | null
}

export type Registered =
  /** `at`: time of the registry's answer. */
  | { readonly kind: 'known'; readonly registration: Registration; readonly at: Date }
  /** The registry of this top-level domain has no such service. */
  | { readonly kind: 'unsupported' }
  /** Asked too often: by what we allow ourselves, or by what the registry allows us. */
  | { readonly kind: 'limited'; readonly by: 'us' | 'registry' }
  | { readonly kind: 'unknown' }

const REQUEST = {
  accept: 'application/rdap+json, application/json;q=0.8',
  measure: { bytes: 512 * 1024, beyond: 'refuse' },
  robots: 'ignore',
} as const
const DAY = 86_400_000
const KEPT = { ttl: DAY, staleIfError: 30 * DAY }
/** Of a name that is registered: one that is not may be taken at any moment. */
const KEPT_DOMAIN = { ttl: DAY, staleIfError: 0 }
/** All names below a top-level domain are asked of one registry. */
const REGISTRY = { perSecond: 5, burst: 100, atOnce: 50 }

/** Registration data of domain names (RFC 9082, RFC 9083), from the registry that IANA's list names (RFC 9224). */
export class Rdap {
  readonly #egress: Egress
  readonly #bootstrap: string
  readonly #record: SourceMetrics

  /** Registries have a budget of their own, each: nothing of it is taken from the sites that callers name. */
  constructor(egress: Egress, bootstrap: string, record: SourceMetrics) {
    this.#egress = egress.apart(REGISTRY)
    this.#bootstrap = bootstrap
    this.#record = record
  }

  /** `domain` is a registered name in ASCII. */
  async find(domain: string, context: Pick<Context, 'keep' | 'now'>): Promise<Registered> {
    const base = await this.#baseFor(domain, context.keep)
    if (base instanceof NoList) return { kind: 'unknown' }
    if (base === undefined) return { kind: 'unsupported' }
    const address = `${base.replace(/\/*$/, '/')}domain/${domain}`
    const { value, at } = await cacheIfComplete(
      context,
      `rdap/1/${domain}`,
      KEPT_DOMAIN,
      isAnswered,
      ({ answered }) => typeof answered === 'object' && answered.registered,
      async (signal) => ({ answered: await this.#ask(address, signal) }),
    )
    const { answered } = value
    if (typeof answered === 'object') return { kind: 'known', registration: answered, at }
    return answered === 'unknown' ? { kind: answered } : { kind: 'limited', by: answered }
  }

  async #ask(address: string, signal: AbortSignal): Promise<Answered> {
    this.#record.countAsked()
    const outcome = await this.#egress.get(address, REQUEST, signal)
    const status = outcome.kind === 'answered' ? outcome.reply.status : undefined
    if (status === 404) return NOT_REGISTERED
    if (outcome.kind !== 'answered' || status !== 200) {
      this.#record.countFailed()
      if (status === 429) return 'registry'
      return outcome.kind === 'failed' && outcome.mishap === 'limited' ? 'us' : 'unknown'
    }
    const answer = parse(outcome.reply.body)
    if (!isJsonObject(answer) || answer['objectClassName'] !== 'domain') {
      this.#record.countDrifted('objectClassName: absent')
      return 'unknown'
    }
    for (const field of EXPECTED)
      if (!Array.isArray(answer[field])) this.#record.countSkipped(`${field}: absent`)
    const registration = registrationOf(answer)
    const {
      registrar,
      created_at: created,
      expires_at: expires,
      updated_at: updated,
      status: states,
    } = registration
    if (states.length > 0 || [registrar, created, expires, updated].some((each) => each !== null))
      return registration
    // A registry says at least one of these of every name: nothing was understood.
    this.#record.countDrifted('events, status, entities: absent')
    return 'unknown'
  }

  async #baseFor(domain: string, keep: Context['keep']): Promise<string | NoList | undefined> {
    try {
      const { value } = await keep('rdap-bootstrap-v1', KEPT, isServices, async (signal) => {
        const outcome = await this.#egress.get(this.#bootstrap, REQUEST, signal)
        if (outcome.kind !== 'answered' || outcome.reply.status !== 200) throw new NoList()
        return servicesOf(parse(outcome.reply.body))
      })
      const top = domain.slice(domain.lastIndexOf('.') + 1)
      return value.find(([name]) => name === top)?.[1]
    } catch (cause) {
      if (cause instanceof NoList) return cause
      throw cause
    }
  }
}

class NoList extends Error {}

/** What the registry said, or why it did not: `us` and `registry` are those who limit. */
type Answered = Registration | 'us' | 'registry' | 'unknown'

/** Of every name that is registered (RFC 9083 §5.3). */
const EXPECTED = ['events', 'status', 'entities']

function isAnswered(value: unknown): value is { readonly answered: Answered } {
  if (typeof value !== 'object' || value === null || !('answered' in value)) return false
  const { answered } = value
  return (
    typeof answered === 'string' ||
    (typeof answered === 'object' && answered !== null && 'status' in answered)
  )
}

type Services = readonly (readonly [string, string])[]

/** Pairs of a top-level domain and an address, https before http. */
function servicesOf(list: Json | undefined): Services {
  const services = isJsonObject(list) ? list['services'] : undefined
  const pairs = (Array.isArray(services) ? services : []).flatMap((service): [string, string][] => {
    const [names, urls] = Array.isArray(service) ? service : []
    const texts = strings(urls)
    const url = texts.find((each) => each.startsWith('https://')) ?? texts[0]
    return url === undefined ? [] : strings(names).map((name): [string, string] => [name.toLowerCase(), url])
  })
  // An empty list is none: it must not be kept for a day.
  if (pairs.length === 0) throw new NoList()
  return pairs
}

function isServices(value: unknown): value is Services {
  return Array.isArray(value) && value.every((pair) => strings(pair).length === 2)
}

const NOT_REGISTERED: Registration = {
  registered: false,
  registrar: null,
  registrar_iana_id: null,
  created_at: null,
  expires_at: null,
  updated_at: null,
  status: [],
  dnssec: null,
}

function registrationOf(answer: JsonObject): Registration {
  const events = objects(answer['events'])
  const when = (action: string): string | null => {
    const time = Date.parse(textIn(events.find((event) => event['eventAction'] === action)?.['eventDate']))
    return Number.isNaN(time) ? null : new Date(time).toISOString()
  }
  const registrar = objects(answer['entities']).find(({ roles }) => strings(roles).includes('registrar'))
  const iana = objects(registrar?.['publicIds']).find(({ type }) => /iana/i.test(textIn(type)))?.[
    'identifier'
  ]
  const secure = answer['secureDNS']
  const signed = isJsonObject(secure) ? secure['delegationSigned'] : undefined
  return {
    registered: true,
    registrar: nameOf(registrar),
    registrar_iana_id: typeof iana === 'string' ? iana.slice(0, 20) : null,
    created_at: when('registration'),
    expires_at: when('expiration'),
    updated_at: when('last changed'),
    status: strings(answer['status']).slice(0, 20),
    dnssec: typeof signed === 'boolean' ? signed : null,
  }
}

/** A vCard in JSON (RFC 7095): `["vcard", [["fn", {}, "text", "Name"], …]]`. */
function nameOf(entity: JsonObject | undefined): string | null {
  const card = entity?.['vcardArray']
  const fields: Json = Array.isArray(card) ? (card[1] ?? []) : []
  const name = Array.isArray(fields)
    ? fields.find((field) => Array.isArray(field) && field[0] === 'fn')
    : undefined
  const text = Array.isArray(name) ? name[3] : undefined
  return typeof text === 'string' && text !== '' ? text.slice(0, 200) : null
}

function textIn(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function objects(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : []
}

function parse(bytes: Uint8Array): Json | undefined {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Json
  } catch {
    return undefined
  }
}
