import list from '../data/public-suffixes.json' with { type: 'json' }

let rules: ReadonlySet<string> | undefined

/** Built when first asked for: 7,000 rules that a process without web routes never needs. */
function known(): ReadonlySet<string> {
  rules ??= new Set(list.rules.split(' '))
  return rules
}

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
  return known().has(top) && labels.every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label))
}

/**
 * The name that its owner registered: one label more than the public suffix (algorithm of publicsuffix.org, ICANN
 * section). Undefined when the host is a public suffix itself.
 *
 * @example
 * registrableDomain('www.shop.example.co.uk') // 'example.co.uk'
 */
export function registrableDomain(host: string): string | undefined {
  const labels = host.split('.')
  const from = (index: number): string => labels.slice(index).join('.')
  for (const index of labels.keys()) {
    if (known().has(`!${from(index)}`)) return from(index)
    const isSuffix = known().has(from(index)) || known().has(`*.${from(index + 1)}`)
    if (isSuffix) return index === 0 ? undefined : from(index - 1)
  }
  return undefined
}
