import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import type { Fault } from '../../../../src/service/stand-ins/fault.ts'
import { startStandIns } from '../../../../src/service/stand-ins/stand-ins.ts'
import { writeShop } from '../../../support/catalogs.ts'
import { MAIN, nodeCommand } from '../../../support/server.ts'

const faults: Record<string, Fault> = {}
let isBare = false
const standIns = await startStandIns({
  faults,
  // As if the store no longer said on what its games run.
  spoil: (_address, body) =>
    isBare ? JSON.parse(JSON.stringify(body).replaceAll('"platforms":', '"runs_on":')) : body,
})
t.teardown(() => standIns.stop())

/** Runs the built program against the stand-ins; never rejects. */
async function examine(
  ...flags: readonly string[]
): Promise<{ readonly code: number; readonly out: string }> {
  const env = {
    PATH: process.env['PATH'] ?? '',
    STEAM_STORE_URL: `${standIns.url}/steam-store`,
    STEAM_API_URL: `${standIns.url}/steam-api`,
    STEAMSPY_URL: `${standIns.url}/steamspy`,
    CROSSREF_URL: `${standIns.url}/crossref`,
    DATACITE_URL: `${standIns.url}/datacite`,
    DOI_URL: `${standIns.url}/doi`,
    EGRESS_ALLOW: new URL(standIns.url).host,
    SEARXNG_URL: `${standIns.url}/searxng`,
    OPENAI_BASE_URL: `${standIns.url}/model`,
    LLM_MODEL: 'stand-in',
  }
  try {
    const { stdout } = await promisify(execFile)(...nodeCommand([MAIN, 'doctor', ...flags]), { env })
    return { code: 0, out: stdout }
  } catch (fault) {
    if (!(fault instanceof Error && 'code' in fault && 'stdout' in fault)) throw fault
    return { code: Number(fault.code), out: String(fault.stdout) }
  }
}

t.test('shows which routes answer and which wait for credentials', async (t) => {
  const { out } = await examine()
  t.match(out, /^\/paid\/gamestore\/top-sellers +answers$/m)
  t.match(out, /^\/paid\/gamestore\/app\/\{appid\} +answers$/m)
  t.match(out, /^\/paid\/streaming\/hype +not served +not_configured: /m)
  t.match(out, /^Steam storefront +\d+ +0 +0 +0 +unknown$/m)
  t.notMatch(out, /FIELD NOT AS EXPECTED/)
})

t.test('shows only sources that the catalog uses', async (t) => {
  const shop = writeShop(t, '  /paid/greet: { price: 0.01, summary: Greets }\n')
  const { code, out } = await examine('--catalog', shop.catalog)
  t.equal(code, 0)
  t.match(out, /^\/paid\/greet +answers *$/m)
  t.notMatch(out, /SOURCE|Steam|Twitch/)
})

t.test('names the source that has changed its format and the field, and exits with 1', async (t) => {
  faults['/IStoreBrowseService/GetItems/v1/'] = 'drift'
  t.teardown(() => {
    delete faults['/IStoreBrowseService/GetItems/v1/']
  })
  const { code, out } = await examine()
  t.equal(code, 1)
  t.match(out, /^Steam Web API +\d+ +\d+ +[1-9]\d* +0 +unknown$/m)
  t.match(out, /^Steam Web API +response: required +[1-9]/m)
})

t.test(
  'asks every source once with --sources, the search engine and the model too, and lists the fields they miss',
  async (t) => {
    const before = new Map(standIns.asked)
    const asked = (address: string): number => (standIns.asked.get(address) ?? 0) - (before.get(address) ?? 0)
    isBare = true
    t.teardown(() => {
      isBare = false
    })
    const { out } = await examine('--sources')
    t.match(out, /^SOURCE +ASKED +FAILED +OTHER FORM +SKIPPED +RESALE$/m)
    for (const name of [
      'Steam storefront',
      'Steam Web API',
      'SteamSpy',
      'Crossref',
      'DataCite',
      'SearXNG',
      'The language model',
    ])
      t.match(out, new RegExp(`^${name}.* +[1-9]\\d* +0 +0 +\\d+ +\\w+$`, 'm'))
    t.match(out, /^Twitch API +0 +0 +0 +0 +needs_agreement$/m, 'not configured')
    t.match(out, /^SOURCE +FIELD NOT AS EXPECTED +TIMES$/m)
    t.match(out, /^Steam Web API +response\/store_items\/#\/platforms: absent +[1-9]/m)
    t.match(out, /^Steam storefront +#\/data\/platforms: absent +[1-9]/m)
    t.notMatch(out, /^\/paid\/\S+ +answers$/m, 'routes that answer are left out')
    t.equal(asked('/crossref/works/10.1038%2Fnature14539'), 1)
    t.ok(Number(/^.*doi\.org.* +([1-9]\d*) +0 +0 +0 +\w+$/m.exec(out)?.[1]) > 0, 'doi.org')
    t.match(out, /^util\/citation \{"doi":"10\.5281\/.* fails +not_found: /m, 'unknown to the stand-ins')
    t.equal(asked('/searxng/search'), 1)
    t.equal(asked('/steam-api/IStoreQueryService/Query/v1/'), 0, 'one question tells enough')
  },
)
