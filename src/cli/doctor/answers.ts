import { isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { readObject } from '../json-access.ts'
import {
  challengeClaims,
  documentPlaces,
  examplePath,
  openapiOperations,
  READERS,
  splitKey,
} from './claim-readers.ts'
import type { Mismatch, RouteClaims } from './route-claims.ts'
import { visit, visitEach } from './visit.ts'

/** The claims of one part of the service, and errors in how it states them. */
export interface Found {
  readonly claims: readonly RouteClaims[]
  readonly differences: readonly Mismatch[]
}

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

export async function readChallenges(
  origin: string,
  openapi: JsonObject,
  keys: readonly string[],
  progress: (line: string) => void,
): Promise<Found> {
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
  return { claims: challengeClaims(challenges), differences }
}

/** Documents that say something else from one moment to the next. */
const LIVE: ReadonlySet<string> = new Set(['health', 'stats', 'status', 'status-json'])

/** Reads every document: its claims about routes, its presence, and whether its aliases are equal. */
export async function readDocuments(
  origin: string,
  places: ReadonlyMap<string, readonly string[]>,
  known: string,
): Promise<Found> {
  const claims: RouteClaims[] = []
  const differences: Mismatch[] = []
  for (const name of new Set([...READERS.keys(), ...places.keys()])) {
    const [first = '', ...aliases] = places.get(name) ?? []
    const text = first === '' ? undefined : await readText(origin, first, differences)
    if (text === undefined) continue
    const read = READERS.get(name)
    const claimed = read?.(first, text)
    if (read !== undefined && claimed === undefined)
      differences.push(oddity(first, 'form', 'no JSON object', 'a JSON object'))
    if (claimed !== undefined && first !== known) claims.push(claimed)
    for (const alias of aliases) {
      const other = await readText(origin, alias, differences)
      if (other !== undefined && other !== text && !LIVE.has(name))
        differences.push({ ...oddity(alias, 'bytes', 'other bytes', 'the same bytes'), reference: first })
    }
  }
  return { claims, differences }
}

async function readText(origin: string, path: string, differences: Mismatch[]): Promise<string | undefined> {
  const got = await visit(origin, path)
  if (got.kind === 'answer' && got.status === 200) return got.text
  const says = got.kind === 'fault' ? got.reason : String(got.status)
  differences.push(oddity(path, 'status', says, '200'))
  return undefined
}

/** An error of a document as a whole. */
function oddity(document: string, field: string, says: string, expected: string): Mismatch {
  return { path: '*', field, document, says, reference: OPENAPI, expected }
}
