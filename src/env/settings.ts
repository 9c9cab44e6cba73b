export interface FacilitatorAccess {
  readonly url: string
  readonly token: string | undefined
}

/** Where the companion servers live: each endpoint is `<base>/mcp`. */
export const MCP_URL_NAMES = { game: 'MCP_URL', memory: 'MEM_URL', tools: 'TOOLS_URL' } as const

/** Any endpoint that speaks as OpenAI does. */
export interface ModelSettings {
  readonly baseUrl: string
  readonly apiKey: string | undefined
  /** Undefined: no model writes. */
  readonly languageModel: string | undefined
  /** Undefined: memories are found by their words. */
  readonly embeddingModel: string | undefined
}

export interface SearchSettings {
  readonly searxngUrl: string | undefined
  readonly braveApiKey: string | undefined
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Metrics are served on a port of their own, or beside everything else to those who have the token. */
export interface MetricsSettings {
  readonly port: number | undefined
  readonly token: string | undefined
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
  /** Asked by way of the egress: one that is not public has to stand in EGRESS_ALLOW. */
  readonly doiResolver: string
  /** IANA's list of registries, or another of its form. */
  readonly rdapBootstrap: string
}

export interface SanctionsSettings {
  /** Where the lists stand as files. */
  readonly directory: string
  /** Where they are fetched from; a list without an address is read only when its file stands in the directory. */
  readonly urls: Readonly<
    Partial<Record<'us_ofac_sdn' | 'us_ofac_cons' | 'un_sc' | 'uk_fcdo' | 'eu_fsf', string>>
  >
}

/** What a catalog names as a credential is secret too, whatever it is called. */
export const SECRET_NAME = /KEY|TOKEN|SECRET|PASSWORD|^RPC_URL_|^(CACHE_)?REDIS_URL$|^DATABASE_URL$|^EU_URL$/i
/** Hiding less than this would tear holes into words. */
const SHORTEST_SECRET = 6

/** The text with the names of variables in the place of values that nobody may read. */
export function hide(text: string, secrets: ReadonlyMap<string, string | undefined>): string {
  return [...secrets].reduce(
    (shown, [name, value = '']) =>
      value
        .split(',')
        .map((part) => part.trim().replace(/^0x|\/+$/g, ''))
        .filter(({ length }) => length >= SHORTEST_SECRET)
        .reduce((rest, part) => rest.replaceAll(part, `[${name}]`), shown),
    text,
  )
}
