import type { Runtime } from '../../../src/service/sources/source-runtime.ts'
import { fc } from '../fast-check.ts'

/** Malformed answers of each source in the suite; `npm run quality` tries more. */
export const MALFORMED_CASES = Number(process.env['MALFORMED_CASES'] ?? 50)

export interface Change {
  readonly at: number
  readonly value: unknown
}
/** Which answer is changed, and which sources before it fail so that it is reached. */
interface Place {
  readonly path: string
  readonly down: readonly string[]
}

const WEIRD = [
  undefined,
  null,
  true,
  -1,
  0,
  1.5,
  1e21,
  '',
  'x',
  '-5',
  '1e3',
  '9'.repeat(40),
  [],
  {},
  [null],
  { a: 1 },
]
const change = fc.record({ at: fc.nat(), value: fc.constantFrom(...WEIRD) })
/** A few fields dropped or mistyped, or many, anywhere in an answer. */
export const changes = fc.oneof(
  fc.array(change, { minLength: 1, maxLength: 3 }),
  fc.array(change, { minLength: 60, maxLength: 120 }),
)

/** A runtime in which one source answers with changes, and others fail. */
export function spoiling(runtime: Runtime, { path, down }: Place, made: readonly Change[]): Runtime {
  const fetch: Runtime['fetch'] = async (address, options) => {
    if (down.some((name) => address.pathname.endsWith(name))) return new Response('', { status: 403 })
    const reply = await runtime.fetch(address, options)
    if (!address.pathname.endsWith(path)) return reply
    return Response.json(made.reduce(spoil, await new Response(reply.body as ReadableStream).json()))
  }
  return { ...runtime, fetch }
}

/** Throws on NaN, undefined and other values that JSON has no form for. */
export function assertClean(body: unknown): void {
  const faults = leaves(body).filter((leaf) => !isClean(leaf))
  if (faults.length > 0) throw new Error(`Unclean: ${faults.map(String).join()}`)
}

/** Replaces the part at a position, counted through the whole tree; undefined removes it. */
export function spoil(json: unknown, { at, value }: Change): unknown {
  const places: (readonly [Record<string, unknown>, string])[] = []
  const visit = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return
    for (const [key, child] of Object.entries(node)) {
      places.push([node as Record<string, unknown>, key])
      visit(child)
    }
  }
  visit(json)
  const place = places[at % places.length]
  if (!place) return value ?? null
  const [parent, key] = place
  if (value === undefined) delete parent[key]
  // A copy: the next change may reach into it.
  else parent[key] = structuredClone(value)
  return json
}

/** A document in its tags and texts, or in other parts, which `spoilText` replaces. */
export function partsOf(document: string, parts = /(<[^>]*>)/): readonly string[] {
  return document.split(parts)
}

/**
 * Changes a byte of a DNS answer, or cuts it off there. Its number and its question, which ends at `end`, stay as they are:
 * a resolver waits for another answer when they are not its own.
 */
export function spoilDns(answer: Buffer, end: number, { at, value }: Change): Buffer {
  const [first, header] = [2, 10]
  const place = first + (at % (answer.length - end + header))
  const byte = place < first + header ? place : place - first - header + end
  if (value === undefined && byte >= end) return answer.subarray(0, byte)
  const changed = Buffer.from(answer)
  changed[byte] =
    typeof value === 'number' ? value & 255 : (Buffer.from(JSON.stringify(value ?? null))[0] ?? 0)
  return changed
}

/** Replaces parts of a document, each counted through all of it. */
export function spoilText(parts: readonly string[], made: readonly Change[]): string {
  const changed = [...parts]
  for (const { at, value } of made)
    changed[at % parts.length] =
      typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
  return changed.join('')
}

function leaves(node: unknown): unknown[] {
  return typeof node === 'object' && node !== null ? Object.values(node).flatMap(leaves) : [node]
}
function isClean(leaf: unknown): boolean {
  return typeof leaf === 'number'
    ? Number.isFinite(leaf)
    : leaf === null || ['string', 'boolean'].includes(typeof leaf)
}

/** Twitch as it is with three categories: a case then costs five questions instead of sixty. */
export function fewCategories(address: string, body: unknown): unknown {
  if (!address.startsWith('/twitch-api') || typeof body !== 'object' || body === null || !('data' in body))
    return body
  const most = address.endsWith('/games/top') ? 3 : 20
  return { data: Array.isArray(body.data) ? body.data.slice(0, most) : [], pagination: {} }
}
