import { isIP } from 'node:net'
import { hide, SECRET_NAME } from './env/secrets.ts'

/** The settings of one process: read once, frozen, every problem reported together. The only reader of the environment. */
export interface Env {
  readonly production: boolean
  readonly catalog: string
  readonly port: number
  readonly host: string
  readonly baseUrl: string | undefined
  readonly trustProxy: boolean
  readonly dataDir: string
  readonly payTo: string | undefined
  readonly settlerKeys: readonly `0x${string}`[]
  /** RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly payerKey: `0x${string}` | undefined
  /** Settle for us where we have no signer of our own; in order of preference. */
  readonly facilitators: readonly FacilitatorAccess[]
  readonly mppRecipient: string | undefined
  /** The first signs challenges, all are known. */
  readonly mppSecretKeys: readonly string[]
  /** The ledger of several machines, and their cache unless that has one of its own. */
  readonly redisUrl: string | undefined
  readonly cacheRedisUrl: string | undefined
  /** The operator answers for Redis settings that cannot be read. */
  readonly ledgerUnsafe: boolean
  readonly sources: SourceUrls
  /** Whom Crossref may write to about our calls: it answers those faster who say. */
  readonly crossrefMailto: string | undefined
  /** Addresses with an optional port, instead of those of the system. */
  readonly dnsServers: readonly string[]
  readonly sanctions: SanctionsSettings
  /** Of the operator's application at Twitch, which opens IGDB too; undefined unless both parts are set. */
  readonly twitch: { readonly clientId: string; readonly clientSecret: string } | undefined
  /** Sockets that callers may reach though they are not public: `host:port`, for intranets and tests. */
  readonly egressAllow: readonly string[]
  /** Value of a variable the catalog names as a credential; undefined when it is not set. */
  readonly secret: (name: string) => string | undefined
  /** The text with the names of variables in the place of values that nobody may read. */
  readonly hide: (text: string) => string
}

export interface FacilitatorAccess {
  readonly url: string
  readonly token: string | undefined
}

export interface SourceUrls {
  readonly steamStore: string
  readonly steamApi: string
  readonly steamSpy: string
  readonly twitchApi: string
  readonly twitchId: string
  readonly igdb: string
  readonly crossref: string
  readonly datacite: string
  /** Asked by way of the egress: one that is not public has to stand in EGRESS_ALLOW. */
  readonly doiResolver: string
  /** IANA's list of registries, or another of its form. */
  readonly rdapBootstrap: string
}

export interface SanctionsSettings {
  /** Where the lists stand as files. */
  readonly directory: string
  /** Where they are fetched from; a list without an address is read only when its file stands in the directory. */
  readonly urls: Readonly<
    Partial<Record<'us_ofac_sdn' | 'us_ofac_cons' | 'un_sc' | 'uk_fcdo' | 'eu_fsf', string>>
  >
}

export class EnvError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'EnvError'
    this.problems = problems
  }
}

type Variables = Readonly<Record<string, string | undefined>>

