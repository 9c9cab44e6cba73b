import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { at, membersAt, textAt } from '../json-access.ts'
import type { Draft } from '../route-yaml.ts'
import { answerOf, type Answer, responsesOf } from './answer.ts'
import { credentialOf, credentialOfKey, isCredential } from './wanted-credential.ts'
import { shorten, snake, uniqueNames } from './names.ts'
import { ownOperations } from './own-operations.ts'
import { draftOf, type Kept, mapParameter, type Mapped, type Named } from './parameter.ts'
import { brokenIn, type BrokenReferences, follow } from './reference.ts'
import { bodyOf, convertBody, type ConvertedBody } from './request-body.ts'
import { freePath, routePath, takenPaths, upstreamOf } from './route-path.ts'
import { serverOf } from './upstream-server.ts'

/** What becomes of one operation of an API. */
export type Converted = ConvertedRoute | LeftOperation

export interface LeftOperation {
  readonly kind: 'left'
  /** `GET /pets/{petId}`. */
  readonly title: string
  readonly why: keyof typeof REASONS
  /** Completes "left out: …". */
  readonly reason: string
}

/** Why operations are left out, as a report counts them. */
export const REASONS = {
  own: 'account, sign-in or administration (--include names what to import of them)',
  body: 'a body that cannot be sold',
  parameter: 'a parameter that cannot be passed on',
  credential: 'a credential that cannot be sent',
  reference: 'a reference that cannot be followed',
  redirect: 'a redirect as the answer',
  method: 'a method that cannot be sold',
  form: 'no valid operation',
  check: 'refused by the check of the catalog',
} as const

/** Ways in which a route differs from the original, as a report counts them. */
export const CHANGES = {
  deprecated: 'deprecated',
  credential: 'a credential of yours instead of a parameter',
  lost: 'without an optional parameter',
  rule: 'a rule that only the API holds',
  body: 'another form of the body',
  answer: 'without a description of the answer',
  name: 'without its operationId',
} as const

export interface Note {
  readonly change: keyof typeof CHANGES
  /** One sentence without subject, or with the name of a parameter as its subject. */
  readonly text: string
}

export interface ConvertedRoute extends Answer {
  readonly kind: 'route'
  /** `GET /pets/{petId}`. */
  readonly title: string
  /** From its operationId. */
  readonly name: string | undefined
  readonly tool: string
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string | undefined
  /** Address of the API that answers it. */
  readonly base: string
  /** Below the base, with {parameters}. */
  readonly upstream: string
  readonly headers: JsonObject
  readonly credential: JsonObject | undefined
  readonly parameters: Draft['parameters']
  readonly body: ConvertedBody | undefined
  readonly notes: readonly Note[]
}

const SOLD: ReadonlySet<string> = new Set(['get', 'put', 'post', 'delete', 'patch'])
const METHODS: ReadonlySet<string> = new Set([...SOLD, 'options', 'head', 'trace', 'query'])

interface Original {
  readonly title: string
  readonly method: string
  readonly path: string
  readonly base: string
  readonly item: JsonObject
  readonly operation: JsonObject
}

/** Which operations are imported, by their titles: `named` are wanted whatever they are. */
export type Filter = (title: string) => 'named' | 'wanted' | 'unwanted'

export interface Conversion {
  readonly openapi: JsonObject
  readonly broken: BrokenReferences
  /** Address of the API. */
  readonly base: string
  readonly filter: Filter
}

interface Place {
  readonly title: string
  readonly method: string
  readonly path: string
  readonly item: Json | undefined
  readonly operation: Json
}

/** Every operation that is not unwanted, in the order of the document. */
export function convertOperations(conversion: Conversion): Converted[] {
  const { openapi, base, filter, broken } = conversion
  const { places, lost } = placesOf(openapi, broken)
  const isOwn = ownOperations(openapi, places)
  const names = { path: takenPaths(), id: uniqueNames('_'), tool: uniqueNames('_') }
  const converted = places.flatMap((place): Converted[] => {
    const { title, method, item, operation } = place
    const wish = filter(title)
    if (wish === 'unwanted') return []
    const left = (why: LeftOperation['why'], reason: string): [Converted] => [
      { kind: 'left', title, why, reason },
    ]
    if (!SOLD.has(method)) return left('method', 'its method cannot be sold')
    if (!isJsonObject(item) || !isJsonObject(operation)) return left('form', 'it is not an object')
    const own = wish === 'named' ? undefined : isOwn(place)
    if (own !== undefined) return left('own', `it is about ${own}`)
    const server = serverOf(operation, serverOf(item, base))
    return [convert(conversion, { ...place, base: server, item, operation }, names)]
  })
  return [...converted, ...lost.filter(({ title }) => filter(title) !== 'unwanted')]
}

interface Places {
  readonly places: readonly Place[]
  /** Paths whose description was not found. */
  readonly lost: readonly LeftOperation[]
}

