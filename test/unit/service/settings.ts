import t from 'tap'
import { readEnv } from '../../../src/env.ts'
import { EnvError } from '../../../src/env/env-error.ts'
import { service } from '../../../src/service/index.ts'
import type { Settings } from '../../../src/service/settings.ts'

function settings(variables: Record<string, string>): Settings {
  return readEnv(variables, service).service as Settings
}

function problems(variables: Record<string, string>): readonly string[] {
  try {
    settings(variables)
    return []
  } catch (fault) {
    if (fault instanceof EnvError) return fault.problems
    throw fault
  }
}

t.test('gives every unset variable its default', async (t) => {
  t.strictSame(settings({}), {
    sources: {
      steamStore: 'https://store.steampowered.com',
      steamApi: 'https://api.steampowered.com',
      steamSpy: 'https://steamspy.com',
      twitchApi: 'https://api.twitch.tv/helix',
      twitchId: 'https://id.twitch.tv',
      igdb: 'https://api.igdb.com/v4',
      crossref: 'https://api.crossref.org',
      datacite: 'https://api.datacite.org',
      doiResolver: 'https://doi.org',
      rdapBootstrap: 'https://data.iana.org/rdap/dns.json',
    },
    crossrefMailto: undefined,
    dnsServers: [],
    sanctions: {
      directory: '.ratecard/sanctions',
      urls: {
        us_ofac_sdn: 'https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/SDN.XML',
      },
    },
    twitch: undefined,
    databaseUrl: undefined,
    model: {
      baseUrl: 'https://api.openai.com/v1',
      apiKey: undefined,
      languageModel: undefined,
      embeddingModel: undefined,
    },
    search: { searxngUrl: undefined, brave: undefined },
    egressAllow: [],
  })
})

t.test('applies every variable, and hides those with a secret', async (t) => {
  const variables = {
    DATABASE_URL: 'postgres://memory:word@store.example/memories',
    OPENAI_BASE_URL: 'http://model.example/v1/',
    OPENAI_API_KEY: 'key of the model',
    LLM_MODEL: 'writer',
    EMBEDDING_MODEL: 'embedder',
    SEARXNG_URL: 'http://search.example',
    BRAVE_URL: 'https://brave.example',
    BRAVE_API_KEY: 'key of the search',
    STEAM_STORE_URL: 'https://store.example/',
    STEAM_API_URL: 'https://api.example',
    STEAMSPY_URL: 'https://spy.example',
    TWITCH_API_URL: 'https://helix.example/',
    TWITCH_ID_URL: 'https://id.example',
    IGDB_URL: 'https://igdb.example/v4/',
    CROSSREF_URL: 'https://crossref.example/',
    CROSSREF_MAILTO: 'works@example.com',
    DATACITE_URL: 'https://datacite.example',
    DOI_URL: 'https://doi.example',
    RDAP_URL: 'https://rdap.example/dns.json',
    DNS_SERVER: '192.0.2.53, [2001:db8::53]:5353',
    TWITCH_CLIENT_ID: 'our-client',
    TWITCH_CLIENT_SECRET: 'our-secret',
    SANCTIONS_DIR: '/var/lib/lists',
    OFAC_URL: 'https://ofac.example/SDN.CSV',
    OFAC_CONS_URL: 'https://ofac.example/CONS_PRIM.CSV',
    UN_URL: 'https://un.example/list.xml',
    UK_URL: 'https://uk.example/list.csv',
    EU_URL: 'https://eu.example/list?token=of-ours',
  }
  t.strictSame(settings(variables), {
    sources: {
      steamStore: 'https://store.example',
      steamApi: 'https://api.example',
      steamSpy: 'https://spy.example',
      twitchApi: 'https://helix.example',
      twitchId: 'https://id.example',
      igdb: 'https://igdb.example/v4',
      crossref: 'https://crossref.example',
      datacite: 'https://datacite.example',
      doiResolver: 'https://doi.example',
      rdapBootstrap: 'https://rdap.example/dns.json',
    },
    crossrefMailto: 'works@example.com',
    dnsServers: ['192.0.2.53', '[2001:db8::53]:5353'],
    sanctions: {
      directory: '/var/lib/lists',
      urls: {
        us_ofac_sdn: 'https://ofac.example/SDN.CSV',
        us_ofac_cons: 'https://ofac.example/CONS_PRIM.CSV',
        un_sc: 'https://un.example/list.xml',
        uk_fcdo: 'https://uk.example/list.csv',
        eu_fsf: 'https://eu.example/list?token=of-ours',
      },
    },
    twitch: { clientId: 'our-client', clientSecret: 'our-secret' },
    databaseUrl: 'postgres://memory:word@store.example/memories',
    model: {
      baseUrl: 'http://model.example/v1',
      apiKey: 'key of the model',
      languageModel: 'writer',
      embeddingModel: 'embedder',
    },
    search: {
      searxngUrl: 'http://search.example',
      brave: { baseUrl: 'https://brave.example', apiKey: 'key of the search' },
    },
    egressAllow: [],
  })
  const { hide, mcpUrls } = readEnv({ ...variables, MEM_URL: 'https://mem.example' }, service)
  t.equal(hide('asked https://eu.example/list?token=of-ours'), 'asked [EU_URL]', 'it holds a token')
  t.equal(hide('postgres://memory:word@store.example/memories'), '[DATABASE_URL]')
  t.strictSame(mcpUrls, { memory: 'https://mem.example' })
})

t.test('reports every error of its variables together with those of the framework', async (t) => {
  const wrong = {
    PORT: '70000',
    STEAM_STORE_URL: 'store.example',
    EGRESS_ALLOW: 'intranet.corp',
    CROSSREF_MAILTO: 'works at example.com',
    DNS_SERVER: 'ns.example.com:53',
    DATABASE_URL: 'mysql://store.example',
  }
  const named = new Set(problems(wrong).map((line) => line.split(' must ')[0]))
  t.same(named, new Set(Object.keys(wrong)))
})

t.test('opens an allowed host in every spelling', async (t) => {
  const allowed = (text: string) => settings({ EGRESS_ALLOW: text }).egressAllow
  t.same(allowed('Wiki.Corp:080, 127.1:8080,[::1]:443,,'), ['wiki.corp:80', '127.0.0.1:8080', '::1:443'])
  t.same(allowed(''), [])
  for (const text of [
    'wiki.corp',
    'http://wiki.corp:80',
    'a@wiki.corp:80',
    'wiki.corp:99999',
    'wiki corp:80',
    '*:80/x',
  ])
    t.equal(problems({ EGRESS_ALLOW: text }).length, 1, text)
})
