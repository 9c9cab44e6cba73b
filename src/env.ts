import { type BuyerEnv, readBuyerEnv } from './env/buyer-env.ts'
import { EnvError } from './env/env-error.ts'
import { Reader, type Variables } from './env/reader.ts'
import {
  type FacilitatorAccess,
  hide,
  type LogLevel,
  type MetricsSettings,
  SECRET_NAME,
} from './env/settings.ts'

/** The settings of one process: read once, frozen, every problem reported together. The only reader of the environment. */
export interface Env extends BuyerEnv {
  readonly production: boolean
  readonly catalog: string
  readonly host: string
  readonly trustProxy: boolean
  readonly payTo: string | undefined
  readonly settlerKeys: readonly `0x${string}`[]
  /** Of the account that refunds are sent from. */
  readonly refundKey: `0x${string}` | undefined
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
  /** Bases of the MCP servers by their name in the catalog; one that is not here is served below BASE_URL. */
  readonly mcpUrls: Readonly<Record<string, string>>
  /** Origins of other sites whose pages may call MCP servers. */
  readonly mcpOrigins: readonly string[]
  readonly logLevel: LogLevel
  readonly metrics: MetricsSettings
  /** What the service has read of its own variables. */
  readonly service: unknown
  /** Value of a variable the catalog names as a credential; undefined when it is not set. */
  readonly secret: (name: string) => string | undefined
  /** The text with secret values replaced by the names of their variables. */
  readonly hide: (text: string) => string
}

/** What a service adds to the environment of its process. */
export interface ServiceVariables {
  env?(variables: Reader): unknown
  /** The variable of each MCP server that may have a base of its own. */
  readonly mcpUrls?: Readonly<Record<string, string>>
}

/** Reads the environment; an empty value counts as unset. Throws `EnvError` naming every variable that is wrong. */
export function readEnv(variables: Variables, service: ServiceVariables = {}): Env {
  const reader = new Reader(variables)
  const secrets = new Map(Object.entries(variables).filter(([name]) => SECRET_NAME.test(name)))
  const env: Env = {
    ...readBuyerEnv(reader),
    production: reader.text('NODE_ENV') === 'production',
    catalog: reader.text('CATALOG') ?? 'catalog.yaml',
    host: reader.text('HOST') ?? '0.0.0.0',
    trustProxy: reader.flag('TRUST_PROXY'),
    payTo: reader.address('PAY_TO'),
    settlerKeys: reader.keys('SETTLER_PRIVATE_KEY'),
    refundKey: reader.keys('REFUND_PRIVATE_KEY')[0],
    facilitators: reader.facilitators(),
    mppRecipient: reader.address('MPP_RECIPIENT'),
    mppSecretKeys: reader.secrets('MPP_SECRET_KEY'),
    redisUrl: reader.redis('REDIS_URL'),
    cacheRedisUrl: reader.redis('CACHE_REDIS_URL'),
    ledgerUnsafe: reader.flag('LEDGER_UNSAFE'),
    ledgerReplicas: reader.count('LEDGER_REPLICAS') ?? 0,
    mcpUrls: reader.mcpUrls(service.mcpUrls ?? {}),
    mcpOrigins: reader.origins('MCP_ORIGINS'),
    logLevel: reader.logLevel('LOG_LEVEL'),
    metrics: { port: reader.port('METRICS_PORT'), token: reader.text('METRICS_TOKEN') },
    service: service.env?.(reader),
    secret: (name) => {
      secrets.set(name, variables[name])
      return variables[name] || undefined
    },
    hide: (text) => hide(text, secrets),
  }
  for (const name of reader.concealed) secrets.set(name, variables[name])
  if (reader.problems.length > 0) throw new EnvError(reader.problems)
  return Object.freeze(env)
}