function placesOf(openapi: JsonObject, broken: BrokenReferences): Places {
  const paths = membersAt(follow(openapi, at(openapi, 'paths'))).filter(([path]) => !path.startsWith('x-'))
  const isLost = (item: Json): boolean => follow(openapi, item) === undefined
  return {
    places: paths.flatMap(([path, given]) => {
      const item = itemOf(openapi, given)
      return membersAt(item)
        .filter(([method]) => METHODS.has(method))
        .map(([method, operation]) => ({
          title: `${method.toUpperCase()} ${path}`,
          method,
          path,
          item,
          operation: follow(openapi, operation) ?? operation,
        }))
    }),
    lost: paths.flatMap(([path, given]): LeftOperation[] => {
      if (!isLost(given)) return []
      const reference = textAt(given, '$ref') ?? ''
      const reason = `it is described by ${reference}, which ${broken.get(reference) ?? 'leads to nothing'}`
      return [{ kind: 'left', title: `* ${path}`, why: 'reference', reason }]
    }),
  }
}

/** A path item, with the members that are written beside its reference. */
function itemOf(openapi: JsonObject, given: Json): Json | undefined {
  const item = follow(openapi, given)
  if (item === given || !isJsonObject(item) || !isJsonObject(given)) return item
  const { $ref: _, ...own } = given
  return { ...item, ...own }
}

interface Names {
  readonly path: Set<string>
  readonly id: (wish: string) => string
  readonly tool: (wish: string) => string
}

function convert({ openapi, broken }: Conversion, original: Original, names: Names): Converted {
  const { title, method, path, base, item, operation } = original
  const left = (why: LeftOperation['why'], reason: string): Converted => ({
    kind: 'left',
    title,
    why,
    reason,
  })
  const responses = responsesOf(openapi, operation)
  const statuses = responses.map(([status]) => status)
  if (statuses.some((each) => each.startsWith('3')) && !statuses.some((each) => /^(?:2|default)/i.test(each)))
    return left('redirect', 'it answers with a redirect')
  const asked = [item['parameters'], operation['parameters'], operation['requestBody']].filter(
    (each) => each !== undefined,
  )
  const missing = brokenIn(openapi, asked, broken)
  if (missing !== undefined) return left('reference', `it needs ${missing}`)
  const body = bodyOf(openapi, operation)
  if (body.kind === 'unfit') return left('body', `it takes a body of ${body.types.join(' or ')}`)
  if (method === 'get' && body.kind !== 'none' && body.required)
    return left('body', 'it is a GET that needs a body')
  const members = body.kind === 'form' ? body.members : []
  const { mapped, keys } = parametersOf(openapi, original)
  const lost = [...mapped, ...members].filter((each) => each.kind === 'left')
  const needed = lost.find(({ required }) => required)
  if (needed !== undefined) return left('parameter', `it needs ${needed.wire}, which ${needed.reason}`)
  const security = credentialOf(openapi, operation)
  const own = keys.map(({ wire, place }) => credentialOfKey(wire, place)).find((each) => each !== undefined)
  const credential = (security.kind === 'credential' ? security.credential : undefined) ?? own
  if (security.kind === 'unfit' && credential === undefined)
    return left('credential', `it requires ${security.wants}, which a proxy cannot send`)
  const inForm = body.kind === 'form' ? body.keys : []
  if (inForm[0] !== undefined && credential === undefined)
    return left('credential', `it needs your ${inForm[0]} in its body, where a proxy sends no credential`)
  const properties = members.filter((each) => each.kind === 'mapped')
  const named = withNames(mapped, properties)
  const converted = convertBody(openapi, body, method, properties)
  const id = textAt(operation, 'operationId') ?? ''
  const unshown = brokenIn(openapi, at(operation, 'responses'), broken)
  return {
    kind: 'route',
    title,
    ...namesOf(id, title, names),
    method: method.toUpperCase(),
    path: freePath(names.path, method, routePath(path, named)),
    ...wordsOf(openapi, operation, title),
    base,
    upstream: upstreamOf(path, named),
    headers: Object.fromEntries(
      named.flatMap(({ place, wire, name }) => (place === 'header' ? [[wire, `{${name}}`] as const] : [])),
    ),
    credential,
    parameters: named.map((each) => draftOf(each.name, each)),
    body: converted.body,
    ...answerOf(openapi, operation),
    notes: [
      ...notesOf('deprecated', operation['deprecated'] === true ? ['is deprecated'] : []),
      ...notesOf('lost', lostNotes(lost)),
      ...notesOf(
        'rule',
        [...named, ...properties].flatMap((each) => each.notes.map((note) => `${each.wire} ${note}`)),
      ),
      ...notesOf(
        'credential',
        [...keys.map(({ wire }) => wire), ...inForm].map(
          (wire) => `${wire} is the key of the API: it is a credential, not a parameter`,
        ),
      ),
      ...notesOf('credential', cookieNotes(credential)),
      ...notesOf('body', converted.notes),
      ...notesOf('answer', unshown === undefined ? [] : [`shows nothing of ${unshown}`]),
    ],
  }
}

