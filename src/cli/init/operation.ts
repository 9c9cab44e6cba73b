import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import type { Draft } from '../route-yaml.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'
import { credentialOf, credentialOfKey, isKey } from './credential.ts'
import { bundle, sampleOf, validatorOf } from './json-schema.ts'
import { follow, shorten, snake, uniqueNames } from './read-openapi.ts'
import { mapForm, mapParameter, type Mapped } from './parameter.ts'

/** What becomes of one operation of an API. */
export type Converted =
  ConvertedRoute | { readonly kind: 'left'; readonly title: string; readonly reason: string }

export interface ConvertedRoute {
  readonly kind: 'route'
  /** `GET /pets/{petId}`. */
  readonly title: string
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
  readonly response: JsonObject
  /** An answer that the API shows, or one made from its schema. */
  readonly example: Shown | undefined
  /** What is otherwise than in the original, one sentence each. */
  readonly notes: readonly string[]
}

export interface Shown {
  readonly value: Json
  readonly isGenerated: boolean
}

export type ConvertedBody =
  | { readonly kind: 'schema'; readonly schema: JsonObject; readonly example: Shown }
  | { readonly kind: 'properties'; readonly properties: Draft['parameters'] }
  | { readonly kind: 'media'; readonly type: string; readonly example?: string }

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

/** Whether an operation is wanted, by its title. */
export type Filter = (title: string) => boolean

/** Every operation in the order of the document; `base` is the address of the API. */
export function convertOperations(
  openapi: JsonObject,
  base: string,
  isWanted: Filter = () => true,
): Converted[] {
  const taken = new Set<string>()
  return membersAt(openapi, 'paths').flatMap(([path, given]) => {
    const item = follow(openapi, given)
    return membersAt(item)
      .filter(([method]) => METHODS.has(method) && isWanted(titleOf(method, path)))
      .map(([method, operation]): Converted => {
        const title = titleOf(method, path)
        const left = (reason: string): Converted => ({ kind: 'left', title, reason })
        if (!SOLD.has(method)) return left('its method cannot be sold')
        if (!isJsonObject(item) || !isJsonObject(operation)) return left('it is not an object')
        const place = serverOf(operation, serverOf(item, base))
        return convert(openapi, { title, method, path, base: place, item, operation }, taken)
      })
  })
}

function titleOf(method: string, path: string): string {
  return `${method.toUpperCase()} ${path}`
}

function convert(openapi: JsonObject, original: Original, taken: Set<string>): Converted {
  const { title, method, path, base, operation } = original
  const left = (reason: string): Converted => ({ kind: 'left', title, reason })
  const statuses = membersAt(operation, 'responses').map(([status]) => status)
  if (statuses.some((each) => each.startsWith('3')) && !statuses.some((each) => /^(?:2|default)/i.test(each)))
    return left('it answers with a redirect')
  const body = bodyOf(openapi, operation)
  if (body.kind === 'unfit') return left(`it needs a body of ${body.type}`)
  if (method === 'get' && body.kind !== 'none' && body.required) return left('it is a GET that needs a body')
  const members = body.kind === 'form' ? body.members : []
  const { mapped, keys } = parametersOf(openapi, original)
  const lost = [...mapped, ...members].filter((each) => each.kind === 'left')
  const needed = lost.find(({ required }) => required)
  if (needed !== undefined) return left(`it needs ${needed.wire}, which ${needed.reason}`)
  const properties = members.filter((each) => each.kind === 'mapped')
  const named = withNames(mapped, properties)
  const security = credentialOf(openapi, operation)
  const [key] = keys
  const credential =
    security.credential ?? (key === undefined ? undefined : credentialOfKey(key.wire, key.place))
  const converted = convertBody(openapi, body, method, properties)
  return {
    kind: 'route',
    title,
    method: method.toUpperCase(),
    path: freePath(taken, method, routePath(path, named)),
    ...wordsOf(operation, title),
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
      ...(operation['deprecated'] === true ? ['is deprecated'] : []),
      ...lost.map(({ wire, reason }) => `${wire} is left out: it ${reason}`),
      ...[...named, ...properties].flatMap((each) => each.notes.map((note) => `${each.wire} ${note}`)),
      ...(key === undefined
        ? []
        : [`${key.wire} is the key of the API: it is a credential, not a parameter`]),
      ...converted.notes,
      ...security.notes,
    ],
  }
}

