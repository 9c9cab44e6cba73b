import { join } from 'node:path'
import {
  addressOfKey,
  type AllNetworks,
  type Catalog,
  HEADER_TARGET,
  invalidConfig,
  LedgerError,
  measureHeaders,
  missingConfig,
  openLedger,
  type PaymentConfig,
  readRedisAddress,
  sameAddress,
} from '../../engine/internal.ts'
import type { Env } from '../../env.ts'
import { VARIABLES } from '../payment-config.ts'
import { playMoneyProblems } from '../validate-config.ts'
import { fails, warns, ok, type Verdict } from './verdict.ts'

/** Who is paid, by whose keys: nobody is asked. */
export function judgeOwner(
  { production, payerKey }: Pick<Env, 'production' | 'payerKey'>,
  catalog: Catalog,
  config: PaymentConfig,
  tills: AllNetworks,
  play: ReadonlySet<string>,
): Verdict[] {
  const { payTo, signerKeys, mppRecipient } = config
  const wrong = [
    ...missingConfig(catalog, config, tills, VARIABLES),
    ...invalidConfig(config, VARIABLES),
    ...playMoneyProblems(config, play),
  ].map((line) => fails('addresses', line))
  const payees = Object.entries({ PAY_TO: payTo, MPP_RECIPIENT: mppRecipient ?? '' }).filter(
    ([, to]) => to !== '',
  )
  const signers = signerKeys.flatMap((key) => addressOfKey(key) ?? [])
  const shared = payees.filter(([, to]) => signers.some((signer) => sameAddress(signer, to)))
  return [
    ...(production
      ? []
      : [warns('environment', 'NODE_ENV is not production: a sandbox could be started here')]),
    ...(payerKey === undefined
      ? []
      : [warns('environment', 'PAYER_PRIVATE_KEY is set: a server that sells needs none')]),
    ...wrong,
    ...(wrong.length > 0 ? [] : payees.map(([variable, to]) => ok('addresses', `${variable} ${to}`))),
    ...shared.map(([variable]) =>
      warns(
        'addresses',
        `${variable} is the account that pays for gas: anyone who takes the key from this machine has the revenue too`,
      ),
    ),
  ]
}

export function judgeHeaders(catalog: Catalog, baseUrl: string): Verdict[] {
  const sizes = [...measureHeaders(catalog, baseUrl)].toSorted(([, one], [, other]) => other - one)
  const [largest] = sizes
  if (largest === undefined) return []
  const [path, bytes] = largest
  const says = `PAYMENT-REQUIRED takes ${bytes} of ${HEADER_TARGET} bytes at ${path}`
  return [bytes > HEADER_TARGET ? warns('headers', `${says}: some proxies refuse it`) : ok('headers', says)]
}

/** On which terms the data may be sold: what nobody has agreed to is at the operator's risk. */
export function judgeTerms({ sources, routes }: Catalog, secret: Env['secret']): Verdict[] {
  return Object.entries(sources).flatMap(([name, { title, resale, terms, credentials }]) => {
    const paths = routes.filter(
      ({ kind, operation }) => kind === 'paid' && !operation.planned && operation.sources.includes(name),
    )
    if (paths.length === 0) return []
    const missing = credentials.filter((variable) => secret(variable) === undefined)
    if (missing.length > 0)
      return [
        warns(title, `not sold before ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} set`),
      ]
    const where = `${paths.map(({ path }) => path).join(', ')}${terms === undefined ? '' : `; terms: ${terms}`}`
    if (resale === 'allowed') return [ok(title, 'may be sold')]
    const state =
      resale === 'unknown' ? 'does not say whether it may be sold' : 'may be sold by agreement only'
    return [warns(title, `${state}: ${where}`)]
  })
}

/** Whether a payment that was taken is still known after a restart. */
export async function judgeStores(env: Env): Promise<Verdict[]> {
  const { redisUrl, cacheRedisUrl, dataDir, ledgerUnsafe } = env
  const cache = cacheRedisUrl === undefined ? undefined : readRedisAddress(cacheRedisUrl, 'CACHE_REDIS_URL')
  return [
    ...(redisUrl === undefined
      ? [
          warns(
            'ledger',
            `${join(dataDir, 'ledger')}, on this machine only: REDIS_URL is for several; back it up`,
          ),
        ]
      : await judgeRedis(env)),
    ...(ledgerUnsafe
      ? [warns('ledger', 'LEDGER_UNSAFE is set: nothing checks whether Redis keeps what it stores')]
      : []),
    ...(cache !== undefined && 'fault' in cache ? [fails('cache', cache.fault)] : []),
  ]
}

async function judgeRedis(env: Env): Promise<Verdict[]> {
  try {
    const { ledger, title } = await openLedger({ ...env, directory: join(env.dataDir, 'ledger') })
    await ledger.close()
    return [ok('ledger', `${title}${env.ledgerUnsafe ? '' : ', append-only and without eviction'}`)]
  } catch (fault) {
    if (fault instanceof LedgerError) return [fails('ledger', fault.message)]
    throw fault
  }
}
