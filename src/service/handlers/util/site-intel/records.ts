import type { JsonObject } from 'ratecard/handler'
import type { Dns, Lookup } from '../../../sources/dns.ts'

/** DNS records of a host and of its domain; null when unknown. */
export interface Records {
  readonly resolves: boolean | null
  /** What receivers are asked to do with forged mail; null when that is unknown. */
  readonly dmarc: 'none' | 'quarantine' | 'reject' | null
  readonly hasCaa: boolean | null
  readonly body: JsonObject
  /** Kinds of records that no name server answered for. */
  readonly unknown: readonly string[]
}

const SHOWN = 20

export async function readRecords(dns: Dns, host: string, domain: string): Promise<Records> {
  const [a, aaaa, ns, mx, txt, caa, dmarc] = await Promise.all([
    dns.a(host),
    dns.aaaa(host),
    dns.ns(domain),
    dns.mx(domain),
    dns.txt(domain),
    dns.caa(domain),
    dns.txt(`_dmarc.${domain}`),
  ])
  const spf = found(txt).find((text) => /^v=spf1(\s|$)/i.test(text)) ?? null
  const policy = found(dmarc).find((text) => /^v=DMARC1\s*;/i.test(text))
  const named = Object.entries({ a, aaaa, ns, mx, txt, caa, dmarc })
  const addresses = [...found(a), ...found(aaaa)]
  return {
    resolves: addresses.length > 0 ? true : [a, aaaa].some(({ kind }) => kind === 'unknown') ? null : false,
    dmarc: dmarc.kind === 'unknown' ? null : policyIn(policy ?? ''),
    hasCaa: caa.kind === 'unknown' ? null : found(caa).length > 0,
    unknown: named.flatMap(([name, { kind }]) => (kind === 'unknown' ? [name] : [])),
    body: {
      a: shown(a)?.slice() ?? null,
      aaaa: shown(aaaa)?.slice() ?? null,
      ns: shown(ns)?.toSorted() ?? null,
      mx:
        shown(mx, (one, other) => one.priority - other.priority)?.map(({ exchange, priority }) => ({
          exchange,
          priority,
        })) ?? null,
      txt_count: txt.kind === 'unknown' ? null : found(txt).length,
      spf,
      dmarc: policy ?? null,
      caa: shown(caa)?.map(({ tag, value }) => `${tag} ${value}`) ?? null,
    },
  }
}

/** Undefined when no name server answered: nothing was read, which is not the same as none. */
function shown<Record>(
  lookup: Lookup<Record>,
  order?: (one: Record, other: Record) => number,
): Record[] | undefined {
  return lookup.kind === 'unknown'
    ? undefined
    : found(lookup)
        .toSorted(order ?? (() => 0))
        .slice(0, SHOWN)
}

/** `none` without a policy that can be read, as receivers take it (RFC 7489 §6.6.3). */
function policyIn(record: string): 'none' | 'quarantine' | 'reject' {
  const policy = /;\s*p\s*=\s*(quarantine|reject)/i.exec(record)?.[1]?.toLowerCase()
  return policy === 'quarantine' || policy === 'reject' ? policy : 'none'
}

function found<Record>(lookup: Lookup<Record>): readonly Record[] {
  return lookup.kind === 'found' ? lookup.records : []
}
