import { isIP } from 'node:net'

/** Where one Redis is, as its client takes it. */
export interface RedisAddress {
  /** `host:port`: what may be told. */
  readonly place: string
  readonly options: {
    readonly host: string
    readonly port: number
    readonly db: number
    readonly username: string
    readonly password: string
    readonly tls: { readonly servername?: string } | undefined
  }
}

export interface RedisAddressFault {
  /** A sentence for the operator, without what the URL holds. */
  readonly fault: string
}

/**
 * Reads what is meant by a Redis URL and nothing else: the library would take any option of its own from the query.
 * `variable` is where the operator has set it.
 */
export function readRedisAddress(url: string, variable: string): RedisAddress | RedisAddressFault {
  const { protocol, hostname, port: given, username, password, pathname } = new URL(url)
  const db = /^\/?(\d*)$/.exec(pathname)?.[1]
  if (db === undefined) return { fault: `the path of ${variable} may be the number of a database only` }
  const credentials = [username, password].map(decode)
  const [user, word] = credentials
  if (user === undefined || word === undefined)
    return { fault: `the credentials in ${variable} have a % that begins no escape: write %25` }
  const host = hostname.replace(/^\[|\]$/g, '') || 'localhost'
  const port = Number(given || 6379)
  const server = isIP(host) > 0 ? {} : { servername: host }
  return {
    place: `${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
    options: {
      host,
      port,
      db: Number(db),
      username: user,
      password: word,
      tls: protocol === 'rediss:' ? server : undefined,
    },
  }
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}