/** A unique path for each operation: another may differ in the names of its parameters only. */
function freePath(taken: Set<string>, method: string, route: string): string {
  const shapeOf = (path: string): string => `${method} ${path.replace(/\{[^}]*\}/g, '{}')}`
  let path = route
  for (let number = 2; taken.has(shapeOf(path)); number += 1)
    path = route.replace(/^\/paid\/([^/]+)/, (_, first: string) =>
      first.startsWith('{') ? `/paid/${number}/${first}` : `/paid/${first}-${number}`,
    )
  taken.add(shapeOf(path))
  return path
}

type Kept = Extract<Mapped, { readonly kind: 'mapped' }>
interface Named extends Kept {
  readonly name: string
}

interface Parameters {
  readonly mapped: readonly Mapped[]
  /** Those that carry the operator's key. */
  readonly keys: readonly { readonly wire: string; readonly place: string }[]
}

/** Parameters of the operation, and those of its path that it does not declare, template names included. */
function parametersOf(openapi: JsonObject, { path, item, operation }: Original): Parameters {
  const own = listAt(operation, 'parameters').map((each) => mapParameter(openapi, each))
  const isOwn = (one: Mapped): boolean =>
    own.some(({ wire, place }) => wire === one.wire && place === one.place)
  const shared = listAt(item, 'parameters').map((each) => mapParameter(openapi, each))
  const declared = [...shared.filter((each) => !isOwn(each)), ...own].filter(
    // OpenAPI describes these three elsewhere, and Idempotency-Key is taken from the payment.
    ({ place, wire }) =>
      place !== 'header' || !/^(?:accept|content-type|authorization|idempotency-key)$/i.test(wire),
  )
  const isDeclared = (name: string): boolean =>
    declared.some(({ wire, place }) => wire === name && place === 'path')
  const undeclared = [...path.matchAll(/\{([^{}/]+)\}/g)]
    .map(([, name = '']) => name)
    .filter((name) => !isDeclared(name))
  const missing = undeclared.map((name) =>
    mapParameter(openapi, { name, in: 'path', schema: { type: 'string' } }),
  )
  const all = [...missing, ...declared].filter(
    (each) => each.place !== 'path' || path.includes(`{${each.wire}}`),
  )
  return {
    mapped: all.filter(({ wire, place }) => !isKey(openapi, wire, place)),
    keys: all.filter(({ wire, place }) => isKey(openapi, wire, place)),
  }
}

/** Names as a catalog writes them: none twice, and none that the body has. */
function withNames(mapped: readonly Mapped[], properties: readonly Kept[]): Named[] {
  const unique = uniqueNames('_')
  for (const { wire } of [...properties, { wire: 'body' }]) unique(wire)
  return mapped.flatMap((each) =>
    each.kind === 'left' ? [] : [{ ...each, name: unique(snake(each.wire) || each.place) }],
  )
}

function draftOf(name: string, { declared, isGenerated }: Kept): Draft['parameters'][number] {
  return isGenerated ? [name, declared, 'example generated from the schema'] : [name, declared]
}

