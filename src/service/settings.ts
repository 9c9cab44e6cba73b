import { isIP } from 'node:net'
import type { Variables } from 'ratecard/service'

/** The environment variables of this service. */
export interface Settings {
  readonly sources: SourceUrls
  /** Crossref answers requests faster that name an address it may write to. */
  readonly crossrefMailto: string | undefined
  /** Addresses with an optional port, instead of those of the system. */
  readonly dnsServers: readonly string[]
  /** Sockets that callers may reach though they are not public: `host:port`, for intranets and tests. */
  readonly egressAllow: readonly string[]
  readonly sanctions: SanctionsSettings
  /** Credentials of the operator's Twitch application, which also allow IGDB; undefined unless both are set. */
  readonly twitch: { readonly clientId: string; readonly clientSecret: string } | undefined
  /** PostgreSQL with pgvector for memories; undefined: embedded, in the data directory. */
  readonly databaseUrl: string | undefined
  readonly model: ModelSettings
  readonly search: SearchSettings
}

export interface SearchSettings {
  readonly searxngUrl: string | undefined
  /** Undefined unless there is a key. */
  readonly brave: { readonly baseUrl: string; readonly apiKey: string } | undefined
}

export interface SourceUrls {
  readonly steamStore: string
  readonly steamApi: string
  readonly steamSpy: string
  readonly twitchApi: string
  readonly twitchId: string
  readonly igdb: string
  readonly crossref: string
  readonly datacite: string
  /** Requested by way of the egress: one that is not public has to be in EGRESS_ALLOW. */
  readonly doiResolver: string
  /** IANA's list of registries, or another of its form. */
  readonly rdapBootstrap: string
}

export interface SanctionsSettings {
  /** Directory of the lists as files. */
  readonly directory: string
  /** URLs of the lists; a list without one is read only from its file in the directory. */
  readonly urls: Readonly<
    Partial<Record<'us_ofac_sdn' | 'us_ofac_cons' | 'un_sc' | 'uk_fcdo' | 'eu_fsf', string>>
  >
}

/** Any endpoint that is compatible with OpenAI's. */
export interface ModelSettings {
  readonly baseUrl: string
  readonly apiKey: string | undefined
  /** Undefined: no model writes. */
  readonly languageModel: string | undefined
  /** Undefined: English memories are found by the meaning that the installed model knows, others by their words. */
  readonly embeddingModel: string | undefined
}

const OFAC_URL = 'https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/SDN.XML'

export function readSettings(variables: Variables): Settings {
  for (const name of ['DATABASE_URL', 'EU_URL']) variables.conceal(name)
  return {
    sources: {
      steamStore: variables.url('STEAM_STORE_URL') ?? 'https://store.steampowered.com',
      steamApi: variables.url('STEAM_API_URL') ?? 'https://api.steampowered.com',
      steamSpy: variables.url('STEAMSPY_URL') ?? 'https://steamspy.com',
      twitchApi: variables.url('TWITCH_API_URL') ?? 'https://api.twitch.tv/helix',
      twitchId: variables.url('TWITCH_ID_URL') ?? 'https://id.twitch.tv',
      igdb: variables.url('IGDB_URL') ?? 'https://api.igdb.com/v4',
      crossref: variables.url('CROSSREF_URL') ?? 'https://api.crossref.org',
      datacite: variables.url('DATACITE_URL') ?? 'https://api.datacite.org',
      doiResolver: variables.url('DOI_URL') ?? 'https://doi.org',
      rdapBootstrap: variables.url('RDAP_URL') ?? 'https://data.iana.org/rdap/dns.json',
    },
    crossrefMailto: readMail(variables, 'CROSSREF_MAILTO'),
    dnsServers: readNameServers(variables, 'DNS_SERVER'),
    egressAllow: readSockets(variables, 'EGRESS_ALLOW'),
    sanctions: readSanctions(variables),
    twitch: readTwitch(variables),
    databaseUrl: readPostgres(variables, 'DATABASE_URL'),
    model: {
      baseUrl: variables.url('OPENAI_BASE_URL') ?? 'https://api.openai.com/v1',
      apiKey: variables.text('OPENAI_API_KEY'),
      languageModel: variables.text('LLM_MODEL'),
      embeddingModel: variables.text('EMBEDDING_MODEL'),
    },
    search: { searxngUrl: variables.url('SEARXNG_URL'), brave: readBrave(variables) },
  }
}

/** One list of OFAC's, which anyone may resell, is read by default: the others are an operator's choice. */
function readSanctions(variables: Variables): SanctionsSettings {
  const [un, uk, eu, more] = ['UN_URL', 'UK_URL', 'EU_URL', 'OFAC_CONS_URL'].map((name) =>
    variables.url(name),
  )
  return {
    directory: variables.text('SANCTIONS_DIR') ?? `${variables.text('DATA_DIR') ?? '.ratecard'}/sanctions`,
    urls: {
      us_ofac_sdn: variables.url('OFAC_URL') ?? OFAC_URL,
      ...(more !== undefined && { us_ofac_cons: more }),
      ...(un !== undefined && { un_sc: un }),
      ...(uk !== undefined && { uk_fcdo: uk }),
      ...(eu !== undefined && { eu_fsf: eu }),
    },
  }
}

function readTwitch(variables: Variables): Settings['twitch'] {
  const [clientId, clientSecret] = ['TWITCH_CLIENT_ID', 'TWITCH_CLIENT_SECRET'].map((name) =>
    variables.text(name),
  )
  return clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret }
}

function readBrave(variables: Variables): SearchSettings['brave'] {
  const baseUrl = variables.url('BRAVE_URL') ?? 'https://api.search.brave.com/res/v1'
  const apiKey = variables.text('BRAVE_API_KEY')
  return apiKey === undefined ? undefined : { baseUrl, apiKey }
}

function readPostgres(variables: Variables, name: string): string | undefined {
  const value = variables.text(name)
  if (value === undefined || (/^postgres(ql)?:\/\//i.test(value) && URL.canParse(value))) return value
  variables.problem(name, 'must be an address that starts with postgres:// or postgresql://')
  return undefined
}

function readMail(variables: Variables, name: string): string | undefined {
  const value = variables.text(name)
  if (value === undefined || /^[^\s@<>]+@[^\s@<>]+\.[^\s@<>]+$/.test(value)) return value
  variables.problem(name, 'must be an e-mail address')
  return undefined
}

function readNameServers(variables: Variables, name: string): string[] {
  return variables.list(name).flatMap((entry) => {
    const [, host = ''] = /^\[?([^\]]*?)\]?(?::\d{1,5})?$/.exec(entry) ?? []
    if (isIP(host) !== 0 || isIP(entry) !== 0) return [entry]
    variables.problem(name, 'must be addresses of name servers, separated by commas: 192.0.2.53:5353')
    return []
  })
}

/** In the spelling of the URL standard, IPv6 without brackets. */
function readSockets(variables: Variables, name: string): string[] {
  return variables.list(name).flatMap((entry) => {
    const [, host, port] = /^([^\s/@?#]+):(\d{1,5})$/.exec(entry) ?? []
    if (port !== undefined && URL.canParse(`http://${entry}`))
      return `${new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, '')}:${Number(port)}`
    variables.problem(name, 'must be hosts with a port, separated by commas: intranet.corp:8080')
    return []
  })
}
