import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ServiceContext, ServiceStores, Serving, StandIns } from 'ratecard/service'
import type { HandlerMap } from 'ratecard/handler'
import { chooseEmbedder } from './memory/choose-embedder.ts'
import { wayOf } from './memory/embedder.ts'
import { StoreRefusal } from './memory/database.ts'
import { Memories, type Place } from './memory/memories.ts'
import { createHandlers } from './definition.ts'
import { findSentenceModel } from './sentences/sentence-model.ts'
import type { Settings } from './settings.ts'
import { Dns } from './sources/dns.ts'
import { Egress } from './sources/egress.ts'
import type { Wire } from './sources/egress/connection.ts'
import { LISTS, STAND_IN_LISTS } from './sources/sanctions/lists.ts'
import type { MetricsBySource } from './sources/source-metrics.ts'
import type { Runtime } from './sources/source-runtime.ts'

type Context = ServiceContext<Settings>

/** How sites name us in their robots.txt. */
const AGENT = 'Ratecard'

/** Shared by the handlers, which ask for its store, and by what opens the store. */
const memories = new Memories()

/** The machine and the network, as the sources see them. */
export function runtimeOf(context: Context): Runtime {
  const userAgent = userAgentOf(context)
  return {
    fetch: (url, { headers, ...options }) =>
      fetch(url, { ...options, headers: { 'user-agent': userAgent, ...headers } }),
    now: () => new Date(),
    sleep: async (ms, signal) => {
      await delay(ms, undefined, { signal })
    },
    random: () => randomBytes(4).readUInt32BE() / 2 ** 32,
  }
}

/** What every source and site sees, with where its operator can be reached. */
function userAgentOf({ baseUrl, settings, version }: Context): string {
  const { crossrefMailto } = settings
  const contact = [baseUrl && `+${baseUrl}`, crossrefMailto && `mailto:${crossrefMailto}`].filter(Boolean)
  return [`${AGENT}/${version}`, ...(contact.length === 0 ? [] : [`(${contact.join('; ')})`])].join(' ')
}

function openEgress(context: Context, wire: Wire): Egress {
  const { baseUrl, settings } = context
  const own = baseUrl === undefined ? [] : [new URL(baseUrl).hostname]
  const runtime = runtimeOf(context)
  return new Egress(
    { agent: AGENT, userAgent: userAgentOf(context), policy: { own, allow: settings.egressAllow }, wire },
    runtime.now,
  )
}

/** The handlers over the real sources. */
export function openHandlers(context: Context, records: MetricsBySource): HandlerMap {
  const { sources, sanctions, twitch, crossrefMailto, model, search, dnsServers } = context.settings
  const dns = new Dns(dnsServers)
  return createHandlers({
    runtime: runtimeOf(context),
    records,
    memories,
    ...sources,
    sanctions: { lists: LISTS, ...sanctions },
    twitch,
    egress: openEgress(context, { resolve: (host) => dns.addresses(host) }),
    dns,
    crossrefMailto,
    model,
    search,
    standIn: false,
  })
}

/** The handlers over stand-ins for every outside source: no network. */
export async function openStandIns(context: Context, records: MetricsBySource): Promise<StandIns> {
  const { startStandIns } = await import('./stand-ins/stand-ins.ts')
  const { startWeb } = await import('./stand-ins/web/web.ts')
  const [standIns, web] = await Promise.all([startStandIns(), startWeb()])
  const dns = new Dns([web.nameServer])
  const handlers = createHandlers({
    runtime: runtimeOf(context),
    records,
    memories,
    steamStore: `${standIns.url}/steam-store`,
    steamApi: `${standIns.url}/steam-api`,
    steamSpy: `${standIns.url}/steamspy`,
    twitchApi: `${standIns.url}/twitch-api`,
    twitchId: `${standIns.url}/twitch-id`,
    igdb: `${standIns.url}/igdb`,
    crossref: `${standIns.url}/crossref`,
    datacite: `${standIns.url}/datacite`,
    doiResolver: web.doiResolver,
    crossrefMailto: undefined,
    sanctions: {
      lists: STAND_IN_LISTS,
      directory: undefined,
      urls: {
        us_ofac_sdn: `${standIns.url}/sanctions/ofac.xml`,
        un_sc: `${standIns.url}/sanctions/un.xml`,
      },
    },
    twitch: undefined,
    egress: openEgress(context, { resolve: (host) => dns.addresses(host), ...web.wire }),
    dns,
    rdapBootstrap: web.rdapBootstrap,
    search: { searxngUrl: `${standIns.url}/searxng`, brave: undefined },
    model: { baseUrl: `${standIns.url}/model`, apiKey: undefined, languageModel: 'stand-in' },
    standIn: true,
  })
  return {
    handlers,
    sources: standIns.sources,
    stop: async () => {
      await Promise.all([standIns.stop(), web.stop()])
    },
  }
}

/** What play money has paid for stays with it. */
export function placeOfMemories(
  { databaseUrl }: Pick<Settings, 'databaseUrl'>,
  { dataDir, payments }: Pick<Serving, 'dataDir' | 'payments'>,
): Place {
  if (payments === 'sandbox') return { kind: 'embedded', directory: join(dataDir, 'sandbox', 'memory') }
  if (databaseUrl !== undefined) return { kind: 'postgres', url: databaseUrl }
  return { kind: 'embedded', directory: join(dataDir, 'memory') }
}

const NO_STORES: ServiceStores = { lines: [], unavailable: {}, close: async () => undefined }

/** Opens the memory store when the catalog serves its tools. Embedded files belong to one process; the others serve the rest. */
export async function openStores(
  context: Context,
  serving: Serving,
  records: MetricsBySource,
): Promise<ServiceStores> {
  const tools = serving.handlers.filter((name) => name.startsWith('memory/'))
  if (tools.length === 0) return NO_STORES
  const { settings } = context
  const model = serving.sources === 'live' ? settings.model : undefined
  const embedder = chooseEmbedder(model, findSentenceModel(), runtimeOf(context), records)
  const place = placeOfMemories(settings, serving)
  const close = (): Promise<void> => memories.close()
  if (serving.replaces) {
    memories.openWhenFree(place, embedder)
    return { ...NO_STORES, close }
  }
  try {
    const title = await memories.open(place, embedder)
    void memories.warm().catch((fault: unknown) => process.stderr.write(`memory: ${String(fault)}\n`))
    return {
      lines: [`memory: ${title}, texts are found by ${wayOf(embedder)} (${embedder.name})`],
      unavailable: {},
      close,
    }
  } catch (fault) {
    if (!(fault instanceof StoreRefusal)) throw fault
    const reason = 'the memory is served by another process'
    return {
      ...NO_STORES,
      lines: [`memory: not served by this process: ${fault.message}`],
      unavailable: Object.fromEntries(tools.map((name) => [name, reason])),
    }
  }
}
