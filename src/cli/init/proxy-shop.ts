import { withoutPaid } from '../../engine/catalog/route-path.ts'
import { CatalogError, type Issue } from '../../engine/catalog/issue.ts'
import { compileText } from '../../engine/catalog/load-catalog.ts'
import { documentNames } from '../../engine/documents/all.ts'
import { compact, type Json, type JsonObject } from '../../engine/base/json.ts'
import { checkHeaderBudget } from '../../engine/x402/x402-challenge.ts'
import { at, textAt } from '../json-access.ts'
import { clean } from '../../command-line/printable.ts'
import { spell, spellDraft, type Draft } from '../route-yaml.ts'
import type { Files } from '../new-files.ts'
import { shorten, uniqueNames } from './names.ts'
import type { Shown } from './example.ts'
import { convertOperations, type Converted, type ConvertedRoute, type Filter } from './operation.ts'
import { type BrokenReferences, follow } from './reference.ts'
import { importTable } from './report.ts'
import { NOWHERE, serverOf } from './upstream-server.ts'
import { commonFiles, type PackageSource } from './project-files.ts'

export interface ProxyShop {
  readonly files: Files
  /** What became of the operations that cannot be sold, or differ from the original. */
  readonly lines: readonly string[]
  /** How many operations are imported, changed and left out. */
  readonly table: readonly string[]
  readonly routes: number
  readonly operations: number
}

export interface ProxyShopSettings {
  readonly name: string
  readonly source: PackageSource
  /** USD of every call; undefined: left for the operator. */
  readonly price: string | undefined
  readonly filter: Filter
  /** Address of the document, if it was read from one. */
  readonly origin: string | undefined
}

/** A shop that sells an API that exists already: every operation that the catalog's check accepts as a route. */
export function sellOpenapi(
  openapi: JsonObject,
  broken: BrokenReferences,
  settings: ProxyShopSettings,
): ProxyShop {
  const base = serverOf(openapi, settings.origin ?? NOWHERE)
  const found = convertOperations({ openapi, broken, base, filter: settings.filter })
  const faults = faultsOf(spellCatalog(openapi, found, base, settings.price ?? '0.001'))
  const converted = found.map((each): Converted => {
    const reason = each.kind === 'route' ? faults.get(each) : undefined
    return reason === undefined ? each : { kind: 'left', title: each.title, why: 'check', reason }
  })
  const { files, routes } = spellCatalog(openapi, converted, base, settings.price)
  const lines = converted.flatMap((each) =>
    each.kind === 'left'
      ? [`${each.title}: left out: ${each.reason}`]
      : each.notes.length === 0
        ? []
        : [`${each.title}:`, ...each.notes.map(({ text }) => `  ${text}`)],
  )
  const unplaced = base.startsWith(NOWHERE)
    ? [`the document does not say where its API is: replace ${NOWHERE} with its address`]
    : []
  return {
    files: new Map([...files, ...commonFiles(settings.name, settings.source, 'javascript')]),
    lines: [...lines, ...unplaced].map(clean),
    table: importTable(converted),
    routes: routes.length,
    operations: converted.length,
  }
}

interface SpelledCatalog {
  readonly files: Files
  readonly routes: readonly ConvertedRoute[]
  /** The line of the catalog on which each route begins. */
  readonly starts: readonly number[]
}

function spellCatalog(
  openapi: JsonObject,
  converted: readonly Converted[],
  base: string,
  price: string | undefined,
): SpelledCatalog {
  const routes = converted.filter((each) => each.kind === 'route')
  const upstream = mostCommon(routes.map((each) => each.base)) ?? base
  const credential = mostCommon(
    routes.flatMap((each) =>
      each.base === upstream && each.credential !== undefined ? [JSON.stringify(each.credential)] : [],
    ),
  )
  const defaults = { price, upstream, credential }
  const files = new Map<string, string>()
  const fileName = uniqueNames('-')
  const lines = head(openapi, defaults)
  const starts = routes.map((route) => {
    const start = lines.length + 1
    lines.push(...spellDraft(draftOf(route, defaults, files, fileName), '  '), '')
    return start
  })
  return { files: new Map([['catalog.yaml', lines.join('\n')], ...files]), routes, starts }
}

