import { fillPath, isJsonObject, type JsonObject } from '../../engine/internal.ts'
import { readObject } from '../json-access.ts'
import {
  challengeClaims,
  documentPlaces,
  pathExamples,
  READERS,
  type PaymentRequired,
} from './claim-readers.ts'
import type { Mismatch, RouteClaims } from './route-claims.ts'
import { visit } from './visit.ts'

/** What one part of the service says, and what was wrong with how it said it. */
export interface Found {
  readonly claims: readonly RouteClaims[]
  readonly differences: readonly Mismatch[]
}

const OPENAPI = '/openapi.json'

/** The document that lists the others, or a sentence that says why there is none. */
export async function openOpenapi(
  origin: string,
): Promise<{ readonly document: string; readonly openapi: JsonObject } | string> {
  const got = await visit(origin, OPENAPI)
  if (got.kind === 'fault') return `${origin} cannot be reached: ${got.reason}`
  const where = `${origin}${OPENAPI}`
  if (got.status >= 300 && got.status < 400)
    return `${where} leads on to ${got.header('location') ?? 'nowhere'}: ask there`
  if (got.status !== 200)
    return `${where} answers ${got.status}: this is no Ratecard, or it does not serve OpenAPI there`
  if (got.type === 'text/html')
    return `${where} is a web page where JSON is due: this is no Ratecard, or something stands in front of it`
  const value = readObject(got.text)
  if (value === undefined || !isJsonObject(value['paths']))
    return `${where} is no OpenAPI document: this is no Ratecard`
  if (documentPlaces(value).size === 0)
    return `${where} names none of the documents that a Ratecard serves: this is another service`
  return { document: OPENAPI, openapi: value }
}

/** How many routes are asked at a time. */
const ABREAST = 8

export async function readChallenges(
  origin: string,
  openapi: JsonObject,
  paths: readonly string[],
  progress: (line: string) => void,
): Promise<Found> {
  const challenges: PaymentRequired[] = []
  const differences: Mismatch[] = []
  const ask = async (path: string): Promise<void> => {
    progress(path)
    const examples = pathExamples(openapi, path)
    const got = await visit(
      origin,
      fillPath(path, (name) => examples.get(name) ?? name),
    )
    const says = got.kind === 'fault' ? got.reason : String(got.status)
    if (got.kind === 'answer' && got.status === 402)
      challenges.push({ path, header: got.header, body: got.text })
    else
      differences.push({
        path,
        field: 'status',
        document: '402',
        says,
        reference: 'x402 and MPP',
        expected: '402',
      })
  }
  for (let at = 0; at < paths.length; at += ABREAST) await Promise.all(paths.slice(at, at + ABREAST).map(ask))
  return { claims: challengeClaims(challenges), differences }
}

/** Documents that say something else from one moment to the next. */
const LIVE: ReadonlySet<string> = new Set(['health', 'stats', 'status', 'status-json'])

/** Reads every document: what it says of routes, whether it is there, and whether its aliases are the same. */
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

/** What is wrong with a document as a whole. */
function oddity(document: string, field: string, says: string, expected: string): Mismatch {
  return { path: '*', field, document, says, reference: OPENAPI, expected }
}
