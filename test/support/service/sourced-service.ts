import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startStandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { startDns } from '../../../src/service/stand-ins/web/dns.ts'
import { REGISTERED } from '../../../src/service/stand-ins/web/sites.ts'
import { zoneOf } from '../../../src/service/stand-ins/web/zones.ts'
import { STAND_IN_CREDENTIALS } from '../../../src/service/sources/twitch/access-token.ts'
import { isJsonObject, type JsonObject } from '../../../src/engine/base/json.ts'
import { listening } from '../http.ts'
import { startRedis } from '../redis.ts'
import { addressOf, randomKey } from '../payment.ts'
import { startServer, type RunningServer } from '../server.ts'
import type { Shop } from '../shop.ts'
import { fewCategories, partsOf, spoil, spoilDns, spoilText, type Change } from './malformed.ts'

const CATALOG = new URL('../../../catalog.yaml', import.meta.url).pathname
const TOKEN = 'the-token-of-the-metrics'
/** Sites that pages are read from in turn: one site is asked only so often. */
const SITES = 40

export type Engine = 'searxng' | 'brave'
/** Which answers are changed, and which are of no use, so that the server asks for those. */
export interface Spoiled {
  readonly addresses: RegExp
  readonly down?: RegExp | undefined
}

/** A server of the shipped catalog with sources of its own, whose answers can be changed. */
export interface SourcedService {
  readonly url: () => string
  /** Changes answers from now on. */
  spoil(which: Spoiled, made: readonly Change[]): void
  /** How many answers were changed. */
  readonly reached: () => number
  /** Empties the cache and turns to the next site. */
  forget(): Promise<void>
  /** A site that pages are read from now. */
  readonly site: () => string
  /** Starts the server again, which then holds no list and no log-in. */
  restart(engine: Engine): Promise<void>
  /** Puts a sanctions list, changed, where a server looks for it at each question, and the one that none goes without. */
  placeList(name: ListName): void
  /** Stops the server before the test is over. */
  stop(): Promise<void>
  /** Rows and fields that were skipped, by source: in `/status.json` and in the metrics. */
  readonly skipped: () => Promise<{ readonly status: number; readonly metrics: number }>
}

