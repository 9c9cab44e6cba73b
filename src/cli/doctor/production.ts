import { readTestAddresses } from '../../sandbox/known-keys.ts'
import type { Call } from '../command.ts'
import { loadServed } from '../../engine/app/catalog-thread.ts'
import { handlersFor } from '../load-handlers.ts'
import { baseUrlOf, paymentConfig } from '../payment-config.ts'
import { previewNetworks } from '../preview.ts'
import { clean } from '../../command-line/printable.ts'
import { checkChains } from './chain-checks.ts'
import { checkPublicAddress } from './public-address.ts'
import { checkSite } from './site-check.ts'
import {
  checkHeaders,
  checkMetered,
  checkMoney,
  checkOwner,
  checkStores,
  checkTerms,
} from './setting-checks.ts'
import { printResults, type CheckResult } from './check-result.ts'

/** Everything that real money depends on, looked at before the first of it comes; nothing is paid or changed. */
export async function examineProduction(call: Call, url: string | undefined): Promise<number> {
  const { env, flags, terminal } = call
  const file = flags.text('catalog') ?? env.catalog
  const handlers = Object.keys(await handlersFor(call, file))
  const { catalog } = loadServed(file, { handlers }, baseUrlOf(env))
  const baseUrl = url ?? env.baseUrl
  const config = paymentConfig(env, catalog)
  const paymentNetworks = previewNetworks(config, baseUrl ?? 'http://localhost')
  const step = async (
    name: string,
    results: Promise<CheckResult[]> | CheckResult[],
  ): Promise<CheckResult[]> => {
    terminal.progress(name)
    return results
  }
  const play = readTestAddresses(env.dataDir)
  const results = [
    ...checkOwner(env, catalog, config, paymentNetworks, play),
    ...checkMoney(catalog),
    ...checkMetered(catalog, paymentNetworks),
    ...(await step('networks', checkChains(catalog, config, paymentNetworks))),
    ...(await step('stores', checkStores(env))),
    ...(await step('BASE_URL', checkPublicAddress(catalog, baseUrl))),
    ...(await step('passthrough', checkSite(catalog))),
    ...checkHeaders(catalog, baseUrl ?? 'http://localhost'),
    ...checkTerms(catalog, env.secret),
  ].map((result) => ({ ...result, message: clean(env.hide(result.message)) }))
  terminal.progress('')
  return printResults(call, results)
}
