import { fillPath, usesTestNetworks, variablesOf, type Route } from '../engine/catalog/catalog.ts'
import type { OpenRatecard } from '../engine/app/ratecard.ts'
import type { Call } from './command.ts'
import type { Log } from './log.ts'
import { openTerms, resaleTerms } from './resale-terms.ts'
import { addressOf } from '../engine/documents/registry.ts'
import { missingSecrets } from '../engine/webhooks/webhooks.ts'
import { countOf } from '../engine/base/words.ts'
import { areSet } from './terminal-text.ts'
import { unsoldMetered } from './unsold-metered.ts'

export interface BannerFacts {
  readonly cache: string
  /** What the service says about its stores. */
  readonly stores: readonly string[]
  readonly baseUrl: string
  readonly dataDir: string
  readonly sandbox: boolean
  readonly host: string
  readonly port: number
}

/** One line for everything an operator wants to know at once; the last one, on stdout, says that it serves. */
export function printBanner({ terminal, env }: Call, app: OpenRatecard, log: Log, facts: BannerFacts): void {
  const { baseUrl, dataDir, host, port } = facts
  const { service, networks, titles } = app
  const { catalog } = service.revision()
  const { routes, payments } = catalog
  const say = (message: string): void => log.write({ level: 'info', event: 'start', message })
  const warn = (message: string): void => log.write({ level: 'warn', event: 'start', message })
  const paid = routes.filter(({ kind }) => kind === 'paid')
  const sold = paid.filter(({ operation }) => service.revision().facts.available(operation))
  say(
    `catalog: ${countOf(routes.length, 'route')}, ${sold.length} of ${paid.length} paid ones served, revision ${catalog.revision}`,
  )
  if (usesTestNetworks(payments)) warn('selling for the worthless money of test networks')
  const { x402, mpp } = payments
  if (x402 !== undefined) {
    for (const { network, payTo } of networks.x402.of(x402)) {
      say(`x402: ${network.title} (${network.id}), ${network.token.symbol} to ${payTo}`)
    }
    for (const { network, payTo } of networks.svm.of(x402)) {
      say(`x402: ${network.title} (${network.id}), ${network.token.symbol} to ${payTo}`)
    }
    for (const { network, missing } of [...networks.x402.closed(x402), ...networks.svm.closed(x402)]) {
      warn(`x402: ${network.title} (${network.id}) is not offered: ${missing.join(' and ')} missing`)
    }
    for (const caution of [...networks.x402.cautions(x402), ...networks.svm.cautions(x402)])
      warn(`x402: ${caution}`)
  }
  if (mpp !== undefined) {
    const missing = networks.mpp.missing(mpp)
    say(
      missing.length === 0
        ? `mpp: Tempo (eip155:${mpp.chain}) to ${app.payments.mppRecipient}`
        : `mpp: Tempo (eip155:${mpp.chain}) is not offered: ${missing.join(' and ')} missing`,
    )
    if (facts.sandbox) say(`mpp: ${CLIENTS_OF_MPP}`)
  }
  const unsoldMeters = unsoldMetered(catalog, networks)
  if (unsoldMeters !== undefined) warn(unsoldMeters)
  for (const missing of missingSecrets(catalog.webhooks, env.secret)) warn(missing)
  say(`cache: ${facts.cache}`)
  say(`ledger: ${titles.ledger}`)
  for (const line of facts.stores) say(line)
  for (const [name, { credentials }] of Object.entries(catalog.sources)) {
    const missing = credentials.filter((variable) => env.secret(variable) === undefined)
    const isUsed = catalog.operations.some(({ sources, planned }) => sources.includes(name) && !planned)
    if (isUsed && missing.length > 0) warn(`source ${name}: not used before ${areSet(missing)}`)
  }
  // Play money sells nothing.
  for (const source of facts.sandbox ? [] : resaleTerms(catalog)) {
    const open = openTerms(source)
    if (open !== undefined) warn(`source ${source.name}: ${open}`)
  }
  for (const { operation, readiness } of service.revision().operations.values()) {
    const unset = operation.sources.flatMap((name) => catalog.sources[name]?.credentials ?? [])
    const isServed = readiness !== 'not_configured' || operation.upstream !== undefined
    if (isServed || unset.length > 0 || operation.sources.length === 0) continue
    warn(`${operation.id}: not served, none of its sources is set up: ${operation.sources.join(', ')}`)
  }
  const unsold = new Map<string, string[]>()
  for (const { path, operation } of paid) {
    const unset = variablesOf(operation.upstream?.credential).filter((name) => env.secret(name) === undefined)
    if (unset.length > 0) unsold.set(areSet(unset), [...(unsold.get(areSet(unset)) ?? []), path])
  }
  for (const [credentials, [path, ...more]] of unsold) {
    const others = more.length === 0 ? '' : ` and ${more.length} more`
    warn(`${path}${others}: not served before ${credentials}`)
  }
  if (facts.sandbox) {
    const wallet = dataDir === env.dataDir ? '' : `DATA_DIR='${dataDir}' `
    const first = sold.find(({ operation }) => operation.method === 'GET')
    const call = first && `${wallet}npx ratecard pay '${baseUrl}${sampleCall(first)}'`
    if (call !== undefined) say(`try: ${call}`)
    const [svm] = payments.x402 === undefined ? [] : networks.svm.of(payments.x402)
    if (call !== undefined && svm !== undefined)
      say(`on ${svm.network.title}: ${call} --network ${svm.network.nickname}`)
  } else if (env.baseUrl === undefined) {
    warn(`BASE_URL is not set: challenges and documents say ${baseUrl}, which only this machine can reach`)
  }
  const pages = addressOf('docs', catalog, baseUrl) ?? addressOf('index', catalog, baseUrl)
  if (pages !== undefined) say(`pages: ${pages}`)
  const message = `listening on http://${host}:${port}`
  log.write({ level: 'info', event: 'listening', message })
  terminal.out(message)
}

/** Newer versions sign for a fork of Tempo that anvil does not have yet. */
const CLIENTS_OF_MPP = 'clients of your own pay on the local chain by mppx with viem 2.57.13 or older'

/** A call that succeeds when it is paid for: required parameters have an example. */
function sampleCall(route: Route): string {
  const spell = (name: string): string =>
    String(route.parameters.find((parameter) => parameter.name === name)?.example ?? '')
  const query = route.parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required)
    .map(({ name }) => `${name}=${encodeURIComponent(spell(name))}`)
  return fillPath(route.path, spell) + (query.length === 0 ? '' : `?${query.join('&')}`)
}
