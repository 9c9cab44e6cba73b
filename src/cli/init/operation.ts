import { isJsonObject, type Json, type JsonObject } from '../../engine/internal.ts'
import type { Draft } from '../route-yaml.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'
import { credentialOf, follow, snake } from './openapi.ts'
import { mapParameter, type Mapped } from './parameter.ts'

/** What becomes of one operation of an API. */
export type Converted =
  | {
      readonly kind: 'route'
      /** `GET /pets/{petId}`. */
      readonly title: string
      readonly draft: Draft
      /** An answer that the API shows. */
      readonly example: Json | undefined
      /** What is otherwise than in the original, one sentence each. */
      readonly notes: readonly string[]
    }
  | { readonly kind: 'left'; readonly title: string; readonly reason: string }

const METHODS: ReadonlySet<string> = new Set([
  'get',
  'put',
  'post',
  'delete',
  'options',
  'head',
  'patch',
  'trace',
])

/** Every operation in the order of the document; `base` is the address of the API. */
export function convertOperations(openapi: JsonObject, base: string): Converted[] {
  return membersAt(openapi, 'paths').flatMap(([path, given]) => {
    const item = follow(openapi, given)
    return membersAt(item)
      .filter(([method]) => METHODS.has(method))
      .map(([method, operation]): Converted => {
        const title = `${method.toUpperCase()} ${path}`
        const left = (reason: string): Converted => ({ kind: 'left', title, reason })
        if (method !== 'get') return left('only GET can be sold')
        if (!isJsonObject(item) || !isJsonObject(operation)) return left('it is no object')
        if (operation['deprecated'] === true) return left('it is deprecated')
        return convert(openapi, {
          title,
          path,
          base: serverOf(operation, serverOf(item, base)),
          item,
          operation,
        })
      })
  })
}

interface Original {
  readonly title: string
  readonly path: string
  readonly base: string
  readonly item: JsonObject
  readonly operation: JsonObject
}

function convert(openapi: JsonObject, original: Original): Converted {
  const { title, path, base, operation } = original
  const left = (reason: string): Converted => ({ kind: 'left', title, reason })
  const mapped = parametersOf(openapi, original)
  const kept = mapped.filter((each) => each.kind === 'mapped')
  const lost = mapped.filter((each) => each.kind === 'left')
  const needed = lost.find(({ required }) => required)
  if (needed !== undefined) return left(`it needs ${needed.wire}, which ${needed.reason}`)
  const twice = kept.find(({ name }, place) => kept.findIndex((each) => each.name === name) !== place)
  if (twice !== undefined) return left(`two of its parameters are ${twice.name} in a catalog`)
  const route = routePath(path)
  if (route === undefined) return left('its path has signs that a route cannot have')
  const answer = answerOf(openapi, operation)
  if (answer.kind === 'unfit') return left(`it answers with ${answer.type}: a proxy passes on JSON and text`)
  const { credential, notes } = credentialOf(openapi, operation)
  const keys: [string, Json | undefined][] = [
    ['summary', summaryOf(operation, title)],
    ['description', descriptionOf(operation)],
    ['handler', 'proxy'],
    ['upstream', base + upstreamPath(path) + renamedQuery(kept)],
    ['credential', credential],
  ]
  return {
    kind: 'route',
    title,
    example: answer.example,
    draft: {
      path: route,
      price: undefined,
      keys: keys.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])),
      parameters: kept.map(({ name, declared }) => [name, declared] as const),
    },
    notes: [
      ...lost.map(({ wire, reason }) => `${wire} is left out: it ${reason}`),
      ...kept.flatMap((each) => each.notes.map((note) => `${each.wire} ${note}`)),
      ...notes,
    ],
  }
}

