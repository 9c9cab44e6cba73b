import { isIP } from 'node:net'

/** The address of a Redis, for its client. */
export interface RedisAddress {
  /** `host:port`, which may be logged. */
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
  /** A sentence for the operator, without parts of the URL. */
  readonly fault: string
}

/**
 * Parses a Redis URL strictly: the library would accept any of its options from the query. `variable` names the
 * setting.
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