/** What the check finds wrong with each route: rules that no document tells, such as the size of an offer. */
function faultsOf({ files, routes, starts }: SpelledCatalog): ReadonlyMap<ConvertedRoute, string> {
  const read = (path: string): Buffer | undefined => {
    const text = files.get(path.replace(/^\.\//, ''))
    return text === undefined ? undefined : Buffer.from(text)
  }
  const inputs = { documents: documentNames, handlers: undefined, read }
  const issues = ((): readonly Issue[] => {
    try {
      const { catalog, at } = compileText('catalog.yaml', files.get('catalog.yaml') ?? '', inputs)
      return checkHeaderBudget(catalog, { baseUrl: 'https://api.example.com', at })
    } catch (fault) {
      if (fault instanceof CatalogError) return fault.issues
      throw fault
    }
  })()
  const errors = issues.filter(({ severity }) => severity === 'error')
  return new Map(
    errors.flatMap(({ position, message }) => {
      const route = routes[starts.findLastIndex((start) => start <= position.line)]
      return route === undefined ? [] : [[route, message] as const]
    }),
  )
}

interface Defaults {
  readonly price: string | undefined
  readonly upstream: string
  /** Credential as JSON. */
  readonly credential: string | undefined
}

function mostCommon(values: readonly string[]): string | undefined {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].toSorted(([, one], [, other]) => other - one)[0]?.[0]
}

function draftOf(
  route: ConvertedRoute,
  defaults: Defaults,
  files: Map<string, string>,
  fileName: (wish: string) => string,
): Draft {
  const { method, path, base, credential, headers, response, body, example } = route
  const isHome = base === defaults.upstream
  const own = isHome ? route.upstream : base + route.upstream
  const isDefault = isHome && (credential === undefined || JSON.stringify(credential) === defaults.credential)
  const slug = fileName(
    `${method.toLowerCase()}-${path.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[-.]+|-+$/g, '')}`,
  )
  const write = (folder: string, value: Json): string => {
    const file = `${folder}/${slug}.json`
    files.set(file, `${JSON.stringify(value, null, 2)}\n`)
    return `./${file}`
  }
  const show = (folder: string, { value, isGenerated }: Shown): string =>
    write(isGenerated ? `${folder}/generated` : folder, value)
  const keys: [string, Json | undefined][] = [
    ['summary', route.summary],
    ['name', route.name],
    ['tool', `${TOOL_SERVER}.${route.tool}`],
    ['description', route.description],
    ['upstream', own === withoutPaid(path) ? undefined : own],
    ['upstream_headers', Object.keys(headers).length === 0 ? undefined : headers],
    ['credential', isDefault ? undefined : credential],
    ['response', Object.keys(response).length === 0 ? undefined : response],
    ['example', example === undefined ? undefined : show('examples', example)],
    [
      'body',
      body === undefined || body.kind === 'properties'
        ? undefined
        : body.kind === 'media'
          ? compact({ media_type: body.type, example: body.example })
          : { schema: write('schemas', body.schema), example: show('bodies', body.example) },
    ],
  ]
  return {
    path: method === 'GET' ? path : `${method} ${path}`,
    price: undefined,
    keys: keys.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])),
    parameters: route.parameters,
    body:
      body?.kind === 'properties'
        ? { mediaType: 'application/x-www-form-urlencoded', properties: body.properties }
        : undefined,
  }
}

/** The MCP server that has all operations as its tools. */
const TOOL_SERVER = 'api'

/** Longest name of a service. */
const NAME = 32

function head(openapi: JsonObject, { price, upstream, credential }: Defaults): string[] {
  const info = follow(openapi, openapi['info'])
  const title = (textAt(info, 'title') ?? '')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^ -~]+/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const name = shorten(title, NAME).trim() || 'My shop'
  const written = follow(openapi, at(info, 'description'))
  const description = (typeof written === 'string' ? written : '').replace(/\s+/g, ' ').trim()
  return [
    ...(price === undefined
      ? ['# Nothing is served before there is a price: under "defaults", or at each route.']
      : []),
    'catalog: 1',
    '',
    'service:',
    `  name: ${spell(name)}`,
    `  version: ${spell(textAt(info, 'version') || '1.0.0')}`,
    ...(description === '' ? [] : [`  description: ${spell(description)}`]),
    '',
    '# PAY_TO is not in this file: set it to an address of yours. The sandbox does not need it.',
    'payments:',
    '  currency: USD',
    '  x402: { networks: [base] }',
    '',
    'mcp_servers:',
    `  ${TOOL_SERVER}: { title: ${spell(name)} }`,
    '',
    'defaults:',
    `  price: ${price ?? '# USD for one call, such as 0.005'}`,
    '  handler: proxy',
    `  upstream: ${spell(upstream)}`,
    ...(credential === undefined ? [] : [`  credential: ${spell(JSON.parse(credential))}`]),
    '',
    'routes:',
  ]
}
