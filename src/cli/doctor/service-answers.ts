import { isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { readObject, textAt } from '../json-access.ts'
import { documentPlaces, examplePath, openapiOperations, splitKey } from '../openapi-document.ts'
import type { PaymentRequired } from './payment-required.ts'
import type { Mismatch } from './route-statements.ts'
import { visit, visitEach } from './visit.ts'

const OPENAPI = '/openapi.json'

/** The document that lists the others, or a sentence on why there is none. */
export async function openOpenapi(
  origin: string,
): Promise<
  { readonly document: string; readonly openapi: JsonObject; readonly isSandbox: boolean } | string
> {
  const got = await visit(origin, OPENAPI)
  if (got.kind === 'fault') return `${origin} cannot be reached: ${got.reason}`
  const where = `${origin}${OPENAPI}`
  if (got.status >= 300 && got.status < 400)
    return `${where} redirects to ${got.headers.get('location') ?? 'nowhere'}: ask there`
  if (got.status !== 200)
    return `${where} answers ${got.status}: this is not Ratecard, or it does not serve OpenAPI there`
  if (got.type === 'text/html')
    return `${where} is a web page instead of JSON: this is not Ratecard, or a proxy answers in front of it`
  const value = readObject(got.text)
  if (value === undefined || !isJsonObject(value['paths']))
    return `${where} is not an OpenAPI document: this is not Ratecard`
  if (documentPlaces(value).size === 0)
    return `${where} names none of the documents that a Ratecard serves: this is another service`
  return { document: OPENAPI, openapi: value, isSandbox: got.headers.has('ratecard-sandbox') }
}

/** The 402s of these routes, asked without a payment, and which routes answer something else. */
interface Challenges {
  readonly challenges: readonly PaymentRequired[]
  readonly differences: readonly Mismatch[]
}

export async function readChallenges(
  origin: string,
  openapi: JsonObject,
  keys: readonly string[],
  progress: (line: string) => void,
): Promise<Challenges> {
  const operations = new Map(openapiOperations(openapi))
  const asked = await visitEach(keys, async (key) => {
    progress(key)
    const [method, path] = splitKey(key)
    return { key, got: await visit(origin, examplePath(path, operations.get(key)), { method }) }
  })
  const challenges = asked.flatMap(({ key, got }) =>
    got.kind === 'answer' && got.status === 402 ? [{ key, headers: got.headers, body: got.text }] : [],
  )
  const differences = asked.flatMap(({ key, got }): Mismatch[] => {
    const says = got.kind === 'fault' ? got.reason : String(got.status)
    const reference = 'x402 and MPP'
    return says === '402'
      ? []
      : [{ path: key, field: 'status', document: '402', says, reference, expected: '402' }]
  })
  return { challenges, differences }
}

/** Documents whose content changes between two requests. */
const LIVE: ReadonlySet<string> = new Set(['health', 'stats', 'status', 'status-json'])

/** Which documents cannot be read, or differ under another of their paths, as behind a cache. */
export async function checkDocuments(
  origin: string,
  places: ReadonlyMap<string, readonly string[]>,
): Promise<Mismatch[]> {
  const differences: Mismatch[] = []
  for (const [name, [first, ...aliases]] of places) {
    const text = first === undefined ? undefined : await readText(origin, first, differences)
    if (first === undefined || text === undefined) continue
    for (const alias of aliases) {
      const other = await readText(origin, alias, differences)
      if (other !== undefined && other !== text && !LIVE.has(name))
        differences.push({
          ...documentMismatch(alias, 'bytes', 'other bytes', 'the same bytes'),
          reference: first,
        })
    }
  }
  return differences
}

/** How often a service is asked for its revision: several servers may share its address. */
const REVISION_QUESTIONS = 12

/**
 * Asks the health document at `path` for the revision of the catalog, several times. One mismatch for each
 * revision that differs from the expected one: `declared`, the revision of a file, otherwise that of the first answer.
 */
export async function checkRevisions(
  origin: string,
  path: string,
  declared: string | undefined,
): Promise<Mismatch[]> {
  const answers = await visitEach(Array.from({ length: REVISION_QUESTIONS }), () => visit(origin, path))
  const revisions = answers.flatMap((got) =>
    got.kind === 'answer' ? (textAt(readObject(got.text), 'revision') ?? []) : [],
  )
  const [first, ...others] = [...new Set(declared === undefined ? revisions : [declared, ...revisions])]
  const reference = declared === undefined ? path : 'catalog'
  return first === undefined
    ? []
    : others.map((says) => ({ ...documentMismatch(path, 'revision', says, first), reference }))
}

async function readText(origin: string, path: string, differences: Mismatch[]): Promise<string | undefined> {
  const got = await visit(origin, path)
  if (got.kind === 'answer' && got.status === 200) return got.text
  const says = got.kind === 'fault' ? got.reason : String(got.status)
  differences.push(documentMismatch(path, 'status', says, '200'))
  return undefined
}

/** A mismatch of a document as a whole. */
function documentMismatch(document: string, field: string, says: string, expected: string): Mismatch {
  return { path: '*', field, document, says, reference: OPENAPI, expected }
}
