import {
  fillPath,
  usesTestNetworks,
  variablesOf,
  type Catalog,
  type Route,
} from '../engine/catalog/catalog.ts'
import type { OpenRatecard } from '../engine/app/ratecard.ts'
import type { Env } from '../env.ts'
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

/** A line of the log. */
interface Line {
  readonly level: 'info' | 'warn'
  readonly message: string
}

const info = (message: string): Line => ({ level: 'info', message })
const warning = (message: string): Line => ({ level: 'warn', message })

/** One line for everything an operator wants to know at once; the last one, on stdout, says that it serves. */
export function printBanner({ terminal, env }: Call, app: OpenRatecard, log: Log, facts: BannerFacts): void {
  const { catalog } = app.service.revision()
  const { baseUrl, host, port } = facts
  const pages = addressOf('docs', catalog, baseUrl) ?? addressOf('index', catalog, baseUrl)
  const lines = [
    ...catalogLines(app),
    ...x402Lines(app),
    ...mppLines(app, facts),
    ...unmetLines(app, env),
    info(`cache: ${facts.cache}`),
    info(`ledger: ${app.titles.ledger}`),
    ...facts.stores.map(info),
    ...sourceLines(catalog, env, facts),
    ...unservedLines(app, env),
    ...(facts.sandbox ? trialLines(app, env, facts) : addressLines(env, facts)),
    ...(pages === undefined ? [] : [info(`pages: ${pages}`)]),
  ]
  for (const { level, message } of lines) log.write({ level, event: 'start', message })
  const message = `listening on http://${host}:${port}`
  log.write({ level: 'info', event: 'listening', message })
  terminal.out(message)
}

function catalogLines({ service }: OpenRatecard): Line[] {
  const { catalog, facts } = service.revision()
  const { routes, payments, revision } = catalog
  const paid = routes.filter(({ kind }) => kind === 'paid')
  const sold = paid.filter(({ operation }) => facts.available(operation))
  return [
    info(
      `catalog: ${countOf(routes.length, 'route')}, ${sold.length} of ${paid.length} paid ones served, revision ${revision}`,
    ),
    ...(usesTestNetworks(payments) ? [warning('selling for the worthless money of test networks')] : []),
  ]
}

/** Networks that are offered, and why others are not. */
function x402Lines({ service, networks: { x402: evm, svm } }: OpenRatecard): Line[] {
  const { x402 } = service.revision().catalog.payments
  if (x402 === undefined) return []
  return [
    ...[...evm.of(x402), ...svm.of(x402)].map(({ network, payTo }) =>
      info(`x402: ${network.title} (${network.id}), ${network.token.symbol} to ${payTo}`),
    ),
    ...[...evm.closed(x402), ...svm.closed(x402)].map(({ network, missing }) =>
      warning(`x402: ${network.title} (${network.id}) is not offered: ${missing.join(' and ')} missing`),
    ),
    ...[...evm.cautions(x402), ...svm.cautions(x402)].map((caution) => warning(`x402: ${caution}`)),
  ]
}

function mppLines({ service, networks, payments }: OpenRatecard, { sandbox }: BannerFacts): Line[] {
  const { mpp } = service.revision().catalog.payments
  if (mpp === undefined) return []
  const missing = networks.mpp.missing(mpp)
  const network = `mpp: Tempo (eip155:${mpp.chain})`
  return [
    info(
      missing.length === 0
        ? `${network} to ${payments.mppRecipient}`
        : `${network} is not offered: ${missing.join(' and ')} missing`,
    ),
    ...(sandbox ? [info(`mpp: ${CLIENTS_OF_MPP}`)] : []),
  ]
}

/** What the catalog names and these settings do not make possible. */
function unmetLines({ service, networks }: OpenRatecard, { secret }: Env): Line[] {
  const { catalog } = service.revision()
  const unsold = unsoldMetered(catalog, networks)
  return [...(unsold === undefined ? [] : [unsold]), ...missingSecrets(catalog.webhooks, secret)].map(warning)
}

/** Outside sources without their credentials, and those whose terms do not allow resale. */
function sourceLines(catalog: Catalog, { secret }: Env, { sandbox }: BannerFacts): Line[] {
  const unused = Object.entries(catalog.sources).flatMap(([name, { credentials }]) => {
    const missing = credentials.filter((variable) => secret(variable) === undefined)
    const isUsed = catalog.operations.some((each) => each.sources.includes(name) && !each.planned)
    return isUsed && missing.length > 0 ? [warning(`source ${name}: not used before ${areSet(missing)}`)] : []
  })
  // Play money sells nothing.
  const sold = sandbox ? [] : resaleTerms(catalog)
  const open = sold.flatMap((source) => {
    const terms = openTerms(source)
    return terms === undefined ? [] : [warning(`source ${source.name}: ${terms}`)]
  })
  return [...unused, ...open]
}

/** Operations that are declared and cannot be sold yet. */
function unservedLines({ service }: OpenRatecard, { secret }: Env): Line[] {
  const { catalog, operations } = service.revision()
  const without = Array.from(operations.values()).flatMap(({ operation, readiness }) => {
    const unset = operation.sources.flatMap((name) => catalog.sources[name]?.credentials ?? [])
    const isServed = readiness !== 'not_configured' || operation.upstream !== undefined
    if (isServed || unset.length > 0 || operation.sources.length === 0) return []
    return [
      warning(`${operation.id}: not served, none of its sources is set up: ${operation.sources.join(', ')}`),
    ]
  })
  const unsold = new Map<string, string[]>()
  for (const { kind, path, operation } of catalog.routes) {
    if (kind !== 'paid') continue
    const unset = variablesOf(operation.upstream?.credential).filter((name) => secret(name) === undefined)
    if (unset.length > 0) unsold.set(areSet(unset), [...(unsold.get(areSet(unset)) ?? []), path])
  }
  const locked = Array.from(unsold, ([credentials, [path, ...more]]) => {
    const others = more.length === 0 ? '' : ` and ${more.length} more`
    return warning(`${path}${others}: not served before ${credentials}`)
  })
  return [...without, ...locked]
}

/** How to buy something in the sandbox. */
function trialLines(
  { service, networks }: OpenRatecard,
  env: Env,
  { baseUrl, dataDir }: BannerFacts,
): Line[] {
  const { catalog, facts } = service.revision()
  const first = catalog.routes.find(
    ({ kind, operation }) => kind === 'paid' && facts.available(operation) && operation.method === 'GET',
  )
  if (first === undefined) return []
  const wallet = dataDir === env.dataDir ? '' : `DATA_DIR='${dataDir}' `
  const call = `${wallet}npx ratecard pay '${baseUrl}${sampleCall(first)}'`
  const { x402 } = catalog.payments
  const [svm] = x402 === undefined ? [] : networks.svm.of(x402)
  return [
    info(`try: ${call}`),
    ...(svm === undefined
      ? []
      : [info(`on ${svm.network.title}: ${call} --network ${svm.network.nickname}`)]),
  ]
}

function addressLines(env: Env, { baseUrl }: BannerFacts): Line[] {
  return env.baseUrl === undefined
    ? [
        warning(
          `BASE_URL is not set: challenges and documents say ${baseUrl}, which only this machine can reach`,
        ),
      ]
    : []
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
