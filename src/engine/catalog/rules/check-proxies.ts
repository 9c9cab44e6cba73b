import { ownDeclaration } from '../arguments.ts'
import { templatesOf } from '../catalog.ts'
import { type CheckContext, type DeclaredPlace, handlerOf, PROXY, routesOf } from '../check-context.ts'
import { didYouMean, error, type Issue, type Position, wordIn } from '../issue.ts'
import type { Path, SourceDocument } from '../yaml-document.ts'

/** Checks that no buyer can redirect the address of a proxy, and that it uses only declared parameters. */
export function* checkProxies(context: CheckContext): Generator<Issue> {
  yield* checkDefaults(context)
  for (const place of routesOf(context.declared)) yield* checkProxy(context, place)
}

const PROXY_KEYS = ['upstream', 'upstream_headers', 'credential'] as const

function* checkProxy({ document, declared }: CheckContext, place: DeclaredPlace): Generator<Issue> {
  const { route, at, path } = place
  if (handlerOf(place) !== PROXY) {
    for (const key of PROXY_KEYS)
      if (route[key] !== undefined)
        yield error('key_misplaced', document.atKey([...at, key]), `"${key}" belongs to handler: proxy`)
    return
  }
  yield* checkHeaders(document, place)
  const written = [...at, 'upstream']
  const isRelative = declared.routes[at[1] ?? '']?.upstream?.startsWith('/') ?? true
  // An invalid default has an error of its own.
  if (isRelative && declared.defaults?.upstream === undefined) {
    if (document.has(['defaults', 'upstream'])) return
    const position = document.has(written) ? document.at(written) : document.atKey(at)
    const message = document.has(written)
      ? 'is a path below defaults.upstream, and there is none: write the whole address, or that default'
      : `${path} is a proxy and needs "upstream": the address it calls, here or under defaults`
    yield error('upstream_missing', position, message)
    return
  }
  const text = document.spelling(written)
  if (text === undefined || (!isRelative && (yield* checkAddress(document, written, text)))) return
  yield* checkTemplates(place, document.at(written), text, 'upstream')
}

/** Reports errors in the address of an upstream. */
function* checkAddress(document: SourceDocument, at: Path, text: string): Generator<Issue, boolean> {
  const position = document.at(at)
  if (!URL.canParse(text.replace(/\{[^{}]*\}/g, 'x'))) {
    const message = 'must be a whole address, such as https://internal.example/prices'
    yield error('upstream_invalid', position, message)
    return true
  }
  const [inHost] = templatesOf(text.replace(/^https?:\/\//, '').split(/[/?#]/)[0] ?? '')
  if (inHost === undefined) return false
  const message = `{${inHost}} is part of the host, so a buyer could choose where the request and its credential go; use parameters in the path or the query`
  yield error('upstream_invalid', wordIn(position, text, `{${inHost}}`), message)
  return true
}

function* checkTemplates(
  place: DeclaredPlace,
  position: Position,
  text: string,
  what: string,
): Generator<Issue> {
  const known = ownDeclaration(place).parameters.map(({ name }) => name)
  for (const written of templatesOf(text)) {
    const name = written.replace(/\*$/, '')
    const at = wordIn(position, text, `{${written}}`)
    if (!known.includes(name)) {
      const message = `{${name}} of the ${what} has no entry under parameters${didYouMean(name, known)}`
      yield error('parameter_undeclared', at, message)
    } else if (
      name !== written &&
      !text.slice(text.indexOf('?') + 1 || text.length).includes(`={${written}}`)
    ) {
      const message = `{${written}} repeats a key of the query: write "?${name}={${written}}"`
      yield error('upstream_invalid', at, message)
    }
  }
}

/** Headers that the HTTP client sets itself. */
const FRAMING =
  /^(?:connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i

function* checkHeaders(document: SourceDocument, place: DeclaredPlace): Generator<Issue> {
  const { route, at } = place
  for (const [name, text] of Object.entries(route.upstream_headers ?? {})) {
    const key = [...at, 'upstream_headers', name]
    if (FRAMING.test(name))
      yield error('header_invalid', document.atKey(key), `${name} belongs to the connection: remove it`)
    yield* checkTemplates(place, document.at(key), text, 'header')
  }
}

/** Checks the defaults of proxies; other defaults are checked where they are used. */
function* checkDefaults({ declared: { defaults }, document }: CheckContext): Generator<Issue> {
  const { upstream, credential } = defaults ?? {}
  const at = ['defaults', 'upstream']
  if (upstream === undefined) {
    if (credential === undefined || document.has(at)) return
    const message =
      'is sent to defaults.upstream only, and there is none: write it, or a credential at each route'
    yield error('upstream_missing', document.atKey(['defaults', 'credential']), message)
    return
  }
  const [wrong] = templatesOf(upstream)
  if (wrong !== undefined || /[?#]/.test(upstream))
    yield error('upstream_invalid', document.at(at), 'has paths below it: no {parameters}, no "?" and no "#"')
  else yield* checkAddress(document, at, upstream)
}
