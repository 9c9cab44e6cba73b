import { isAddress } from '../base/address.ts'
import type { Observe } from '../base/access-record.ts'
import { didYouMean } from '../catalog/issue.ts'
import type { PaymentConfig } from './compose.ts'
import type { HandlerMap } from '../handler.ts'
import { findNetwork, NETWORKS } from '../base/networks.ts'
import type { SettingNames } from '../payment/setting-names.ts'
import type { CdpCredentials } from '../x402/facilitators/cdp-token.ts'
import type { OpenScheme } from '../x402/scheme.ts'
import type { CatalogPlace } from './catalog-thread.ts'

/** What {@link createRatecard} is given. */
export interface RatecardOptions {
  /** Path of the catalog file, or its text; files that a text names are read from the working directory. */
  readonly catalog: CatalogPlace
  /**
   * Origin under which buyers reach the service, such as `https://api.example.com`. It is part of every 402 and document,
   * and has no path: the service is mounted at the root of its host.
   */
  readonly baseUrl: string
  /** Handlers by the name they have in the catalog. Routes with `upstream` need none. */
  readonly handlers?: HandlerMap | undefined
  /** How buyers pay. A catalog without paid routes needs none. */
  readonly payments?: PaymentOptions | undefined
  /**
   * Where payments are recorded: `redis://…` or `rediss://…`, shared by all processes with the same payee. Default: an
   * LMDB store in `dataDir`, for the processes of one machine.
   */
  readonly ledger?: string | undefined
  /** Where answers are cached: `redis://…` or `rediss://…`. Default: the memory of this process. */
  readonly cache?: string | undefined
  /** Folder for data on this machine. Default: `.ratecard`. */
  readonly dataDir?: string | undefined
  /** Credentials that the catalog refers to by name, as a map such as `process.env`, or as a function. Default: none. */
  readonly secrets?: Secrets | undefined
  /** Takes warnings and errors. Default: `console`. */
  readonly logger?: Logger | undefined
  /** Called once for each request that has been answered: for an access log or metrics. */
  readonly onRequest?: Observe | undefined
  /** Origins of MCP servers by their name in the catalog. Default: `/mcp/NAME` below `baseUrl`. */
  readonly mcpUrls?: Readonly<Record<string, string>> | undefined
  /** Origins of other sites whose pages may call MCP servers; `*` allows all. Default: only the service's own. */
  readonly mcpOrigins?: readonly string[] | undefined
  /** Whether `X-Forwarded-For` contains the caller's address: true behind a reverse proxy only. Default: false. */
  readonly trustProxy?: boolean | undefined
  /** Sources of time, randomness and HTTP requests; for tests. Default: those of the machine. */
  readonly runtime?: Partial<RuntimeOptions> | undefined
}

/** The protocols that buyers pay with, as far as the catalog offers them. */
export interface PaymentOptions {
  readonly x402?: X402Options | undefined
  readonly mpp?: MppOptions | undefined
}

/**
 * x402 v2, scheme `exact`. A network is offered when it can settle: either `facilitators` are given, or an RPC URL for it
 * and `signerKeys`.
 */
export interface X402Options {
  /** Address that receives the money, on every network. Default: `payments.pay_to` of the catalog. */
  readonly payTo?: string | undefined
  /** JSON-RPC endpoints by the name of the network in the catalog: `{ base: 'https://…' }`. */
  readonly rpcUrls?: Readonly<Record<string, string>> | undefined
  /** Private keys (0x and 64 hexadecimal digits) of the accounts that send the settlements and pay their gas. */
  readonly signerKeys?: readonly string[] | undefined
  /** Services that settle for you, in order of preference; no key is needed then. */
  readonly facilitators?: readonly FacilitatorOptions[] | undefined
  /** Schemes of your own, offered after `exact`. See `ratecard/scheme`, which is unstable. */
  readonly schemes?: readonly OpenScheme[] | undefined
}

