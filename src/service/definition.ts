import type { Source } from 'ratecard/handler'
import type { Handlers } from './handlers/catalog.ts'
import { appDossier } from './handlers/bundle/app-dossier.ts'
import { marketSnapshot } from './handlers/bundle/market-snapshot.ts'
import { metadata, metadataOfApp } from './handlers/game/metadata.ts'
import { app } from './handlers/gamestore/app.ts'
import { deals } from './handlers/gamestore/deals.ts'
import { topSellers } from './handlers/gamestore/top-sellers.ts'
import { deleteOwn } from './handlers/memory/delete.ts'
import { exportAll } from './handlers/memory/export.ts'
import { search } from './handlers/memory/search.ts'
import { stats } from './handlers/memory/stats.ts'
import { write } from './handlers/memory/write.ts'
import { ping } from './handlers/ping.ts'
import { extractStructured } from './handlers/research/extract-structured.ts'
import { summarize } from './handlers/research/summarize.ts'
import { webResearch } from './handlers/research/web-research.ts'
import { hype } from './handlers/streaming/hype.ts'
import { citation } from './handlers/util/citation.ts'
import { emailVerify } from './handlers/util/email-verify.ts'
import { extract } from './handlers/util/extract.ts'
import { quote } from './handlers/services/quote.ts'
import { deliveryOrderby } from './handlers/util/delivery-orderby.ts'
import { finid } from './handlers/util/finid.ts'
import { guard } from './handlers/util/guard.ts'
import { json } from './handlers/util/json.ts'
import { mock } from './handlers/util/mock.ts'
import { siteIntel } from './handlers/util/site-intel.ts'
import { occasion } from './handlers/util/occasion.ts'
import { platformSpec } from './handlers/util/platform-spec.ts'
import { repurpose } from './handlers/util/repurpose.ts'
import { sanctions } from './handlers/util/sanctions.ts'
import { tokencost } from './handlers/util/tokencost.ts'
import { workday } from './handlers/util/workday.ts'
import type { SearchSettings, SourceUrls } from './settings.ts'
import { Brave, LIVE_BRAVE } from './sources/brave.ts'
import type { Memories } from './memory/memories.ts'
import { Crossref, LIVE_CROSSREF } from './sources/crossref.ts'
import { DataCite, LIVE_DATACITE } from './sources/datacite.ts'
import type { Dns } from './sources/dns.ts'
import { DoiResolver, LIVE_DOI_RESOLVER } from './sources/doi-resolver.ts'
import type { Egress } from './sources/egress.ts'
import { Gamestore, LIVE_GAMESTORE } from './sources/gamestore.ts'
import { Igdb, LIVE_IGDB } from './sources/igdb.ts'
import { Sanctions, type SanctionsOptions } from './sources/sanctions.ts'
import { LanguageModel, LIVE_MODEL } from './sources/model.ts'
import type { SearchEngine } from './sources/search-engine.ts'
import { LIVE_SEARXNG, Searxng } from './sources/searxng.ts'
import { LIVE_STEAMSPY, SteamSpy } from './sources/steamspy.ts'
import { MailServers } from './sources/mail-servers.ts'
import { Rdap } from './sources/rdap.ts'
import type { MetricsBySource } from './sources/source-metrics.ts'
import { LIVE_TWITCH, Twitch } from './sources/twitch.ts'
import { STAND_IN_CREDENTIALS, TwitchAccess, type Credentials } from './sources/twitch/access-token.ts'
import type { Runtime } from './sources/source-runtime.ts'

/** The outside of the service: where its sources are, and what they are called in answers. */
export interface ServiceDeps extends SourceUrls {
  readonly runtime: Runtime
  /** Counts what becomes of the questions to every source. */
  readonly records: MetricsBySource
  readonly crossrefMailto: string | undefined
  readonly sanctions: SanctionsOptions
  /** Undefined: what needs them is not served, or answers without its part. */
  readonly twitch: Credentials | undefined
  /** The first that is set is asked; undefined: nothing is searched for. */
  readonly search: SearchSettings
  /** Without the name of a model, none writes. */
  readonly model: {
    readonly baseUrl: string
    readonly apiKey: string | undefined
    readonly languageModel: string | undefined
  }
  /** To addresses that callers name. */
  readonly egress: Egress
  readonly dns: Dns
  readonly memories: Memories
  /** Set when stand-ins answer instead of the sources. */
  readonly standIn: boolean
}