function notesOf(change: Note['change'], texts: readonly string[]): Note[] {
  return texts.map((text) => ({ change, text }))
}

/** How many parameters that share a reason are named. */
const MOST_NAMED = 3

function lostNotes(lost: readonly { readonly wire: string; readonly reason: string }[]): string[] {
  const reasons = Array.from(new Set(lost.map(({ reason }) => reason)))
  return reasons.flatMap((reason) => {
    const wires = lost.filter((each) => each.reason === reason).map(({ wire }) => wire)
    if (wires.length <= MOST_NAMED) return wires.map((wire) => `${wire} is left out: it ${reason}`)
    const named = wires.slice(0, MOST_NAMED).join(', ')
    return [`${named} and ${wires.length - MOST_NAMED} more are left out: each ${reason}`]
  })
}

/** A cookie is sent as a whole header. */
function cookieNotes(credential: JsonObject | undefined): string[] {
  const variable = textAt(credential, 'header', 'Cookie')
  return variable === undefined ? [] : [`${variable} is sent as the header Cookie: write "name=value"`]
}

/** Longest name that clients of models take. */
const LONGEST_TOOL = 64

/** The operationId as the name of the route and of its tool. */
function namesOf(id: string, title: string, names: Names): Pick<ConvertedRoute, 'name' | 'tool'> {
  const name = id.replace(/[^A-Za-z0-9_.-]+/g, '_').replace(/^[^A-Za-z]+|_+$/g, '')
  const tool = snake(id) || snake(title)
  return {
    name: name === '' ? undefined : names.id(name),
    tool: names.tool(tool.slice(0, LONGEST_TOOL - 4).replace(/_+$/, '')),
  }
}

interface Parameters {
  readonly mapped: readonly Mapped[]
  /** Parameters that carry the key of the operator. */
  readonly keys: readonly { readonly wire: string; readonly place: string }[]
}

/** Parameters of the operation, and those of its path that it does not declare, template names included. */
function parametersOf(openapi: JsonObject, { path, item, operation }: Original): Parameters {
  const own = declaredIn(openapi, operation)
  const shared = declaredIn(openapi, item).filter((each) => !own.some((mine) => isSame(mine, each)))
  const declared = [...shared, ...own].filter(
    // OpenAPI describes these three elsewhere, and Idempotency-Key is taken from the payment.
    (each) =>
      textAt(each, 'in') !== 'header' ||
      !/^(?:accept|content-type|authorization|idempotency-key)$/i.test(textAt(each, 'name') ?? ''),
  )
  const inPath = [...path.matchAll(/\{([^{}/]+)\}/g)].map(([, name = '']): JsonObject => ({
    name,
    in: 'path',
  }))
  const missing = inPath.filter((each) => !declared.some((one) => isSame(one, each)))
  const all = [...missing.map((each): Json => ({ ...each, schema: { type: 'string' } })), ...declared].filter(
    (each) => textAt(each, 'in') !== 'path' || inPath.some((one) => isSame(one, each)),
  )
  return {
    mapped: all.filter((each) => !isCredential(openapi, each)).map((each) => mapParameter(openapi, each)),
    keys: all
      .filter((each) => isCredential(openapi, each))
      .map((each) => ({ wire: textAt(each, 'name') ?? '', place: textAt(each, 'in') ?? '' })),
  }
}

function declaredIn(openapi: JsonObject, place: JsonObject): Json[] {
  const list = follow(openapi, at(place, 'parameters'))
  return (Array.isArray(list) ? list : []).map((each: Json) => follow(openapi, each) ?? each)
}

function isSame(one: Json, other: Json): boolean {
  return textAt(one, 'name') === textAt(other, 'name') && textAt(one, 'in') === textAt(other, 'in')
}

/** Names as a catalog writes them: none twice, and none that the body has. */
function withNames(mapped: readonly Mapped[], properties: readonly Kept[]): Named[] {
  const unique = uniqueNames('_')
  for (const { wire } of [...properties, { wire: 'body' }]) unique(wire)
  return mapped.flatMap((each) =>
    each.kind === 'left' ? [] : [{ ...each, name: unique(snake(each.wire) || each.place) }],
  )
}

/** Longest summary in characters. */
const SUMMARY = 200

function wordsOf(
  openapi: JsonObject,
  operation: JsonObject,
  title: string,
): Pick<ConvertedRoute, 'summary' | 'description'> {
  const textOf = (key: string): string => {
    const found = follow(openapi, at(operation, key))
    return typeof found === 'string' ? found : ''
  }
  const description = tidy(textOf('description'))
  const [sentence = ''] = textOf('description').split(/\n/)
  const text = tidy(textOf('summary')) || tidy(sentence) || title
  const summary = text.length > SUMMARY ? `${shorten(text, SUMMARY - 1)}…` : text
  return { summary, description: description === '' || description === summary ? undefined : description }
}

function tidy(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