/** A facilitator, as the x402 specification defines one. */
export interface FacilitatorOptions {
  readonly url: string
  /** Sent as a bearer token. */
  readonly token?: string | undefined
  /** API key of the Coinbase Developer Platform, which signs a token for each request instead of `token`. */
  readonly cdp?: CdpCredentials | undefined
}

/** MPP with the payment method `tempo`. */
export interface MppOptions {
  /** Address that receives the money. */
  readonly recipient: string
  /** Texts of at least 32 bytes that sign challenges. The first signs, all are accepted: that is how a key is rotated. */
  readonly secretKeys: readonly string[]
  /** JSON-RPC endpoints by network: `tempo`, `tempo-moderato`, or `eip155:` and the chain id. */
  readonly rpcUrls: Readonly<Record<string, string>>
}

/** Credentials by name. */
export type Secrets = Readonly<Record<string, string | undefined>> | ((name: string) => string | undefined)

/** `console` is one, and so is a pino logger. */
export interface Logger {
  warn(message: string): void
  error(fault: unknown): void
}

/** Sources of time, randomness and HTTP. */
export interface RuntimeOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Uint8Array
  /** Resolves after so many milliseconds. */
  readonly sleep: (ms: number) => Promise<void>
  /** Sends requests to nodes, facilitators and upstreams. */
  readonly fetch: typeof fetch
}

/**
 * Options that cannot be used. The message names each of them, and what it takes.
 *
 * @example
 * import { createRatecard, OptionError } from 'ratecard'
 *
 * createRatecard({ catalog: 'catalog.yaml', baseUrl: 'api.example.com' }).catch((fault: unknown) => {
 *   if (fault instanceof OptionError) console.error(fault.problems.join('\n'))
 * })
 */
export class OptionError extends TypeError {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'OptionError'
    this.problems = problems
  }
}

/** What settings are called in `RatecardOptions`. */
export const OPTIONS: SettingNames = {
  payTo: 'payments.x402.payTo',
  signerKeys: 'payments.x402.signerKeys',
  facilitators: 'payments.x402.facilitators',
  cdpSecret: 'payments.x402.facilitators.cdp.keySecret',
  mppRecipient: 'payments.mpp.recipient',
  mppSecretKeys: 'payments.mpp.secretKeys',
  baseUrl: 'baseUrl',
  rpcUrl: (chainId) => {
    const network = NETWORKS.find((each) => each.chainId === chainId)
    return network === undefined
      ? `payments.mpp.rpcUrls['eip155:${chainId}']`
      : `payments.x402.rpcUrls['${network.nickname}']`
  },
}

const TEMPO: Readonly<Record<string, number>> = { tempo: 4217, 'tempo-moderato': 42431 }

function chainIdOf(name: string): number | undefined {
  const caip2 = /^eip155:(\d{1,15})$/.exec(name)?.[1]
  return findNetwork(name)?.chainId ?? TEMPO[name] ?? (caip2 === undefined ? undefined : Number(caip2))
}

