import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { Reader, type Variables } from './env/reader.ts'
import {
  type FacilitatorAccess,
  hide,
  type LogLevel,
  MCP_URL_NAMES,
  type MetricsSettings,
  type ModelSettings,
  type SanctionsSettings,
  type SearchSettings,
  SECRET_NAME,
  type SourceUrls,
} from './env/settings.ts'

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
  /** Replicas of Redis that must have a change before it counts as stored. */
  readonly ledgerReplicas: number
  readonly sources: SourceUrls
  /** Whom Crossref may write to about our calls: it answers those faster who say. */
  readonly crossrefMailto: string | undefined
  /** Addresses with an optional port, instead of those of the system. */
  readonly dnsServers: readonly string[]
  readonly sanctions: SanctionsSettings
  /** Of the operator's application at Twitch, which opens IGDB too; undefined unless both parts are set. */
  readonly twitch: { readonly clientId: string; readonly clientSecret: string } | undefined
  /** Bases of the MCP servers by their name in the catalog; one that is not here is served below BASE_URL. */
  readonly mcpUrls: Readonly<Record<string, string>>
  /** PostgreSQL with pgvector for memories; undefined: embedded, in the data directory. */
  readonly databaseUrl: string | undefined
  readonly model: ModelSettings
  readonly search: SearchSettings
  readonly logLevel: LogLevel
  readonly metrics: MetricsSettings
  /** Sockets that callers may reach though they are not public: `host:port`, for intranets and tests. */
  readonly egressAllow: readonly string[]
  /** Value of a variable the catalog names as a credential; undefined when it is not set. */
  readonly secret: (name: string) => string | undefined
  /** The text with the names of variables in the place of values that nobody may read. */
  readonly hide: (text: string) => string
}

export class EnvError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'EnvError'
    this.problems = problems
  }
}

/** Variables of a file in the form of dotenv; none when there is no such file. */
export function readEnvFile(path: string): Variables {
  return existsSync(path) ? parseEnv(readFileSync(path, 'utf8')) : {}
}

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
    ledgerReplicas: reader.count('LEDGER_REPLICAS') ?? 0,
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
    mcpUrls: reader.mcpUrls(MCP_URL_NAMES),
    databaseUrl: reader.postgres('DATABASE_URL'),
    model: {
      baseUrl: reader.url('OPENAI_BASE_URL') ?? 'https://api.openai.com/v1',
      apiKey: reader.text('OPENAI_API_KEY'),
      languageModel: reader.text('LLM_MODEL'),
      embeddingModel: reader.text('EMBEDDING_MODEL'),
    },
    search: { searxngUrl: reader.url('SEARXNG_URL'), braveApiKey: reader.text('BRAVE_API_KEY') },
    logLevel: reader.logLevel('LOG_LEVEL'),
    metrics: { port: reader.port('METRICS_PORT'), token: reader.text('METRICS_TOKEN') },
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