/** Reads the environment; an empty value counts as unset. Throws `EnvError` naming every variable that is wrong. */
export function readEnv(variables: Variables): Env {
  const reader = new Reader(variables)
  const secrets = new Map(Object.entries(variables).filter(([name]) => SECRET_NAME.test(name)))
  const env: Env = {
    production: reader.text('NODE_ENV') === 'production',
    catalog: reader.text('CATALOG') ?? 'catalog.yaml',
    port: reader.port('PORT') ?? 4021,
    host: reader.text('HOST') ?? '0.0.0.0',
    baseUrl: reader.origin('BASE_URL'),
    trustProxy: reader.flag('TRUST_PROXY'),
    dataDir: reader.text('DATA_DIR') ?? '.ratecard',
    payTo: reader.address('PAY_TO'),
    settlerKeys: reader.keys('SETTLER_PRIVATE_KEY'),
    rpcUrls: reader.rpcUrls(),
    payerKey: reader.keys('PAYER_PRIVATE_KEY')[0],
    facilitators: reader.facilitators(),
    mppRecipient: reader.address('MPP_RECIPIENT'),
    mppSecretKeys: reader.secrets('MPP_SECRET_KEY'),
    redisUrl: reader.redis('REDIS_URL'),
    cacheRedisUrl: reader.redis('CACHE_REDIS_URL'),
    ledgerUnsafe: reader.flag('LEDGER_UNSAFE'),
    sources: {
      steamStore: reader.url('STEAM_STORE_URL') ?? 'https://store.steampowered.com',
      steamApi: reader.url('STEAM_API_URL') ?? 'https://api.steampowered.com',
      steamSpy: reader.url('STEAMSPY_URL') ?? 'https://steamspy.com',
      twitchApi: reader.url('TWITCH_API_URL') ?? 'https://api.twitch.tv/helix',
      twitchId: reader.url('TWITCH_ID_URL') ?? 'https://id.twitch.tv',
      igdb: reader.url('IGDB_URL') ?? 'https://api.igdb.com/v4',
      crossref: reader.url('CROSSREF_URL') ?? 'https://api.crossref.org',
      datacite: reader.url('DATACITE_URL') ?? 'https://api.datacite.org',
      doiResolver: reader.url('DOI_URL') ?? 'https://doi.org',
      rdapBootstrap: reader.url('RDAP_URL') ?? 'https://data.iana.org/rdap/dns.json',
    },
    crossrefMailto: reader.mail('CROSSREF_MAILTO'),
    dnsServers: reader.nameServers('DNS_SERVER'),
    sanctions: reader.sanctions(),
    twitch: reader.twitch(),
    egressAllow: reader.sockets('EGRESS_ALLOW'),
    secret: (name) => {
      secrets.set(name, variables[name])
      return variables[name] || undefined
    },
    hide: (text) => hide(text, secrets),
  }
  if (reader.problems.length > 0) throw new EnvError(reader.problems)
  return Object.freeze(env)
}

const OFAC_URL = 'https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/SDN.XML'

const SECRET_BYTES = 32

function isWeb(value: string): boolean {
  return /^https?:\/\//i.test(value) && URL.canParse(value)
}

class Reader {
  readonly problems: string[] = []
  readonly #variables: Variables

  constructor(variables: Variables) {
    this.#variables = variables
  }

  text(name: string): string | undefined {
    const value = this.#variables[name]?.trim()
    return value === '' ? undefined : value
  }

  flag(name: string): boolean {
    const value = this.text(name)
    if (value === undefined || ['0', 'false', 'no'].includes(value)) return false
    if (['1', 'true', 'yes'].includes(value)) return true
    this.#problem(name, 'must be 1 or 0')
    return false
  }

  port(name: string): number | undefined {
    const value = this.text(name)
    if (value === undefined) return undefined
    if (/^\d{1,5}$/.test(value) && Number(value) <= 65535) return Number(value)
    this.#problem(name, 'must be a port number, 0 to 65535')
    return undefined
  }

  url(name: string): string | undefined {
    const value = this.text(name)
    if (value === undefined || isWeb(value)) return value?.replace(/\/+$/, '')
    this.#problem(name, 'must be an address that starts with https:// or http://')
    return undefined
  }

