import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startStandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { startDns } from '../../../src/service/stand-ins/web/dns.ts'
import { REGISTERED } from '../../../src/service/stand-ins/web/sites.ts'
import { STAND_IN_CREDENTIALS } from '../../../src/service/sources/twitch/access.ts'
import { isJsonObject, type JsonObject } from '../../../src/engine/json.ts'
import { listening } from '../../support/http.ts'
import { startRedis } from '../../support/redis.ts'
import { addressOf, randomKey } from '../../support/payment.ts'
import { startServer, type RunningServer } from '../../support/server.ts'
import type { Shop } from '../../support/shop.ts'
import { fewCategories, partsOf, spoil, spoilText, type Change } from './malformed.ts'

const CATALOG = new URL('../../../catalog.yaml', import.meta.url).pathname
const TOKEN = 'the-token-of-the-metrics'
/** Sites that pages are read from in turn: one site is asked only so often. */
const SITES = 40
/** Length from which the server accepts a list as complete. */
const LISTED = 10_050

/** A server of the shipped catalog with sources of its own, whose answers can be changed. */
export interface SourcedService {
  readonly url: () => string
  /** Changes answers at these addresses from now on. */
  spoil(addresses: RegExp, made: readonly Change[]): void
  /** How many answers were changed. */
  readonly reached: () => number
  /** Empties the cache and turns to the next site. */
  forget(): Promise<void>
  /** Starts the server again without the lists it has read. */
  restart(): Promise<void>
  /** Puts the sanctions list, changed, where a server that has none looks for it at each question. */
  placeList(): void
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
  let active: { readonly addresses: RegExp; readonly made: readonly Change[] } | undefined
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
  const site = await listening(
    createServer(({ url = '/' }, response) => {
      const json = (body: object): unknown =>
        response
          .writeHead(200, { 'content-type': 'application/rdap+json' })
          .end(JSON.stringify(changed(url, structuredClone(body), spoil)))
      if (url === '/rdap/dns.json')
        return json({ services: [[['com', 'net'], [`http://127.0.0.1:${port}/rdap/`]]] })
      if (url.startsWith('/rdap/domain/')) return json(REGISTERED)
      if (url === '/sdn.xml') return response.end(spoilText(LIST, changesOf(url)))
      if (url === '/robots.txt') return response.writeHead(404).end()
      return response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(PAGE)
    }),
  )
  t.teardown(site.close)
  const { port } = new URL(site.url)
  const pages = (turn: number): string => `http://page${turn % SITES}.com:${port}`
  const standIns = await startStandIns({
    spoil: (address, body) => {
      if (address === '/searxng/search') {
        const results = ['/one', '/two'].map((path) => ({ url: pages(turns) + path, title: 'Charts' }))
        return changed<unknown>(address, { results }, spoil)
      }
      if (address === '/model/chat/completions') {
        const written = citing(body)
        const inner = changed('/model/written', written, (value, made) => objectOf(spoil(value, made)))
        return changed<unknown>(address, completion(body, JSON.stringify(inner)), spoil)
      }
      return changed(address, fewCategories(address, body), spoil)
    },
  })
  t.teardown(standIns.stop)
  const dns = await startDns((name) =>
    /^page\d+\.com$/.test(name) ? { a: [Buffer.from([127, 0, 0, 1])] } : 'failing',
  )
  t.teardown(dns.stop)
  const cache = await startRedis({ appendonly: 'no' })
  t.teardown(() => cache.stop())
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  let lists = ''
  const start = async (): Promise<RunningServer> => {
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
      DOI_URL: `${standIns.url}/doi`,
      RDAP_URL: `http://127.0.0.1:${port}/rdap/dns.json`,
      DNS_SERVER: dns.server,
      OFAC_URL: `http://127.0.0.1:${port}/sdn.xml`,
      SANCTIONS_DIR: lists,
      SEARXNG_URL: `${standIns.url}/searxng`,
      OPENAI_BASE_URL: `${standIns.url}/model`,
      LLM_MODEL: 'stand-in',
      EGRESS_ALLOW: [
        new URL(standIns.url).host,
        `127.0.0.1:${port}`,
        ...Array.from({ length: SITES }, (_, place) => new URL(pages(place)).host),
      ].join(','),
    }
    return startServer({ env, dataDir })
  }
  let server = await start()
  t.teardown(() => server.stop())
  return {
    url: () => server.url,
    spoil: (addresses, made) => {
      active = { addresses, made }
    },
    reached: () => reached,
    forget: async () => {
      turns += 1
      await cache.command('FLUSHALL')
    },
    restart: async () => {
      await server.stop()
      server = await start()
    },
    placeList: () => writeFileSync(join(lists, 'us_ofac_sdn.xml'), spoilText(LIST, changesOf('/sdn.xml'))),
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
const PAGE = `<title>Charts</title><main><p>${SAID} ${SAID} ${SAID}</p></main>`

/** OFAC's list in its form and length, with one name that the test asks for. */
const LIST = partsOf(
  [
    '<?xml version="1.0" encoding="utf-8"?><sdnList xmlns="https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/XML">',
    `<publshInformation><Publish_Date>11/18/2026</Publish_Date><Record_Count>${LISTED}</Record_Count></publshInformation>`,
    ...Array.from({ length: LISTED }, (_, place) => {
      const name = place === 17 ? 'MAHAN AIR' : `INVENTED ${place}`
      return `<sdnEntry><uid>${place + 1}</uid><lastName>${name}</lastName><sdnType>Entity</sdnType><programList><program>SDGT</program></programList></sdnEntry>`
    }),
    '</sdnList>',
  ].join('\n'),
)

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