/** Starts a server that is paid on the chain of the shop, with a ledger and a signer of its own. */
export async function openSourcedService(
  t: { teardown(work: () => unknown): void },
  { chain, node, baseUrl, payTo }: Pick<Shop, 'chain' | 'node' | 'baseUrl' | 'payTo'>,
): Promise<SourcedService> {
  const settler = randomKey()
  await chain.setGas(addressOf(settler), 10n ** 18n)
  let active: (Spoiled & { readonly made: readonly Change[] }) | undefined
  let [reached, turns] = [0, 0]
  const changesOf = (address: string): readonly Change[] => {
    if (active === undefined || !active.addresses.test(address)) return []
    reached += 1
    return active.made
  }
  const changed = <Value>(
    address: string,
    value: Value,
    change: (value: Value, change: Change) => Value,
  ): Value => changesOf(address).reduce(change, value)
  const changedJson = (address: string, body: unknown): unknown =>
    active?.down?.test(address) === true ? {} : changed(address, body, spoil)
  const site = await listening(
    createServer(({ url = '/' }, response) => {
      const json = (body: object, type = 'application/rdap+json'): unknown =>
        response
          .writeHead(200, { 'content-type': type })
          .end(JSON.stringify(changedJson(url, structuredClone(body))))
      if (url === '/rdap/dns.json')
        return json({ services: [[['com', 'net'], [`http://127.0.0.1:${port}/rdap/`]]] })
      if (url.startsWith('/rdap/domain/')) return json(REGISTERED)
      if (url === `/doi/${encodeURIComponent(WORK.DOI)}`)
        return json(WORK, 'application/vnd.citationstyles.csl+json')
      if (url.startsWith('/brave/'))
        return json({ type: 'search', web: { results: hits() } }, 'application/json')
      if (url === `/${FIRST_LIST}`) return response.end(spoilText(LISTS[FIRST_LIST], changesOf(url)))
      if (url === '/robots.txt') return response.writeHead(404).end()
      return response
        .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
        .end(spoilText(PAGE, changesOf(url)))
    }),
  )
  t.teardown(site.close)
  const { port } = new URL(site.url)
  const pages = (turn: number): string => `http://page${turn % SITES}.com:${port}`
  const hits = (): readonly JsonObject[] =>
    ['/one', '/two'].map((path) => ({ url: pages(turns) + path, title: 'Charts' }))
  const standIns = await startStandIns({
    spoil: (address, body) => {
      if (address === '/searxng/search') return changedJson(address, { results: hits() })
      if (address === '/model/chat/completions') {
        const written = citing(body)
        const inner = changed('/model/written', written, (value, made) => objectOf(spoil(value, made)))
        return changedJson(address, completion(body, JSON.stringify(inner)))
      }
      return changedJson(address, fewCategories(address, body))
    },
  })
  t.teardown(standIns.stop)
  const dns = await startDns(
    (name) => {
      if (/^page\d+\.com$/.test(name)) return { a: [Buffer.from([127, 0, 0, 1])] }
      const known = name.replace(/\bmail\d+\.com$/, 'example.com')
      return known.endsWith('example.com') ? zoneOf(known) : 'failing'
    },
    (name, answer, end) => changed(`/dns/${name}`, answer, (value, made) => spoilDns(value, end, made)),
  )
  t.teardown(dns.stop)
  const cache = await startRedis({ appendonly: 'no' })
  t.teardown(() => cache.stop())
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  let lists = ''
  const start = async (engine: Engine): Promise<RunningServer> => {
    lists = join(dataDir, `lists-${(turns += 1)}`)
    mkdirSync(lists)
    const env = {
      CATALOG,
      HOST: '127.0.0.1',
      BASE_URL: baseUrl,
      PAY_TO: payTo,
      SETTLER_PRIVATE_KEY: settler,
      RPC_URL_8453: node.url,
      // Emptied between cases: earlier answers must not be served.
      CACHE_REDIS_URL: cache.url,
      TRUST_PROXY: '1',
      METRICS_TOKEN: TOKEN,
      STEAM_STORE_URL: `${standIns.url}/steam-store`,
      STEAM_API_URL: `${standIns.url}/steam-api`,
      STEAMSPY_URL: `${standIns.url}/steamspy`,
      TWITCH_API_URL: `${standIns.url}/twitch-api`,
      TWITCH_ID_URL: `${standIns.url}/twitch-id`,
      IGDB_URL: `${standIns.url}/igdb`,
      TWITCH_CLIENT_ID: STAND_IN_CREDENTIALS.clientId,
      TWITCH_CLIENT_SECRET: STAND_IN_CREDENTIALS.clientSecret,
      CROSSREF_URL: `${standIns.url}/crossref`,
      DATACITE_URL: `${standIns.url}/datacite`,
      DOI_URL: `http://127.0.0.1:${port}/doi`,
      RDAP_URL: `http://127.0.0.1:${port}/rdap/dns.json`,
      DNS_SERVER: dns.server,
      OFAC_URL: `http://127.0.0.1:${port}/${FIRST_LIST}`,
      SANCTIONS_DIR: lists,
      ...(engine === 'searxng'
        ? { SEARXNG_URL: `${standIns.url}/searxng` }
        : { BRAVE_URL: `http://127.0.0.1:${port}/brave`, BRAVE_API_KEY: 'key' }),
      OPENAI_BASE_URL: `${standIns.url}/model`,
      LLM_MODEL: 'stand-in',
      EMBEDDING_MODEL: 'stand-in',
      EGRESS_ALLOW: [
        new URL(standIns.url).host,
        `127.0.0.1:${port}`,
        ...Array.from({ length: SITES }, (_, place) => new URL(pages(place)).host),
      ].join(','),
    }
    return startServer({ env, dataDir })
  }
  let server = await start('searxng')
  t.teardown(() => server.stop())
  return {
    url: () => server.url,
    spoil: (which, made) => {
      active = { ...which, made }
    },
    reached: () => reached,
    forget: async () => {
      turns += 1
      await cache.command('FLUSHALL')
    },
    site: () => pages(turns),
    restart: async (engine) => {
      await server.stop()
      server = await start(engine)
    },
    placeList: (name) => {
      const placed = readdirSync(lists)
      for (const other of placed) if (other !== FIRST_LIST) rmSync(join(lists, other))
      if (name !== FIRST_LIST && !placed.includes(FIRST_LIST))
        writeFileSync(join(lists, FIRST_LIST), LISTS[FIRST_LIST].join(''))
      writeFileSync(join(lists, name), spoilText(LISTS[name], changesOf(`/${name}`)))
    },
    stop: async () => {
      await server.stop()
    },
    skipped: async () => {
      const status = (await (await fetch(`${server.url}/status.json`)).json()) as {
        readonly sources: readonly { readonly skipped: number }[]
      }
      const headers = { authorization: `Bearer ${TOKEN}` }
      const metrics = await (await fetch(`${server.url}/metrics`, { headers })).text()
      const lines = metrics.match(/^ratecard_source_skipped_total\{source=".+",field=".+"\} \d+$/gm) ?? []
      return {
        status: status.sources.reduce((sum, { skipped }) => sum + skipped, 0),
        metrics: lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0),
      }
    },
  }
}

