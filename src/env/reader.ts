import { SETTINGS } from '../settings.ts'

export interface FacilitatorAccess {
  readonly url: string
  readonly token: string | undefined
  /** API key of the Coinbase Developer Platform. */
  readonly cdp?: { readonly keyId: string; readonly keySecret: string }
}

export type Variables = Readonly<Record<string, string | undefined>>

const SECRET_BYTES = 32

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

export type LogLevel = (typeof LOG_LEVELS)[number]

function isWeb(value: string): boolean {
  return /^https?:\/\//i.test(value) && URL.canParse(value)
}

/** Reads single variables; what is wrong with them is kept in `problems`. */
export class Reader {
  readonly problems: string[] = []
  readonly concealed = new Set<string>()
  readonly #lookUp: (name: string) => string | undefined
  readonly #names: readonly string[]

  /** `names`: the variables that are set, to find those whose names are not known. */
  constructor(lookUp: (name: string) => string | undefined, names: readonly string[] = []) {
    this.#lookUp = lookUp
    this.#names = names
  }

  text(name: string): string | undefined {
    const value = this.#lookUp(name)?.trim()
    return value === '' ? undefined : value
  }

  flag(name: string): boolean {
    const value = this.text(name)
    if (value === undefined || ['0', 'false', 'no'].includes(value)) return false
    if (['1', 'true', 'yes'].includes(value)) return true
    this.problem(name, 'must be 1 or 0')
    return false
  }

  port(name: string): number | undefined {
    const value = this.text(name)
    if (value === undefined) return undefined
    if (/^\d{1,5}$/.test(value) && Number(value) <= 65535) return Number(value)
    this.problem(name, 'must be a port number, 0 to 65535')
    return undefined
  }

  count(name: string): number | undefined {
    const value = this.text(name)
    if (value === undefined || /^\d{1,3}$/.test(value)) return value === undefined ? undefined : Number(value)
    this.problem(name, 'must be a whole number')
    return undefined
  }

  url(name: string): string | undefined {
    const value = this.text(name)
    if (value === undefined || isWeb(value)) return value?.replace(/\/+$/, '')
    this.problem(name, 'must be an address that starts with https:// or http://')
    return undefined
  }