/** Every handler of the shipped catalog by name; the compiler knows when one is missing. */
export function createHandlers(outside: ServiceDeps): Handlers {
  const {
    runtime,
    records,
    steamStore,
    steamApi,
    steamSpy: steamSpyUrl,
    egress,
    dns,
    rdapBootstrap,
  } = outside
  const gamestore = new Gamestore(
    { ...LIVE_GAMESTORE, storeUrl: steamStore, apiUrl: steamApi, ...sourceOf(outside, 'the game store') },
    runtime,
    records,
  )
  const steamSpy = new SteamSpy(
    { ...LIVE_STEAMSPY, baseUrl: steamSpyUrl, ...sourceOf(outside, 'SteamSpy') },
    runtime,
    records,
  )
  const access = new TwitchAccess(
    {
      baseUrl: outside.twitchId,
      credentials: outside.standIn ? STAND_IN_CREDENTIALS : outside.twitch,
      timeoutMs: LIVE_TWITCH.timeoutMs,
    },
    runtime,
    records.of('twitch'),
  )
  const twitch = new Twitch(
    { ...LIVE_TWITCH, baseUrl: outside.twitchApi, ...sourceOf(outside, 'Twitch') },
    access,
    runtime,
    records,
  )
  const igdb = new Igdb(
    { ...LIVE_IGDB, baseUrl: outside.igdb, ...sourceOf(outside, 'IGDB') },
    access,
    runtime,
    records,
  )
  const crossref = new Crossref(
    {
      ...LIVE_CROSSREF,
      baseUrl: outside.crossref,
      mailto: outside.crossrefMailto,
      ...sourceOf(outside, 'Crossref'),
    },
    runtime,
    records,
  )
  const datacite = new DataCite(
    { ...LIVE_DATACITE, baseUrl: outside.datacite, ...sourceOf(outside, 'DataCite') },
    runtime,
    records,
  )
  const doiResolver = new DoiResolver(
    { ...LIVE_DOI_RESOLVER, baseUrl: outside.doiResolver, ...sourceOf(outside, 'doi.org') },
    egress,
    records.of('doi'),
  )
  const model = modelOf(outside)
  /** What a stand-in would make up is worth less than what the text says: it writes only where nothing else can. */
  const author = outside.standIn ? undefined : model
  return {
    'bundle/app-dossier': appDossier(metadataOfApp(igdb)),
    'bundle/market-snapshot': marketSnapshot,
    'game/metadata': metadata(igdb),
    'gamestore/app': app(gamestore, steamSpy),
    'gamestore/deals': deals(gamestore),
    'gamestore/top-sellers': topSellers(gamestore),
    'memory/delete': deleteOwn(outside.memories),
    'memory/export': exportAll(outside.memories),
    'memory/search': search(outside.memories),
    'memory/stats': stats(outside.memories),
    'memory/write': write(outside.memories),
    ping,
    'research/extract-structured': extractStructured(model),
    'research/summarize': summarize(author),
    'research/web-research': webResearch({
      engine: engineOf(outside),
      egress,
      pages: { name: outside.standIn ? 'Sandbox stand-in for the web' : 'The pages under sources' },
      model: author,
    }),
    'streaming/hype': hype(twitch),
    'util/citation': citation({ crossref, datacite, doiResolver }),
    'util/email-verify': emailVerify({
      mailServers: new MailServers(dns, records.of('dns')),
      dns: { name: outside.standIn ? 'Sandbox name server' : 'Public DNS' },
    }),
    'util/extract': extract(egress),
    'services/quote': quote,
    'util/delivery-orderby': deliveryOrderby,
    'util/finid': finid,
    'util/guard': guard,
    'util/json': json,
    'util/mock': mock,
    'util/site-intel': siteIntel({ egress, dns, rdap: new Rdap(egress, rdapBootstrap, records.of('rdap')) }),
    'util/occasion': occasion,
    'util/platform-spec': platformSpec,
    'util/repurpose': repurpose,
    'util/sanctions': sanctions(
      new Sanctions(outside.sanctions, runtime, records),
      sourceOf(outside, 'the sanctions lists').source,
    ),
    'util/tokencost': tokencost,
    'util/workday': workday,
  }
}

function engineOf(outside: ServiceDeps): SearchEngine | undefined {
  const { searxngUrl, brave } = outside.search
  const { runtime, records } = outside
  const standIn = sourceOf(outside, 'a search engine')
  if (searxngUrl !== undefined)
    return new Searxng({ ...LIVE_SEARXNG, baseUrl: searxngUrl, ...standIn }, runtime, records)
  return brave === undefined ? undefined : new Brave({ ...LIVE_BRAVE, ...brave }, runtime, records)
}

function modelOf(outside: ServiceDeps): LanguageModel | undefined {
  const { baseUrl, apiKey, languageModel: model } = outside.model
  if (model === undefined) return undefined
  const standIn = sourceOf(outside, 'a language model')
  const options = {
    ...LIVE_MODEL,
    source: { name: `Language model ${model}` },
    baseUrl,
    apiKey,
    model,
    ...standIn,
  }
  return new LanguageModel(options, outside.runtime, outside.records)
}

function sourceOf({ standIn }: ServiceDeps, name: string): { readonly source?: Source } {
  return standIn ? { source: { name: `Sandbox stand-in for ${name}` } } : {}
}
