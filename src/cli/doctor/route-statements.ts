/**
 * Statements about one route: each field as text, so that any two documents can be compared. `price` in USD with six
 * decimals, a range, or `free`; `due` what one call by a rule costs; `parameters` as `country=US, limit*`; `sample` the
 * path of the preview or `none`; `available` yes or no; `protocols` by name; an offer of x402 under its network, one of
 * MPP under `mpp`.
 */
export type RouteStatement = ReadonlyMap<string, string>

/** Fields without a value are left out. */
export function statementOf(...fields: readonly (readonly [string, string | undefined])[]): RouteStatement {
  return new Map(fields.flatMap(([field, value]) => (value === undefined ? [] : [[field, value] as const])))
}

/** The statements of one document, by the key of the route: `/paid/app`, `POST /paid/translate`. */
export interface DocumentStatements {
  /** Its path, or `402 by mpp`. */
  readonly document: string
  /** Whether the document has to name a route, by what is known of it. */
  readonly covers: (valueOf: (field: string) => string | undefined) => boolean
  readonly statements: ReadonlyMap<string, RouteStatement>
}

/** Documents that name every route. */
export const ALL: DocumentStatements['covers'] = () => true

/** Documents that name what has a price. */
export const SOLD: DocumentStatements['covers'] = (valueOf) => valueOf('price') !== 'free'

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
export function compareStatements(documents: readonly DocumentStatements[]): Mismatch[] {
  const [first] = documents
  if (first === undefined) return []
  const reference = first.document
  const known = new Map(
    Array.from(first.statements.keys(), (path) => [
      path,
      new Map<string, { readonly document: string; readonly value: string }>(),
    ]),
  )
  return documents.flatMap(({ document, covers, statements }) => {
    const found: Mismatch[] = []
    for (const [path, statement] of statements) {
      const said = known.get(path)
      if (said === undefined)
        found.push({ path, field: 'listed', document, says: 'yes', reference, expected: 'no' })
      for (const [field, value] of said === undefined ? [] : statement) {
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
      const valueOf = (field: string): string | undefined => said.get(field)?.value
      if (!statements.has(path) && covers(valueOf))
        found.push({ path, field: 'listed', document, says: 'no', reference, expected: 'yes' })
    }
    return found
  })
}
