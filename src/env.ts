import { readBuyerEnv } from './env/buyer-env.ts'
import { EnvError } from './env/env-error.ts'
import { Reader, type Variables } from './env/reader.ts'
import { hide, SECRET_NAME } from './env/secrets.ts'
import { SETTINGS } from './settings.ts'

/** The settings of one process: read once, frozen, every problem reported together. The only reader of the environment. */
export interface Env extends Readonly<ReturnType<typeof readSettings>> {
  /** Bases of the MCP servers by their name in the catalog; one that is not here is served below BASE_URL. */
  readonly mcpUrls: Readonly<Record<string, string>>
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
  const reader = new Reader((name) => variables[name], Object.keys(variables))
  const secrets = new Map(Object.entries(variables).filter(([name]) => SECRET_NAME.test(name)))
  const env: Env = {
    ...readSettings(reader),
    mcpUrls: reader.mcpUrls(service.mcpUrls ?? {}),
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

/** What `SETTINGS` says about each is not repeated here. */
function readSettings(reader: Reader) {
  const { environment, catalog, host, trustProxy, drainSeconds, payTo, signerKeys, refundKey } = SETTINGS
  const { channelKeys, feePayerKeys, svmRefundKey } = SETTINGS
  const { mppRecipient, mppSecretKeys, receiptKeys, ledger, cache, ledgerUnsafe, ledgerReplicas } = SETTINGS
  const { metricsPort, metricsToken, noColor, forceColor, allowTestNetworks } = SETTINGS
  const payees = reader.payees(payTo.variable)
  return {
    ...readBuyerEnv(reader),
    production: reader.text(environment.variable) === 'production',
    catalog: reader.text(catalog.variable) ?? catalog.default,
    host: reader.text(host.variable) ?? host.default,
    trustProxy: reader.flag(trustProxy.variable),
    drainSeconds: reader.count(drainSeconds.variable) ?? drainSeconds.default,
    allowTestNetworks: reader.flag(allowTestNetworks.variable),
    payTo: payees.evm,
    payToSolana: payees.solana,
    signerKeys: reader.keys(signerKeys.variable),
    feePayerKeys: reader.keyPairs(feePayerKeys.variable),
    channelKeys: reader.keys(channelKeys.variable),
    refundKey: reader.keys(refundKey.variable)[0],
    svmRefundKey: reader.text(svmRefundKey.variable),
    facilitators: reader.facilitators(),
    mppRecipient: reader.address(mppRecipient.variable),
    mppSecretKeys: reader.secrets(mppSecretKeys.variable),
    receiptKeys: reader.keys(receiptKeys.variable),
    redisUrl: reader.redis(ledger.variable),
    cacheRedisUrl: reader.redis(cache.variable),
    ledgerUnsafe: reader.flag(ledgerUnsafe.variable),
    ledgerReplicas: reader.count(ledgerReplicas.variable) ?? ledgerReplicas.default,
    logLevel: reader.logLevel(),
    metricsPort: reader.port(metricsPort.variable),
    metricsToken: reader.text(metricsToken.variable),
    /** Whether log lines are coloured; undefined: in a terminal. */
    color: readColor(reader.text(noColor.variable), reader.text(forceColor.variable)),
  }
}

/** https://no-color.org and https://force-color.org; the first wins. */
function readColor(no: string | undefined, force: string | undefined): boolean | undefined {
  if (no !== undefined) return false
  return force === undefined ? undefined : force !== '0'
}