/** Those of the operation, and those of its path that it does not declare anew. */
function parametersOf(openapi: JsonObject, { item, operation }: Original): Mapped[] {
  const own = listAt(operation, 'parameters').map((each) => mapParameter(openapi, each))
  const names = new Set(own.map(({ wire }) => wire))
  const shared = listAt(item, 'parameters').map((each) => mapParameter(openapi, each))
  return [...shared.filter(({ wire }) => !names.has(wire)), ...own]
}

/** Under /paid/, with names as a catalog writes them; undefined when a segment is none of a route. */
function routePath(path: string): string | undefined {
  const segments = path.split('/').filter((segment) => segment !== '')
  const named = segments.map((segment) =>
    segment.replace(/^\{(.+)\}$/, (_, name: string) => `{${snake(name)}}`),
  )
  const sound = named.every((segment) => /^(?:[A-Za-z0-9._~-]+|\{[a-z][a-z0-9_]*\})$/.test(segment))
  return sound && named.some((segment) => !segment.startsWith('{')) ? `/paid/${named.join('/')}` : undefined
}

function upstreamPath(path: string): string {
  return path.replace(/\{([^{}/]+)\}/g, (_, name: string) => `{${snake(name)}}`)
}

/** A proxy hands parameters on by their names; what the API calls otherwise is written into the address. */
function renamedQuery(kept: readonly Extract<Mapped, { readonly kind: 'mapped' }>[]): string {
  const renamed = kept.filter(({ place, wire, name }) => place === 'query' && wire !== name)
  const query = renamed.map(({ wire, name }) => `${encodeURIComponent(wire)}={${name}}`).join('&')
  return query === '' ? '' : `?${query}`
}

/** Stands where the document does not say where its API is. */
export const NOWHERE = 'https://upstream.example'

/** The first server, its variables at their defaults; a path of its own stands on what is known. */
export function serverOf(place: JsonObject, above: string): string {
  const [server] = listAt(place, 'servers')
  const url = textAt(server, 'url')
  if (url === undefined) return above
  const filled = url.replace(
    /\{([^{}]+)\}/g,
    (_, name: string) => textAt(at(server, 'variables', name), 'default') ?? '',
  )
  const whole = URL.canParse(filled, `${above}/`) ? new URL(filled, `${above}/`) : undefined
  return whole === undefined || !/^https?:$/.test(whole.protocol) ? above : whole.href.replace(/\/+$/, '')
}

/** As many characters as a summary has. */
const SUMMARY = 200

function summaryOf(operation: JsonObject, title: string): string {
  const [first = ''] = (textAt(operation, 'description') ?? '').split(/\n/)
  const text = tidy(textAt(operation, 'summary') ?? '') || tidy(first) || title
  return text.length > SUMMARY ? `${text.slice(0, SUMMARY - 1)}…` : text
}

function descriptionOf(operation: JsonObject): string | undefined {
  const text = tidy(textAt(operation, 'description') ?? '')
  return text === '' || textAt(operation, 'summary') === undefined ? undefined : text
}

function tidy(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

type AnswerKind =
  | { readonly kind: 'fit'; readonly example: Json | undefined }
  | { readonly kind: 'unfit'; readonly type: string }

function answerOf(openapi: JsonObject, operation: JsonObject): AnswerKind {
  const [response] = ['200', '2XX', 'default'].flatMap((status) => at(operation, 'responses', status) ?? [])
  const media = membersAt(follow(openapi, response), 'content')
  const [unfit] = media
  const fit = media.filter(([type]) =>
    /^application\/(?:[\w.+-]+\+)?json\b|^text\/(?!html)|^\*\/\*/.test(type),
  )
  if (unfit !== undefined && fit.length === 0) return { kind: 'unfit', type: unfit[0] }
  const shown = fit.flatMap(([, each]) => [
    at(each, 'example'),
    ...membersAt(each, 'examples').map(([, named]) => at(named, 'value')),
    at(follow(openapi, at(each, 'schema')), 'example'),
  ])
  return { kind: 'fit', example: shown.find((value) => isJsonObject(value) || Array.isArray(value)) }
}
