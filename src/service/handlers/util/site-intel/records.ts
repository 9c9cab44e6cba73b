import type { JsonObject } from '../../../../engine/index.ts'
import type { Dns, Lookup } from '../../../sources/dns.ts'

/** What DNS says of a host and of the domain it belongs to; null where it could not be found out. */
export interface Records {
  readonly resolves: boolean | null
  readonly dmarc: string | null
  readonly hasCaa: boolean
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
    dmarc:
      policy === undefined
        ? null
        : (/;\s*p\s*=\s*(none|quarantine|reject)/i.exec(policy)?.[1]?.toLowerCase() ?? null),
    hasCaa: found(caa).length > 0,
    unknown: named.flatMap(([name, { kind }]) => (kind === 'unknown' ? [name] : [])),
    body: {
      a: found(a).slice(0, SHOWN),
      aaaa: found(aaaa).slice(0, SHOWN),
      ns: found(ns).slice(0, SHOWN).toSorted(),
      mx: found(mx)
        .toSorted((one, other) => one.priority - other.priority)
        .slice(0, SHOWN)
        .map(({ exchange, priority }) => ({ exchange, priority })),
      txt_count: found(txt).length,
      spf,
      dmarc: policy ?? null,
      caa: found(caa)
        .slice(0, SHOWN)
        .map(({ tag, value }) => `${tag} ${value}`),
    },
  }
}

function found<Record>(lookup: Lookup<Record>): readonly Record[] {
  return lookup.kind === 'found' ? lookup.records : []
}