  redis(name: string): string | undefined {
    const value = this.text(name)
    if (value === undefined || (/^rediss?:\/\//i.test(value) && URL.canParse(value))) return value
    this.#problem(name, 'must be an address that starts with redis:// or rediss://')
    return undefined
  }

  mail(name: string): string | undefined {
    const value = this.text(name)
    if (value === undefined || /^[^\s@<>]+@[^\s@<>]+\.[^\s@<>]+$/.test(value)) return value
    this.#problem(name, 'must be an e-mail address')
    return undefined
  }

  nameServers(name: string): string[] {
    return this.list(name).flatMap((entry) => {
      const [, host = ''] = /^\[?([^\]]*?)\]?(?::\d{1,5})?$/.exec(entry) ?? []
      if (isIP(host) !== 0 || isIP(entry) !== 0) return [entry]
      this.#problem(name, 'must be addresses of name servers, separated by commas: 192.0.2.53:5353')
      return []
    })
  }

  list(name: string): string[] {
    return (this.text(name) ?? '').split(',').flatMap((part) => part.trim() || [])
  }

  /** In the spelling of the URL standard, IPv6 without brackets. */
  sockets(name: string): string[] {
    return this.list(name).flatMap((entry) => {
      const [, host, port] = /^([^\s/@?#]+):(\d{1,5})$/.exec(entry) ?? []
      if (port !== undefined && URL.canParse(`http://${entry}`))
        return `${new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, '')}:${Number(port)}`
      this.#problem(name, 'must be hosts with a port, separated by commas: intranet.corp:8080')
      return []
    })
  }

  /** Tokens belong to addresses by their place; an empty place has none. */
  facilitators(): FacilitatorAccess[] {
    const urls = this.list('FACILITATOR_URL')
    const tokens = (this.text('FACILITATOR_TOKEN') ?? '').split(',').map((part) => part.trim())
    if (!urls.every(isWeb)) this.#problem('FACILITATOR_URL', 'must be addresses, separated by commas')
    if (tokens.length > Math.max(urls.length, 1))
      this.#problem('FACILITATOR_TOKEN', 'has more entries than FACILITATOR_URL')
    return urls.map((url, place) => ({ url: url.replace(/\/+$/, ''), token: tokens[place] || undefined }))
  }

  /** Too short a secret can be guessed from one challenge. */
  secrets(name: string): string[] {
    const secrets = this.list(name)
    if (secrets.some((secret) => Buffer.byteLength(secret) < SECRET_BYTES))
      this.#problem(name, `must be secrets of ${SECRET_BYTES} bytes at least, the current one first`)
    return secrets
  }

  /** Scheme and host only: paths of the service stand right below it. */
  origin(name: string): string | undefined {
    const value = this.url(name)
    if (value === undefined) return undefined
    const { origin, pathname, search, hash, username, password } = new URL(value)
    if (pathname === '/' && search + hash + username + password === '') return origin
    this.#problem(name, 'must be an origin without a path: https://api.example.com')
    return undefined
  }

  address(name: string): string | undefined {
    const value = this.text(name)
    if (value === undefined || /^0x[0-9a-fA-F]{40}$/.test(value)) return value
    this.#problem(name, 'must be an address: 0x and 40 hexadecimal digits')
    return undefined
  }

  /** A comma-separated list of private keys; their text never appears in a message. */
  keys(name: string): `0x${string}`[] {
    return (this.text(name) ?? '')
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .flatMap((part): `0x${string}`[] => {
        const digits = part.replace(/^0x/, '')
        if (/^[0-9a-fA-F]{64}$/.test(digits)) return [`0x${digits}`]
        this.#problem(name, 'must be private keys of 64 hexadecimal digits, separated by commas')
        return []
      })
  }

  /** One list of OFAC's, which anyone may resell, is read unless told otherwise: the others are an operator's choice. */
  sanctions(): SanctionsSettings {
    const [un, uk, eu, more] = ['UN_URL', 'UK_URL', 'EU_URL', 'OFAC_CONS_URL'].map((name) => this.url(name))
    return {
      directory: this.text('SANCTIONS_DIR') ?? `${this.text('DATA_DIR') ?? '.ratecard'}/sanctions`,
      urls: {
        us_ofac_sdn: this.url('OFAC_URL') ?? OFAC_URL,
        ...(more !== undefined && { us_ofac_cons: more }),
        ...(un !== undefined && { un_sc: un }),
        ...(uk !== undefined && { uk_fcdo: uk }),
        ...(eu !== undefined && { eu_fsf: eu }),
      },
    }
  }

  twitch(): { readonly clientId: string; readonly clientSecret: string } | undefined {
    const [clientId, clientSecret] = ['TWITCH_CLIENT_ID', 'TWITCH_CLIENT_SECRET'].map((name) =>
      this.text(name),
    )
    return clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret }
  }

  rpcUrls(): Record<number, string> {
    const urls: Record<number, string> = {}
    for (const name of Object.keys(this.#variables)) {
      const chain = /^RPC_URL_(\d+)$/.exec(name)?.[1]
      const url = chain === undefined ? undefined : this.url(name)
      if (url !== undefined) urls[Number(chain)] = url
    }
    return urls
  }

  #problem(name: string, sentence: string): void {
    this.problems.push(`${name} ${sentence}`)
  }
}
