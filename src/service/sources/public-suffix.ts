import { parse } from 'tldts'

/** Names of any form, and public suffixes in the sense of the list's ICANN section. */
const OPTIONS = { extractHostname: false, validateHostname: false, allowPrivateDomains: false }

/**
 * Whether a name can exist in the public DNS: its last label is a top-level domain that somebody registers names under.
 * `.local`, `.internal`, `.test`, `.onion`, `.arpa` and a name of one label are none.
 *
 * @param host ASCII, lower case, without a final dot.
 */
export function isPublicName(host: string): boolean {
  const labels = host.split('.')
  const top = labels.at(-1) ?? ''
  // The list has these two for other uses.
  if (top === 'arpa' || top === 'onion') return false
  if (labels.length < 2 || host.length > 253) return false
  if (!labels.every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label))) return false
  return parse(host, OPTIONS).isIcann === true
}

/**
 * The name that its owner registered: one label more than the public suffix (algorithm of publicsuffix.org, ICANN
 * section). Undefined when the host is a public suffix itself.
 *
 * @example
 * registrableDomain('www.shop.example.co.uk') // 'example.co.uk'
 */
export function registrableDomain(host: string): string | undefined {
  const { domain, isIcann } = parse(host, OPTIONS)
  return isIcann === true ? (domain ?? undefined) : undefined
}