/** A path under /paid/; characters that a catalog segment cannot contain separate segments or are removed. */
function routePath(path: string, named: readonly Named[]): string {
  const [bare = ''] = path.split(/[?#]/)
  const segments = bare.split('/').flatMap((segment) => {
    const filled = rename(segment, named)
    if (/^\{[a-z0-9_]+\}(?:[.~-][A-Za-z0-9._~-]*)?$/.test(filled)) return [filled]
    return filled
      .split(/(\{[a-z0-9_]+\})/)
      .map((part) => (part.startsWith('{') ? part : part.replace(/[^A-Za-z0-9._~-]+/g, '')))
  })
  const sound = segments.filter((segment) => /[^.]/.test(segment))
  return `/paid/${sound.join('/') || 'index'}`
}

function rename(text: string, named: readonly Named[]): string {
  return text.replace(/\{([^{}/]+)\}/g, (_, wire: string) => {
    const found = named.find((each) => each.wire === wire && each.place === 'path')
    return `{${found?.name ?? snake(wire)}}`
  })
}

/** A proxy passes parameters on by name; the address contains those that the API names differently or repeats. */
function upstreamOf(path: string, named: readonly Named[]): string {
  const [place = '', query] = path.split('?')
  const written = named.filter(
    (each) => each.place === 'query' && (each.wire !== each.name || each.isRepeated),
  )
  const pairs = [
    ...(query === undefined ? [] : [query]),
    ...written.map(
      ({ wire, name, isRepeated }) => `${encodeURIComponent(wire)}={${name}${isRepeated ? '*' : ''}}`,
    ),
  ]
  return rename(place, named) + (pairs.length === 0 ? '' : `?${pairs.join('&')}`)
}

/** Stands where the document does not say where its API is. */
export const NOWHERE = 'https://upstream.example'

/** The first server, its variables at their defaults; a relative URL is resolved against the known address. */
export function serverOf(place: JsonObject, above: string): string {
  const [server] = listAt(place, 'servers')
  const url = textAt(server, 'url')
  if (url === undefined) return above
  const filled = url.replace(
    /\{([^{}]+)\}/g,
    (_, name: string) => textAt(at(server, 'variables', name), 'default') ?? '',
  )
  const whole = URL.canParse(filled, `${above}/`) ? new URL(filled, `${above}/`) : undefined
  return whole === undefined || !/^https?:$/.test(whole.protocol)
    ? above
    : whole.href.replace(/[?#].*$/, '').replace(/\/+$/, '')
}

/** Longest summary in characters. */
const SUMMARY = 200

function wordsOf(operation: JsonObject, title: string): Pick<ConvertedRoute, 'summary' | 'description'> {
  const description = tidy(textAt(operation, 'description') ?? '')
  const [sentence = ''] = (textAt(operation, 'description') ?? '').split(/\n/)
  const text = tidy(textAt(operation, 'summary') ?? '') || tidy(sentence) || title
  const summary = text.length > SUMMARY ? `${shorten(text, SUMMARY - 1)}…` : text
  return { summary, description: description === '' || description === summary ? undefined : description }
}

function tidy(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

type FoundBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'unfit'; readonly type: string }
  | { readonly kind: 'json'; readonly required: boolean; readonly media: Json }
  | { readonly kind: 'form'; readonly required: boolean; readonly members: readonly Mapped[] }
  | { readonly kind: 'media'; readonly required: boolean; readonly type: string; readonly media?: Json }

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/
const FORM_TYPE = 'application/x-www-form-urlencoded'

function bodyOf(openapi: JsonObject, operation: JsonObject): FoundBody {
  const requestBody = follow(openapi, operation['requestBody'])
  const content = membersAt(requestBody, 'content')
  const required = at(requestBody, 'required') === true
  const json = content.find(([type]) => JSON_TYPE.test(type) || type === '*/*')
  if (json !== undefined) return { kind: 'json', required, media: json[1] }
  const form = content.find(([type]) => type.startsWith(FORM_TYPE))
  if (form !== undefined) {
    const schema = follow(openapi, at(form[1], 'schema'))
    const members = mapForm(openapi, schema)
    const isWhole = members.every((each) => each.kind === 'mapped' || !each.required) && members.length > 0
    return isWhole ? { kind: 'form', required, members } : { kind: 'media', required, type: FORM_TYPE }
  }
  const plain = content.find(
    ([type]) => /^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/.test(type) && !type.startsWith('multipart/'),
  )
  if (plain !== undefined) return { kind: 'media', required, type: plain[0], media: plain[1] }
  return content[0] === undefined || !required ? { kind: 'none' } : { kind: 'unfit', type: content[0][0] }
}

/** The example of a body is part of every offer, which has 4 kB. */
const LONGEST_BODY = 1_000

/** What a document shows of a body or an answer. */
function shownIn(openapi: JsonObject, media: Json | undefined): (Json | undefined)[] {
  const named = membersAt(media, 'examples').map(([, each]) => at(follow(openapi, each), 'value'))
  return [at(media, 'example'), ...named, at(follow(openapi, at(media, 'schema')), 'example')]
}

interface BodyAndNotes {
  readonly body: ConvertedBody | undefined
  readonly notes: readonly string[]
}

function convertBody(
  openapi: JsonObject,
  found: FoundBody,
  method: string,
  properties: readonly Kept[],
): BodyAndNotes {
  if (found.kind === 'none' || found.kind === 'unfit') return { body: undefined, notes: [] }
  if (method === 'get') return { body: undefined, notes: ['a GET is sent without its body'] }
  if (found.kind === 'media') {
    const { type, media } = found
    const example = shownIn(openapi, media).find((each) => typeof each === 'string' && each !== '')
    const isShown = typeof example === 'string' && example.length <= LONGEST_BODY && type.startsWith('text/')
    return { body: { kind: 'media', type, ...(isShown ? { example } : {}) }, notes: [] }
  }
  if (found.kind === 'form') {
    const drafts = properties.map((each) => draftOf(each.wire, each))
    return { body: { kind: 'properties', properties: drafts }, notes: [] }
  }
  const schema = bundle(openapi, at(found.media, 'schema') ?? {})
  const isFit = validatorOf(schema)
  const example = findExample(openapi, found.media, LONGEST_BODY, (value) => isFit?.(value) === true)
  if (example !== undefined) return { body: { kind: 'schema', schema, example }, notes: [] }
  return {
    body: { kind: 'media', type: 'application/json' },
    notes: ['takes any JSON body: no example fits the schema of the document'],
  }
}

/** Long answers cost every reader of the documents. */
const LONGEST_EXAMPLE = 8_000

function answerOf(openapi: JsonObject, operation: JsonObject): Pick<ConvertedRoute, 'response' | 'example'> {
  const responses = membersAt(operation, 'responses')
  const [, given] =
    responses.find(([status]) => /^2\d\d$/.test(status)) ??
    responses.find(([status]) => /^(?:2XX|default)$/i.test(status)) ??
    []
  const response = follow(openapi, given)
  const content = membersAt(response, 'content')
  const [type = '', media] =
    content.find(([name]) => JSON_TYPE.test(name) || name === '*/*') ??
    content.find(([name]) => name.startsWith('text/')) ??
    content[0] ??
    []
  const essence = type.split(';')[0]?.trim().toLowerCase() ?? ''
  const isJson = essence === '' || essence === '*/*' || JSON_TYPE.test(essence)
  const headers = membersAt(response, 'headers').map(([name]) => name)
  const passed = headers.filter(
    (name) =>
      /^(?:ETag|Link|Last-Modified|Location|Content-Disposition|Content-Language|X-[A-Za-z0-9-]+)$/i.test(
        name,
      ) && !/^x-rate-?limit/i.test(name),
  )
  return {
    response: {
      ...(/^(?:text\/event-stream|application\/(?:x-ndjson|jsonl))$/.test(essence) ? { stream: true } : {}),
      ...(isJson || !/^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/.test(essence) ? {} : { media_type: essence }),
      ...(passed.length === 0 ? {} : { headers: passed.slice(0, 10) }),
    },
    example: isJson ? exampleOf(openapi, media) : undefined,
  }
}

function exampleOf(openapi: JsonObject, media: Json | undefined): Shown | undefined {
  const found = findExample(openapi, media, LONGEST_EXAMPLE, () => true)
  const isHollow = found?.isGenerated === true && JSON.stringify(found.value).length <= 2
  return isHollow ? undefined : found
}

/** What the document shows of a body or an answer, else the fullest that is made from its schema. */
function findExample(
  openapi: JsonObject,
  media: Json | undefined,
  longest: number,
  isFit: (value: Json) => boolean,
): Shown | undefined {
  const isUsable = (value: Json | undefined): value is Json =>
    (isJsonObject(value) || Array.isArray(value)) &&
    JSON.stringify(value).length <= longest &&
    !JSON.stringify(value).includes('"$ref":') &&
    isFit(value)
  const schema = at(media, 'schema')
  const shown = shownIn(openapi, media).find(isUsable)
  if (shown !== undefined) return { value: shown, isGenerated: false }
  const made = [4, 2, 0].map((optional) => sampleOf(openapi, schema, optional)).find(isUsable)
  return made === undefined ? undefined : { value: made, isGenerated: true }
}