  redis(name: string): string | undefined {
    const value = this.text(name)
    if (value === undefined || (/^rediss?:\/\//i.test(value) && URL.canParse(value))) return value
    this.problem(name, 'must be an address that starts with redis:// or rediss://')
    return undefined
  }

  logLevel(): LogLevel {
    const { variable, default: usual } = SETTINGS.logLevel
    const value = this.text(variable) ?? usual
    const level = LOG_LEVELS.find((each) => each === value)
    if (level === undefined) this.problem(variable, `must be one of ${LOG_LEVELS.join(', ')}`)
    return level ?? usual
  }

  /** The value of this variable is hidden too. */
  conceal(name: string): void {
    this.concealed.add(name)
  }

  /** Bases by the name of the server, from variables by the name of the server. */
  mcpUrls(names: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(
      Object.entries(names).flatMap(([server, name]) => {
        const url = this.origin(name)
        return url === undefined ? [] : [[server, url]]
      }),
    )
  }

  list(name: string): string[] {
    return (this.text(name) ?? '').split(',').flatMap((part) => part.trim() || [])
  }

  /** Tokens belong to addresses by their place; an empty place has none. */
  facilitators(): FacilitatorAccess[] {
    const { facilitators, facilitatorTokens } = SETTINGS
    const urls = this.list(facilitators.variable)
    const tokens = (this.text(facilitatorTokens.variable) ?? '').split(',').map((part) => part.trim())
    if (!urls.every(isWeb)) this.problem(facilitators.variable, 'must be addresses, separated by commas')
    if (tokens.length > Math.max(urls.length, 1))
      this.problem(facilitatorTokens.variable, `has more entries than ${facilitators.variable}`)
    const named = urls.map((url, place) => ({
      url: url.replace(/\/+$/, ''),
      token: tokens[place] || undefined,
    }))
    const cdp = this.#cdp()
    return cdp === undefined ? named : [cdp, ...named.filter(({ url }) => url !== cdp.url)]
  }

  /** The facilitator of the Coinbase Developer Platform, which settles first where its key is set. */
  #cdp(): FacilitatorAccess | undefined {
    const { cdpKeyId, cdpKeySecret, cdpUrl } = SETTINGS
    const [keyId, keySecret] = [this.text(cdpKeyId.variable), this.text(cdpKeySecret.variable)]
    const url = (this.url(cdpUrl.variable) ?? cdpUrl.default).replace(/\/+$/, '')
    if (keyId !== undefined && keySecret !== undefined)
      return { url, token: undefined, cdp: { keyId, keySecret } }
    if (keyId !== undefined) this.problem(cdpKeySecret.variable, `is missing: ${cdpKeyId.variable} needs it`)
    if (keySecret !== undefined)
      this.problem(cdpKeyId.variable, `is missing: ${cdpKeySecret.variable} needs it`)
    return undefined
  }

  /** A short secret can be guessed from one challenge. */
  secrets(name: string): string[] {
    const secrets = this.list(name)
    if (secrets.some((secret) => Buffer.byteLength(secret) < SECRET_BYTES))
      this.problem(name, `must be secrets of ${SECRET_BYTES} bytes at least, the current one first`)
    return secrets
  }

  /** Scheme and host only: paths of the service are right below it. */
  origin(name: string): string | undefined {
    const value = this.url(name)
    if (value === undefined) return undefined
    const { origin, pathname, search, hash, username, password } = new URL(value)
    if (pathname === '/' && search + hash + username + password === '') return origin
    this.problem(name, 'must be an origin without a path: https://api.example.com')
    return undefined
  }

  /** The payee on EVM networks, and the one on Solana. */
  payees(name: string): { readonly evm: string | undefined; readonly solana: string | undefined } {
    const payees = this.list(name)
    const evm = payees.filter((payee) => /^0x[0-9a-fA-F]{40}$/.test(payee))
    const solana = payees.filter((payee) => /^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(payee))
    if (evm.length > 1 || solana.length > 1 || evm.length + solana.length < payees.length)
      this.problem(
        name,
        'must be an address: 0x and 40 hexadecimal digits, or one of Solana in base58, or one of each separated by a comma',
      )
    return { evm: evm[0], solana: solana[0] }
  }

  /** Key pairs of Solana, in base58 or as JSON arrays, separated by commas; their text never appears in a message. */
  keyPairs(name: string): string[] {
    return (this.text(name) ?? '').match(/\[[^\]]*\]|[^,\s]+/g) ?? []
  }

  address(name: string): string | undefined {
    const value = this.text(name)
    if (value === undefined || /^0x[0-9a-fA-F]{40}$/.test(value)) return value
    this.problem(name, 'must be an address: 0x and 40 hexadecimal digits')
    return undefined
  }

  /** A comma-separated list of private keys; their text never appears in a message. */
  keys(name: string): `0x${string}`[] {
    return (this.text(name) ?? '')
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .flatMap((part): `0x${string}`[] => {
        const digits = part.replace(/^0x/, '')
        if (/^[0-9a-fA-F]{64}$/.test(digits)) return [`0x${digits}`]
        this.problem(name, 'must be private keys of 64 hexadecimal digits, separated by commas')
        return []
      })
  }

  rpcUrls(): Record<number, string> {
    const urls: Record<number, string> = {}
    for (const name of this.#names) {
      const chain = /^RPC_URL_(\d+)$/.exec(name)?.[1]
      const url = chain === undefined ? undefined : this.url(name)
      if (url !== undefined) urls[Number(chain)] = url
    }
    return urls
  }

  /** Endpoints of Solana by the nickname of the network. */
  svmRpcUrls(): Record<string, string> {
    return Object.fromEntries(
      ['solana', 'solana-devnet'].flatMap((nickname) => {
        const name = `RPC_URL_${nickname.toUpperCase().replace('-', '_')}`
        const url = this.#names.includes(name) ? this.url(name) : undefined
        return url === undefined ? [] : [[nickname, url]]
      }),
    )
  }

  problem(name: string, sentence: string): void {
    this.problems.push(`${name} ${sentence}`)
  }
}