/** Names of the options that exist, by where they are. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  '': 'catalog baseUrl handlers payments ledger cache dataDir secrets logger onRequest mcpUrls mcpOrigins trustProxy runtime'.split(
    ' ',
  ),
  payments: ['x402', 'mpp'],
  'payments.x402': ['payTo', 'rpcUrls', 'signerKeys', 'facilitators', 'schemes'],
  'payments.mpp': ['recipient', 'secretKeys', 'rpcUrls'],
  runtime: ['now', 'random', 'sleep', 'fetch'],
}

/** Throws `OptionError` with all errors; how options work together is checked when the networks are opened. */
export function readPayments(options: RatecardOptions): PaymentConfig {
  const problems: string[] = []
  const check = (isRight: boolean, option: string, sentence: string): void => {
    if (!isRight) problems.push(`${option} ${sentence}`)
  }
  const checkNames = (value: unknown, at: string): void => {
    if (value === undefined) return
    if (typeof value !== 'object' || value === null) return check(false, at || 'options', 'must be an object')
    const known = KNOWN[at] ?? []
    for (const name of Object.keys(value).filter((each) => !known.includes(each)))
      check(false, at === '' ? name : `${at}.${name}`, `is not an option${didYouMean(name, known)}`)
  }
  checkNames(options, '')
  if (problems.includes('options must be an object')) throw new OptionError(problems)
  const { catalog, baseUrl, handlers = {}, payments = {}, ledger, cache, dataDir } = options
  checkNames(payments, 'payments')
  checkNames(payments.x402, 'payments.x402')
  checkNames(payments.mpp, 'payments.mpp')
  checkNames(options.runtime, 'runtime')
  check(
    typeof catalog === 'string' ? catalog !== '' : typeof catalog?.text === 'string',
    'catalog',
    'must be the path of a catalog file, or { text } with its content',
  )
  check(
    isOrigin(baseUrl),
    'baseUrl',
    'must be an origin without a path, such as https://api.example.com: the service is mounted at the root of its host',
  )
  check(
    typeof handlers === 'object' && handlers !== null,
    'handlers',
    'must be an object of handlers by name',
  )
  for (const [option, url] of Object.entries({ ledger, cache }))
    check(url === undefined || isUrl(url, /^rediss?:$/), option, 'must be a URL: redis://… or rediss://…')
  check(dataDir === undefined || typeof dataDir === 'string', 'dataDir', 'must be the path of a folder')
  const { x402 = {}, mpp } = payments
  const readUrls = (urls: Readonly<Record<string, string>>, at: string): Record<number, string> =>
    Object.fromEntries(
      Object.entries(urls).flatMap(([name, url]): [number, string][] => {
        const chainId = chainIdOf(name)
        const names = [...NETWORKS.map(({ nickname }) => nickname), ...Object.keys(TEMPO)]
        check(chainId !== undefined, `${at}.${name}`, `is not a network${didYouMean(name, names)}`)
        check(isUrl(url, /^https?:$/), `${at}.${name}`, 'must be a URL: https://…')
        return chainId === undefined ? [] : [[chainId, url]]
      }),
    )
  const { payTo, signerKeys = [], facilitators = [] } = x402
  for (const [option, address] of Object.entries({
    [OPTIONS.payTo]: payTo,
    [OPTIONS.mppRecipient]: mpp?.recipient,
  }))
    check(
      address === undefined || isAddress(address),
      option,
      'must be an address: 0x and 40 hexadecimal digits',
    )
  const keys = signerKeys.filter(isKey)
  check(
    keys.length === signerKeys.length,
    OPTIONS.signerKeys,
    'must be private keys: 0x and 64 hexadecimal digits',
  )
  for (const { url } of facilitators)
    check(isUrl(url, /^https?:$/), `${OPTIONS.facilitators}.url`, 'must be a URL: https://…')
  const secretKeys = mpp?.secretKeys ?? []
  check(
    secretKeys.every((key) => Buffer.byteLength(key) >= 32),
    OPTIONS.mppSecretKeys,
    'must be texts of at least 32 bytes',
  )
  const rpcUrls = {
    ...readUrls(x402.rpcUrls ?? {}, 'payments.x402.rpcUrls'),
    ...readUrls(mpp?.rpcUrls ?? {}, 'payments.mpp.rpcUrls'),
  }
  if (problems.length > 0) throw new OptionError(problems)
  return {
    payTo: payTo ?? '',
    rpcUrls,
    signerKeys: keys,
    facilitators: facilitators.map(({ url, token, cdp }) => ({ url, token, cdp })),
    mppRecipient: mpp?.recipient,
    mppSecretKeys: secretKeys,
    schemes: x402.schemes ?? [],
  }
}

function isKey(text: string): text is `0x${string}` {
  return /^0x[0-9a-fA-F]{64}$/.test(text)
}

function isUrl(value: unknown, protocol: RegExp): boolean {
  return typeof value === 'string' && URL.canParse(value) && protocol.test(new URL(value).protocol)
}

function isOrigin(value: unknown): boolean {
  if (!isUrl(value, /^https?:$/)) return false
  const { pathname, search, hash, username, password } = new URL(String(value))
  return pathname === '/' && search + hash + username + password === ''
}
