import { join } from 'node:path'
import { sameAddress } from '../../engine/base/address.ts'
import { usesTestNetworks, type Catalog } from '../../engine/catalog/catalog.ts'
import type { AllNetworks } from '../../engine/app/all-networks.ts'
import { openLedger } from '../../engine/app/open-stores.ts'
import type { PaymentConfig } from '../../engine/app/options.ts'
import { LedgerError } from '../../engine/base/errors.ts'
import { checkStore } from '../../engine/ledger/lmdb/lmdb-check.ts'
import { invalidConfig, missingConfig } from '../../engine/app/config-problems.ts'
import { HEADER_TARGET, measureHeaders } from '../../engine/x402/x402-challenge.ts'
import { addressOfKey } from '../../engine/chains/evm/signature.ts'
import { readRedisAddress } from '../../engine/base/redis-address.ts'
import type { Env } from '../../env.ts'
import { VARIABLES } from '../../engine/app/option-names.ts'
import { playMoneyProblems } from '../payment-config.ts'
import { openTerms, resaleTerms } from '../resale-terms.ts'
import { areSet } from '../terminal-text.ts'
import { unsoldMetered } from '../unsold-metered.ts'
import { fails, warns, ok, type CheckResult } from './check-result.ts'

/** Checks the payee and the keys, without any request. */
export function checkOwner(
  { production, payerKey }: Pick<Env, 'production' | 'payerKey'>,
  catalog: Catalog,
  config: PaymentConfig,
  paymentNetworks: AllNetworks,
  play: ReadonlySet<string>,
): CheckResult[] {
  const { payTo, signerKeys, mppRecipient } = config
  const wrong = [
    ...missingConfig(catalog, config, paymentNetworks, VARIABLES),
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
    ok(
      'payers',
      `payments from ${catalog.payments.denied.length} addresses are refused (payments.payers.deny)`,
    ),
    ...shared.map(([variable]) =>
      warns(
        'addresses',
        `${variable} is the account that pays for gas: anyone who takes the key from this machine has the revenue too`,
      ),
    ),
  ]
}

export function checkHeaders(catalog: Catalog, baseUrl: string): CheckResult[] {
  const sizes = [...measureHeaders(catalog, baseUrl)].toSorted(([, one], [, other]) => other - one)
  const [largest] = sizes
  if (largest === undefined) return []
  const [path, bytes] = largest
  const message = `PAYMENT-REQUIRED takes ${bytes} of ${HEADER_TARGET} bytes at ${path}`
  return [
    bytes > HEADER_TARGET ? warns('headers', `${message}: some proxies refuse it`) : ok('headers', message),
  ]
}

/** Checks that what is priced after the work can be bought. */
export function checkMetered(catalog: Catalog, paymentNetworks: AllNetworks): CheckResult[] {
  const unsold = unsoldMetered(catalog, paymentNetworks)
  return unsold === undefined ? [] : [warns('metered prices', unsold)]
}

/** Checks that buyers pay with money that is worth something. */
export function checkMoney({ payments }: Catalog): CheckResult[] {
  return usesTestNetworks(payments)
    ? [
        fails(
          'networks',
          'the catalog sells on test networks, whose money is worthless: name real ones under "payments"',
        ),
      ]
    : []
}

/** Checks the terms of the data: data without an agreement is sold at the operator's risk. */
export function checkTerms(catalog: Catalog, secret: Env['secret']): CheckResult[] {
  return resaleTerms(catalog).map((source) => {
    const missing = source.credentials.filter((variable) => secret(variable) === undefined)
    if (missing.length > 0) return warns(source.title, `not sold before ${areSet(missing)}`)
    const open = openTerms(source)
    return open === undefined ? ok(source.title, 'may be sold') : warns(source.title, open)
  })
}

/** Checks whether payments are still known after a restart. */
export async function checkStores(env: Env): Promise<CheckResult[]> {
  const { redisUrl, cacheRedisUrl, dataDir, ledgerUnsafe } = env
  const cache = cacheRedisUrl === undefined ? undefined : readRedisAddress(cacheRedisUrl, 'CACHE_REDIS_URL')
  return [
    redisUrl === undefined ? await checkLmdb(join(dataDir, 'ledger')) : await checkRedis(env),
    ...(ledgerUnsafe
      ? [warns('ledger', 'LEDGER_UNSAFE is set: nothing checks whether Redis keeps what it stores')]
      : []),
    ...(cache !== undefined && 'fault' in cache ? [fails('cache', cache.fault)] : []),
  ]
}

async function checkLmdb(directory: string): Promise<CheckResult> {
  return failsWithLedger(async () => {
    await checkStore(directory)
    return warns('ledger', `${directory}, on this machine only: REDIS_URL is for several; back it up`)
  })
}

async function checkRedis(env: Env): Promise<CheckResult> {
  return failsWithLedger(async () => {
    const { ledger, title } = await openLedger({ ...env, directory: join(env.dataDir, 'ledger') })
    await ledger.close()
    return ok('ledger', `${title}${env.ledgerUnsafe ? '' : ', append-only and without eviction'}`)
  })
}

async function failsWithLedger(check: () => Promise<CheckResult>): Promise<CheckResult> {
  try {
    return await check()
  } catch (fault) {
    if (fault instanceof LedgerError) return fails('ledger', fault.message)
    throw fault
  }
}
