import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

export interface MailServer {
  readonly exchange: string
  readonly priority: number
}
export interface CertificateAuthority {
  readonly tag: string
  readonly value: string
}

/** `none`: the name does not exist or has no such record. `unknown`: it could not be determined. */
export type Lookup<Record> =
  | { readonly kind: 'found'; readonly records: readonly Record[] }
  | { readonly kind: 'none'; readonly exists: boolean }
  | { readonly kind: 'unknown' }

const TIMES = { timeout: 2000, tries: 2 }

/**
 * Asks DNS servers directly, in their own protocol: the names of this machine's hosts file are not for callers, and a
 * name that answers slowly occupies no thread.
 */
export class Dns {
  readonly #resolver = new Resolver(TIMES)

  /** @param servers addresses with an optional port, `127.0.0.1:5353`; none for those of the system. */
  constructor(servers: readonly string[] = []) {
    if (servers.length > 0) this.#resolver.setServers(servers)
  }

  /** IPv4 first; none when the name does not exist or has none. Rejects when it cannot be determined. */
  async addresses(host: string): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host]
    const both = await Promise.all([this.a(host), this.aaaa(host)])
    const found = both.flatMap((answer) => (answer.kind === 'found' ? answer.records : []))
    if (found.length === 0 && both.some(({ kind }) => kind === 'unknown')) {
      throw Object.assign(new Error('no name server answered'), { code: 'ESERVFAIL' })
    }
    return found
  }

  a(name: string): Promise<Lookup<string>> {
    return look(() => this.#resolver.resolve4(name))
  }

  aaaa(name: string): Promise<Lookup<string>> {
    return look(() => this.#resolver.resolve6(name))
  }

  mx(name: string): Promise<Lookup<MailServer>> {
    return look(() => this.#resolver.resolveMx(name))
  }

  ns(name: string): Promise<Lookup<string>> {
    return look(() => this.#resolver.resolveNs(name))
  }

  /** The parts of each record joined, as its readers do (RFC 7208 §3.3). */
  txt(name: string): Promise<Lookup<string>> {
    return look(async () => (await this.#resolver.resolveTxt(name)).map((parts) => parts.join('')))
  }

  caa(name: string): Promise<Lookup<CertificateAuthority>> {
    return look(async () =>
      (await this.#resolver.resolveCaa(name)).flatMap(({ issue, issuewild, iodef }) =>
        Object.entries({ issue, issuewild, iodef }).flatMap(([tag, value]) =>
          value === undefined ? [] : [{ tag, value }],
        ),
      ),
    )
  }
}

async function look<Record>(ask: () => Promise<readonly Record[]>): Promise<Lookup<Record>> {
  try {
    const records = await ask()
    return records.length === 0 ? { kind: 'none', exists: true } : { kind: 'found', records }
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code === 'ENODATA') return { kind: 'none', exists: true }
    // A name that cannot be asked for does not exist either.
    if (code === 'ENOTFOUND' || code === 'EBADNAME') return { kind: 'none', exists: false }
    return { kind: 'unknown' }
  }
}
