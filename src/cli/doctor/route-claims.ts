/**
 * `price` in USD with six decimals, a range, or `free`; `due` what one call by a rule costs; `parameters` as `country=US, limit*`; `sample` the path of the preview or
 * `none`; `available` yes or no; `skill` its id in the agent card; `protocols` by name; an offer of x402 under its network,
 * one of MPP under `mpp`.
 */
export type Field =
  'price' | 'due' | 'parameters' | 'sample' | 'available' | 'skill' | 'protocols' | 'mpp' | `eip155:${string}`

/** The claims about one route: each field as text, so that any two documents can be compared. */
export type RouteClaim = ReadonlyMap<Field, string>

/** Fields without a value are left out. */
export function claimOf(...fields: readonly (readonly [Field, string | undefined])[]): RouteClaim {
  return new Map(fields.flatMap(([field, value]) => (value === undefined ? [] : [[field, value] as const])))
}

/** The claims of one document, by the key of the route: `/paid/app`, `POST /paid/translate`. */
export interface RouteClaims {
  /** Its path, or `402 by mpp`. */
  readonly document: string
  /** Which routes the document has to name. */
  readonly covers: 'all' | 'sold' | 'sold now' | 'sold by x402' | 'skills now'
  readonly claims: ReadonlyMap<string, RouteClaim>
}

/** One mismatch, of a route, or of a document as a whole when the path is `*`. */
export interface Mismatch {
  readonly path: string
  /** `listed`: whether the route is named at all. */
  readonly field: string
  readonly document: string
  readonly says: string
  readonly reference: string
  readonly expected: string
}

/**
 * Mismatches between documents. The first one defines which routes exist; for every field, the first document that
 * has it is the reference for the others.
 */
export function compareClaims(documents: readonly RouteClaims[]): Mismatch[] {
  const [first] = documents
  if (first === undefined) return []
  const reference = first.document
  const known = new Map(
    Array.from(first.claims.keys(), (path) => [
      path,
      new Map<Field, { readonly document: string; readonly value: string }>(),
    ]),
  )
  return documents.flatMap(({ document, covers, claims }) => {
    const found: Mismatch[] = []
    for (const [path, claim] of claims) {
      const said = known.get(path)
      if (said === undefined)
        found.push({ path, field: 'listed', document, says: 'yes', reference, expected: 'no' })
      for (const [field, value] of said === undefined ? [] : claim) {
        const before = said?.get(field)
        if (before === undefined) said?.set(field, { document, value })
        else if (before.value !== value)
          found.push({
            path,
            field,
            document,
            says: value,
            reference: before.document,
            expected: before.value,
          })
      }
    }
    for (const [path, said] of known) {
      const valueOf = (field: Field): string | undefined => said.get(field)?.value
      if (!claims.has(path) && isCovered(covers, valueOf))
        found.push({ path, field: 'listed', document, says: 'no', reference, expected: 'yes' })
    }
    return found
  })
}

function isCovered(covers: RouteClaims['covers'], valueOf: (field: Field) => string | undefined): boolean {
  if (covers === 'all') return true
  const now = valueOf('available') !== 'no'
  if (covers === 'skills now') return valueOf('skill') !== undefined && now
  if (valueOf('price') === 'free') return false
  if (covers === 'sold now') return now
  return covers === 'sold' || valueOf('protocols')?.split(', ').includes('x402') !== false
}
