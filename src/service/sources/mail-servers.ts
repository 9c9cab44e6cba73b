import { Failure, type Context } from 'ratecard/handler'
import { beforeDeadline, DeadlinePassed } from './deadline.ts'
import type { Dns, Lookup, MailServer } from './dns.ts'
import { isPublicAddress } from './egress/ip-address.ts'
import { registrableDomain } from './public-suffix.ts'
import type { SourceMetrics } from './source-metrics.ts'
import { cacheIfComplete } from './cache-if-complete.ts'

/** The mail servers of a domain, from DNS. A type alias, so that it counts as JSON. */
export type MailSetup = {
  readonly exists: boolean
  /** By priority, at most ten; empty when the domain has none. */
  readonly servers: readonly MailServer[]
  /** No servers, but an address: mail goes to the domain itself (RFC 5321 §5.1). */
  readonly implicit: boolean
  /** Whether the domain accepts no mail (RFC 7505). */
  readonly refuses: boolean
  /** Whether one of the servers has a public address; null when that could not be determined. */
  readonly reachable: boolean | null
  readonly spf: boolean | null
  readonly dmarc: 'none' | 'quarantine' | 'reject' | null
  /** Kinds of records no name server answered for. */
  readonly unknown: readonly string[]
}

const SHOWN = 10
/** Most servers that are looked up, since a hostile domain may have a thousand. */
const LOOKED_UP = 5
const FIRST_MS = 8000
const SECOND_MS = 4000
/** Answers without gaps are kept; the rest is asked again. */
const KEPT = { ttl: 3_600_000, staleIfError: 0 }

/** Asks name servers who takes the mail of a domain; the mail servers themselves are never asked anything. */
export class MailServers {
  readonly #dns: Dns
  readonly #record: SourceMetrics

  constructor(dns: Dns, record: SourceMetrics) {
    this.#dns = dns
    this.#record = record
  }

  /** `domain` in ASCII. Throws `Failure` when it cannot be determined whether there are mail servers. */
  async find(
    domain: string,
    context: Pick<Context, 'keep' | 'now' | 'signal'>,
  ): Promise<{ readonly setup: MailSetup; readonly at: Date }> {
    const { value, at } = await cacheIfComplete(
      context,
      `mail-servers-v2:${domain}`,
      KEPT,
      isMailSetup,
      ({ unknown, reachable }) => unknown.length === 0 && reachable !== null,
      (until) =>
        this.#recorded(() =>
          beforeDeadline(until, FIRST_MS + SECOND_MS, (limit) => this.#ask(domain, limit)),
        ),
    )
    context.signal.throwIfAborted()
    return { setup: value, at }
  }

  async #recorded(ask: () => Promise<MailSetup>): Promise<MailSetup> {
    this.#record.countAsked()
    try {
      return await ask()
    } catch (cause) {
      this.#record.countFailed()
      if (!(cause instanceof DeadlinePassed)) throw cause
      throw new Failure('source_timeout', 'The name servers of the domain did not answer in time', { cause })
    }
  }

  async #ask(domain: string, signal: AbortSignal): Promise<MailSetup> {
    const above = registrableDomain(domain) ?? domain
    const [mx, a, aaaa, txt, ownPolicy, abovePolicy] = await beforeDeadline(signal, FIRST_MS, () =>
      Promise.all([
        this.#dns.mx(domain),
        this.#dns.a(domain),
        this.#dns.aaaa(domain),
        this.#dns.txt(domain),
        this.#dns.txt(`_dmarc.${domain}`),
        this.#dns.txt(`_dmarc.${above}`),
      ]),
    )
    if (mx.kind === 'unknown' || (mx.kind === 'none' && isEitherUnknown(a, aaaa)))
      throw new Failure('source_error', 'No name server could say who takes the mail of the domain')
    const listed = found(mx).toSorted((one, other) => one.priority - other.priority)
    // A server named "." means that there is none (RFC 7505 §3).
    const servers = listed.filter(({ exchange }) => exchange !== '' && exchange !== '.')
    const addresses = [...found(a), ...found(aaaa)]
    const implicit = mx.kind === 'none' && addresses.length > 0
    const ownRecord = dmarcIn(ownPolicy)
    const dmarc = ownRecord ?? dmarcIn(abovePolicy)
    // The parent's record counts only when there is none for the domain: an unanswered query is then a gap.
    const policies = {
      kind: ownRecord === undefined && abovePolicy.kind === 'unknown' ? 'unknown' : ownPolicy.kind,
    }
    return {
      exists: [mx, a, aaaa].some(
        (answer) => answer.kind === 'found' || (answer.kind === 'none' && answer.exists),
      ),
      servers: servers.slice(0, SHOWN).map(({ exchange, priority }) => ({ exchange, priority })),
      implicit,
      refuses: listed.length > 0 && servers.length === 0,
      reachable: implicit
        ? addresses.some(isPublicAddress)
        : await this.#reachable(servers.slice(0, LOOKED_UP), signal),
      spf: txt.kind === 'unknown' ? null : found(txt).some((text) => /^v=spf1(?:\s|$)/i.test(text)),
      dmarc: policyIn(dmarc, ownRecord === undefined && above !== domain ? ['sp', 'p'] : ['p']),
      unknown: Object.entries({ spf: txt, dmarc: policies }).flatMap(([name, { kind }]) =>
        kind === 'unknown' ? [name] : [],
      ),
    }
  }

  async #reachable(servers: readonly MailServer[], signal: AbortSignal): Promise<boolean | null> {
    if (servers.length === 0) return false
    try {
      const answers = await beforeDeadline(signal, SECOND_MS, () =>
        Promise.all(servers.flatMap(({ exchange }) => [this.#dns.a(exchange), this.#dns.aaaa(exchange)])),
      )
      if (answers.some((answer) => found(answer).some(isPublicAddress))) return true
      return answers.some(({ kind }) => kind === 'unknown') ? null : false
    } catch (cause) {
      if (cause instanceof DeadlinePassed && !signal.aborted) return null
      throw cause
    }
  }
}

function dmarcIn(lookup: Lookup<string>): string | undefined {
  return found(lookup).find((text) => /^v=DMARC1\s*;/i.test(text))
}

/** The first tag with a policy (RFC 7489 §6.3): `sp` is the one for subdomains. */
function policyIn(record: string | undefined, tags: readonly ('p' | 'sp')[]): MailSetup['dmarc'] {
  const parts = (record ?? '').toLowerCase().split(';')
  const values = parts.map((part) => part.split('=').map((side) => side.trim()))
  const [policy] = tags.flatMap((tag) => values.flatMap(([name, value]) => (name === tag ? value : [])))
  return policy === 'none' || policy === 'quarantine' || policy === 'reject' ? policy : null
}

function isEitherUnknown(...answers: readonly Lookup<string>[]): boolean {
  return !answers.some(({ kind }) => kind === 'found') && answers.some(({ kind }) => kind === 'unknown')
}

function found<Record>(lookup: Lookup<Record>): readonly Record[] {
  return lookup.kind === 'found' ? lookup.records : []
}

function isMailSetup(value: unknown): value is MailSetup {
  return (
    typeof value === 'object' &&
    value !== null &&
    'servers' in value &&
    Array.isArray(value.servers) &&
    'unknown' in value &&
    Array.isArray(value.unknown)
  )
}
