import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** What keeps a console open for its operator when another process of `serve --watch` takes over. */
export interface ConsoleKeys {
  /** Of the cookie of browsers that have entered. */
  readonly session: string
  /** Of the address that was printed last; the first browser that opens it enters. */
  readonly token: string
}

/** The path of the address that is printed. */
export const ENTRANCE = '/enter'

/**
 * Cookies of one host are shared by all its ports, so each console has a name of its own: by the port that the browser
 * asks, which differs from the one it listens on behind a tunnel.
 */
function cookieNameOf({ host = '' }: IncomingHttpHeaders): string {
  return `ratecard_console_${/:(\d{1,5})$/.exec(host)?.[1] ?? HTTP_PORT}`
}

const HTTP_PORT = '80'

/** Who may see the console: browsers on this machine, or at the end of a tunnel, that have opened a printed address. */
export class ConsoleAccess {
  readonly #random: (bytes: number) => Uint8Array
  readonly #session: string
  #token: string

  constructor(random: (bytes: number) => Uint8Array, { session, token }: Partial<ConsoleKeys> = {}) {
    this.#random = random
    this.#session = session ?? this.#secret()
    this.#token = token ?? this.#secret()
  }

  get keys(): ConsoleKeys {
    return { session: this.#session, token: this.#token }
  }

  /** Path and query of the address that lets one browser in, once. */
  get entrance(): string {
    return `${ENTRANCE}?token=${this.#token}`
  }

  /** The cookie of a browser that shows the token; from then on another token counts. Undefined for a wrong or used one. */
  enter(token: string | null, headers: IncomingHttpHeaders): string | undefined {
    if (token === null || !isSame(token, this.#token)) return undefined
    this.#token = this.#secret()
    return `${cookieNameOf(headers)}=${this.#session}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${COOKIE_SECONDS}`
  }

  hasEntered(headers: IncomingHttpHeaders): boolean {
    const start = `${cookieNameOf(headers)}=`
    return (headers.cookie ?? '')
      .split(';')
      .map((each) => each.trim())
      .some((each) => each.startsWith(start) && isSame(each.slice(start.length), this.#session))
  }

  #secret(): string {
    return Buffer.from(this.#random(32)).toString('base64url')
  }
}

const COOKIE_SECONDS = 30 * 86_400

/** Digests are of one length, as the comparison requires, and do not reveal where two texts differ. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Names under which a browser reaches a listener of its own machine, also through a tunnel from another port. */
const LOCAL = new Set(['127.0.0.1', 'localhost', '[::1]'])

/** Whether a request names this machine: a name that leads here, as in DNS rebinding, is another one. */
export function isLocalHost({ host = '' }: IncomingHttpHeaders): boolean {
  return LOCAL.has(host.replace(/:\d{1,5}$/, '').toLowerCase())
}

/**
 * Whether a request was made by the console itself, or by the operator: other sites of the same browser, and other ports
 * of this machine, name themselves.
 */
export function isOwnRequest(method: string | undefined, headers: IncomingHttpHeaders): boolean {
  const { origin, host = '' } = headers
  const site = headers['sec-fetch-site']
  if (origin !== undefined && origin !== `http://${host}`) return false
  if (typeof site === 'string' && site !== 'same-origin' && site !== 'none') return false
  // Browsers send the origin with each request that changes something.
  return method === 'GET' || origin !== undefined
}
