import { FORM_MEDIA, JSON_MEDIA, kindOf, LARGEST_BYTES, parseSize } from '../body.ts'
import { type CheckContext, type DeclaredPlace, entriesOf, routesOf } from '../check-context.ts'
import { checkExample } from './check-references.ts'
import { error, type Issue } from '../issue.ts'
import type { Path } from '../yaml-document.ts'

/** Checks that requests and answers can have the form that the catalog declares. */
export function* checkBodies(context: CheckContext): Generator<Issue> {
  for (const place of routesOf(context.declared)) {
    yield* checkMethod(context, place)
    if (place.route.body !== undefined) yield* checkBody(context, place, place.route.body)
  }
  for (const { entry, at } of entriesOf(context.declared)) {
    const {
      schema,
      media_type: mediaType = JSON_MEDIA,
      max_size: maxSize,
      stream,
      receipt_event: ends,
    } = entry.response ?? {}
    yield* checkSize(context, maxSize, [...at, 'response', 'max_size'])
    if (stream === true && kindOf(mediaType) === 'json') {
      const message =
        'a stream needs a media type that can be read in pieces: write "media_type: text/event-stream" or "application/x-ndjson"'
      yield error('stream_unreadable', context.document.atKey([...at, 'response', 'stream']), message)
    }
    if (ends === true && (stream !== true || mediaType !== 'text/event-stream')) {
      const message =
        'only a stream of text/event-stream has events: add "stream" and "media_type", or remove it'
      const position = context.document.atKey([...at, 'response', 'receipt_event'])
      yield error('receipt_event_misplaced', position, message)
    }
    if (schema !== undefined && kindOf(mediaType) !== 'json')
      yield schemaMisplaced(context, [...at, 'response', 'schema'], mediaType)
  }
}

function* checkMethod(
  { document }: CheckContext,
  { method, path, route, at }: DeclaredPlace,
): Generator<Issue> {
  if (method === 'GET' && route.body !== undefined) {
    const message = `requests by GET have no body: write "POST ${path}", or declare parameters`
    yield error('body_of_get', document.atKey([...at, 'body']), message)
  }
  if (method !== 'GET' && route.cache !== undefined) {
    const message = `a call by ${method} has effects, and its answer is never reused: remove "cache"`
    yield error('cache_misplaced', document.atKey([...at, 'cache']), message)
  } else if (route.response?.stream === true && route.cache !== undefined) {
    const message = 'a stream is sent while it is made, and never reused: remove "cache"'
    yield error('cache_misplaced', document.atKey([...at, 'cache']), message)
  }
}

type DeclaredBody = NonNullable<DeclaredPlace['route']['body']>

function* checkBody(context: CheckContext, place: DeclaredPlace, body: DeclaredBody): Generator<Issue> {
  const { document } = context
  const at = [...place.at, 'body']
  const { properties, schema, media_type: mediaType = JSON_MEDIA } = body
  const kind = kindOf(mediaType)
  yield* checkSize(context, body.max_size, [...at, 'max_size'])
  if (mediaType.startsWith('multipart/')) {
    const message = `bodies of ${mediaType} are not supported: take the file itself as the body`
    yield error('media_type_unsupported', document.at([...at, 'media_type']), message)
  }
  if (properties === undefined && schema === undefined && body.media_type === undefined) {
    const message = 'says nothing of the body: write "properties", "schema" or "media_type"'
    yield error('body_unspecified', document.atKey(at), message)
  }
  if (properties !== undefined && schema !== undefined) {
    const message = 'a body has "properties" or a "schema": keep one of them'
    yield error('body_twice', document.atKey([...at, 'schema']), message)
  }
  if (schema !== undefined && kind !== 'json') yield schemaMisplaced(context, [...at, 'schema'], mediaType)
  if (properties !== undefined && kind !== 'json' && kind !== 'form') {
    const message = `a body of ${mediaType} has no properties: use ${JSON_MEDIA} or ${FORM_MEDIA}`
    yield error('properties_misplaced', document.atKey([...at, 'properties']), message)
  }
  yield* checkNames(context, place, body)
  if (kind === 'form')
    for (const [name, { type }] of Object.entries(properties ?? {}))
      if (type === 'object')
        yield error(
          'object_in_form',
          document.at([...at, 'properties', name, 'type']),
          `${name} is an object, which no form can carry: use ${JSON_MEDIA}`,
        )
  if (schema !== undefined && body.example === undefined) {
    const message = 'needs an "example": agents and registries call with it'
    yield error('example_missing', document.atKey(at), message)
  }
  if (kind === 'text') {
    if (body.example === undefined || typeof body.example === 'string') return
    const message = `the example of a body of ${mediaType} is the text itself`
    return yield error('example_unfit', document.at([...at, 'example']), message)
  }
  yield* checkExample(context, {
    of: 'body',
    example: body.example,
    exampleAt: [...at, 'example'],
    schema,
    schemaAt: [...at, 'schema'],
  })
}

/** Handlers receive path, query and body parameters under one set of names. */
function* checkNames(
  { document }: CheckContext,
  { route, at }: DeclaredPlace,
  { properties }: DeclaredBody,
): Generator<Issue> {
  const parameters = Object.keys(route.parameters ?? {})
  for (const name of parameters) {
    if (properties !== undefined ? !Object.hasOwn(properties, name) : name !== 'body') continue
    const owner = properties === undefined ? ['parameters', name] : ['body', 'properties', name]
    const message =
      properties === undefined
        ? 'handlers receive the whole body as "body": give the parameter another name'
        : `"${name}" is a parameter of the path or query too: give one of them another name`
    yield error('name_repeated', document.atKey([...at, ...owner]), message)
  }
}

function* checkSize({ document }: CheckContext, size: string | undefined, at: Path): Generator<Issue> {
  if ((parseSize(size ?? '') ?? 0) > LARGEST_BYTES)
    yield error('size_too_large', document.at(at), `must be at most ${LARGEST_BYTES / 1_000_000} MB`)
}

function schemaMisplaced({ document }: CheckContext, at: Path, mediaType: string): Issue {
  const message = `a JSON Schema says nothing about ${mediaType}: remove it`
  return error('schema_misplaced', document.atKey(at), message)
}