const SAID = 'Nine Lanterns Deep sold best in Japan last week, ahead of everything else.'
const PAGE = partsOf(`<title>Charts</title><main><p>${SAID} ${SAID} ${SAID}</p></main>`)
/** As agencies other than Crossref and DataCite describe a work. */
const WORK = {
  type: 'article-journal',
  DOI: '10.9999/lamps.7',
  title: 'Lamps of the far north',
  author: [
    { given: 'Ada', family: 'Quill' },
    { given: 'Otto', family: 'Reed' },
  ],
  'container-title': 'Annals of Lamplighting',
  publisher: 'Wexmire University Press',
  volume: '12',
  issue: 3,
  page: '17-29',
  issued: { 'date-parts': [[2019, 4, 2]] },
}

/** One that a server is never without. */
const FIRST_LIST = 'us_ofac_sdn.xml'
/** The name that the test asks for, among so many that a server accepts the list as complete. */
const namesOf = (length: number): readonly string[] =>
  Array.from({ length }, (_, place) => (place === 17 ? 'MAHAN AIR' : `INVENTED ${place}`))
/** The lists in the forms of their publishers, by the names of their files. */
const LISTS = {
  'us_ofac_sdn.xml': partsOf(
    [
      '<?xml version="1.0" encoding="utf-8"?><sdnList xmlns="https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/XML">',
      '<publshInformation><Publish_Date>11/18/2026</Publish_Date><Record_Count>10050</Record_Count></publshInformation>',
      ...namesOf(10_050).map(
        (name, place) =>
          `<sdnEntry><uid>${place + 1}</uid><lastName>${name}</lastName><sdnType>Entity</sdnType><programList><program>SDGT</program></programList></sdnEntry>`,
      ),
      '</sdnList>',
    ].join('\n'),
  ),
  'un_sc.xml': partsOf(
    [
      '<CONSOLIDATED_LIST dateGenerated="2026-11-17T00:00:09.554Z"><INDIVIDUALS/><ENTITIES>',
      ...namesOf(520).map(
        (name, place) =>
          `<ENTITY><DATAID>${place + 1}</DATAID><FIRST_NAME>${name}</FIRST_NAME><UN_LIST_TYPE>DRC</UN_LIST_TYPE><REFERENCE_NUMBER>CDe.${place}</REFERENCE_NUMBER></ENTITY>`,
      ),
      '</ENTITIES></CONSOLIDATED_LIST>',
    ].join('\n'),
  ),
  'uk_fcdo.csv': partsOf(
    [
      'Report Date: 14-Nov-2026',
      'Last Updated,Unique ID,Name 6,Name type,Regime Name,Designation Type,D.O.B',
      ...namesOf(2050).map((name, place) => `14/11/2026,TST${place},${name},Primary Name,Iran,Entity,`),
    ].join('\n'),
    /([,\n])/,
  ),
  'eu_fsf.xml': partsOf(
    [
      '<export xmlns="http://eu.europa.ec/fpi/fsd/export" generationDate="2026-11-16T15:10:02.000+01:00">',
      ...namesOf(1550).map(
        (name, place) =>
          `<sanctionEntity euReferenceNumber="EU.${place}.1" logicalId="${place + 1}"><regulation programme="IRN"/><subjectType code="enterprise" classificationCode="E"/><nameAlias wholeName="${name}" strong="true"/></sanctionEntity>`,
      ),
      '</export>',
    ].join('\n'),
  ),
} as const
export type ListName = keyof typeof LISTS

/** What the stand-in wrote, as a model writes that cites its pages. */
function citing(body: unknown): JsonObject {
  const [choice] = isJsonObject(body) && Array.isArray(body['choices']) ? body['choices'] : []
  const content = objectOf(objectOf(choice)['message'])['content']
  const written = objectOf(typeof content === 'string' ? JSON.parse(content) : undefined)
  return 'brief' in written ? { brief: `${SAID} [1]`, claims: [{ text: SAID, source: 1 }] } : written
}

function completion(body: unknown, content: string): JsonObject {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
  return { ...objectOf(body), choices }
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}
