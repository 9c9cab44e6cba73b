/**
 * `price` in USD with six decimals, or `free`; `parameters` as `country=US, limit*`; `sample` the path of the preview or
 * `none`; `available` yes or no; `skill` its id in the agent card; `protocols` by name; an offer of x402 under its network,
 * one of MPP under `mpp`.
 */
export type Field =
  'price' | 'parameters' | 'sample' | 'available' | 'skill' | 'protocols' | 'mpp' | `eip155:${string}`

/** What is said of one route: each field as text, so that any two documents can be compared. */
export type Claim = ReadonlyMap<Field, string>

/** Fields without a value are not spoken of. */
export function claimOf(...fields: readonly (readonly [Field, string | undefined])[]): Claim {
  return new Map(fields.flatMap(([field, value]) => (value === undefined ? [] : [[field, value] as const])))
}

/** Which routes a document has to name. */
export type Coverage = 'all' | 'sold' | 'sold now' | 'sold by x402' | 'skills now'

/** What one document says, by the path of the route as the catalog writes it. */
export interface Testimony {
  /** How the document is told from others: its path, or `402 by mpp`. */
  readonly document: string
  readonly covers: Coverage
  readonly claims: ReadonlyMap<string, Claim>
}

/** Two documents say different things of one route. */
export interface Disagreement {
  readonly path: string
  /** `listed`: whether the route is named at all. */
  readonly field: Field | 'listed'
  readonly document: string
  readonly says: string
  readonly reference: string
  readonly expected: string
}

/** One line for an operator. */
export function tellDisagreement({ path, field, document, says, reference, expected }: Disagreement): string {
  if (field !== 'listed')
    return `${path}: ${field} is ${says} in ${document}, and ${expected} in ${reference}`
  return says === 'yes'
    ? `${path}: stands in ${document}, and not in ${reference}`
    : `${path}: is missing in ${document}, and stands in ${reference}`
}

interface Said {
  readonly document: string
  readonly value: string
}

/**
 * Where testimonies differ. The first one tells which routes there are; for every field, the first that speaks of it is
 * the reference of those after it.
 */
export function compareTestimonies(testimonies: readonly Testimony[]): Disagreement[] {
  const [first] = testimonies
  if (first === undefined) return []
  const reference = first.document
  const known = new Map(Array.from(first.claims.keys(), (path) => [path, new Map<Field, Said>()]))
  return testimonies.flatMap(({ document, covers, claims }) => {
    const differing: Disagreement[] = []
    for (const [path, claim] of claims) {
      const said = known.get(path)
      if (said === undefined)
        differing.push({ path, field: 'listed', document, says: 'yes', reference, expected: 'no' })
      else differing.push(...judge(path, claim, said, document))
    }
    for (const [path, said] of known)
      if (!claims.has(path) && isCovered(covers, said))
        differing.push({ path, field: 'listed', document, says: 'no', reference, expected: 'yes' })
    return differing
  })
}

function judge(path: string, claim: Claim, said: Map<Field, Said>, document: string): Disagreement[] {
  return [...claim].flatMap(([field, value]) => {
    const before = said.get(field)
    if (before === undefined) said.set(field, { document, value })
    if (before === undefined || before.value === value) return []
    return [{ path, field, document, says: value, reference: before.document, expected: before.value }]
  })
}

function isCovered(covers: Coverage, said: ReadonlyMap<Field, Said>): boolean {
  if (covers === 'all') return true
  const now = said.get('available')?.value !== 'no'
  if (covers === 'skills now') return said.has('skill') && now
  if (said.get('price')?.value === 'free') return false
  if (covers === 'sold now') return now
  return covers === 'sold' || said.get('protocols')?.value.split(', ').includes('x402') !== false
}
