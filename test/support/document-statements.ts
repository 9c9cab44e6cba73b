import { routeKey, type Catalog } from '../../src/engine/catalog/catalog.ts'
import type { Json, JsonObject } from '../../src/engine/base/json.ts'
import { at, listAt, readObject, textAt } from '../../src/cli/json-access.ts'
import { keyOf } from '../../src/cli/openapi-document.ts'
import {
  ALL,
  statementOf,
  type RouteStatement,
  type DocumentStatements,
} from '../../src/cli/doctor/route-statements.ts'
import { offerFields, openapiStatements, pathOf, priceAt } from '../../src/cli/doctor/service-statements.ts'

type Covers = DocumentStatements['covers']

const SOLD_NOW: Covers = (valueOf) => valueOf('price') !== 'free' && valueOf('available') !== 'no'
const SOLD_BY_X402: Covers = (valueOf) =>
  valueOf('price') !== 'free' && valueOf('protocols')?.split(', ').includes('x402') !== false
const SKILLS_NOW: Covers = (valueOf) => valueOf('skill') !== undefined && valueOf('available') !== 'no'

/** Which routes have a skill: not their previews. */
export function skillStatements({ routes }: Catalog): DocumentStatements {
  const statements = routes
    .filter(({ operation, full }) => !operation.planned && full === undefined)
    .map((route): [string, RouteStatement] => [
      routeKey(route),
      statementOf(['skill', route.operation.skill]),
    ])
  return { document: 'catalog', covers: () => false, statements: new Map(statements) }
}

type Reader = (document: string, text: string) => DocumentStatements | undefined

/** Documents with prices that machines read, by name; a reader answers undefined if it is not a JSON object. */
export const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['openapi', reader(openapiStatements)],
  ['index', listing(ALL, (index) => listAt(index, 'routes'))],
  ['categories', listing(ALL, (all) => listAt(all, 'categories').flatMap((each) => listAt(each, 'routes')))],
  ['x402', listing(SOLD_BY_X402, (manifest) => listAt(manifest, 'endpoints'))],
  ['x402-resources', listing(SOLD_BY_X402, (listed) => listAt(listed, 'items'))],
  ['agent-card', reader(agentCardStatements)],
  ['llms', guideStatements],
])

function reader(read: (document: string, value: JsonObject) => DocumentStatements): Reader {
  return (document, text) => {
    const value = readObject(text)
    return value === undefined ? undefined : read(document, value)
  }
}

/** Listings have the same members under different roots. */
function listing(covers: Covers, itemsOf: (value: JsonObject) => readonly Json[]): Reader {
  return reader((document, value) => {
    const statements = itemsOf(value).map((item): [string, RouteStatement] => [
      keyOf(textAt(item, 'method') ?? 'GET', textAt(item, 'path') ?? ''),
      statementOf(
        ['price', textAt(item, 'priceUsd') ?? priceAt(item) ?? 'free'],
        ['sample', textAt(item, 'sample')],
        ['available', at(item, 'available') === false ? 'no' : 'yes'],
        ...offerFields(listAt(item, 'accepts'), textAt(item, 'price', 'rule') !== undefined),
      ),
    ])
    return { document, covers, statements: new Map(statements) }
  })
}

/** How the description of a skill ends that is called over HTTP; the summary of the catalog precedes it. */
const CALL =
  /(?:^| )(?:Price: (\$\S+(?: to \$\S+)?) per call(?: \(.*\))?|Free: no payment)\.(?: Charged first\.)? ([A-Z]+) (\S+)(?: or MCP tool \S+ at \S+)?$/

/** A price for people, such as `$0.005 to $0.05`, as machines read it. */
function exact(price: string): string {
  return price.replaceAll(
    /\$(\d+)\.(\d+)/g,
    (_, whole: string, part: string) => `${whole}.${part.padEnd(6, '0')}`,
  )
}

function agentCardStatements(document: string, card: JsonObject): DocumentStatements {
  const statements = listAt(card, 'skills').flatMap((skill): [string, RouteStatement][] => {
    const [, price = 'free', method = '', url] = CALL.exec(textAt(skill, 'description') ?? '') ?? []
    // One that cannot be used now names no route.
    if (url === undefined) return []
    const available = at(skill, 'available') === false ? 'no' : 'yes'
    return [
      [
        keyOf(method, pathOf(url)),
        statementOf(['price', exact(price)], ['skill', textAt(skill, 'id')], ['available', available]),
      ],
    ]
  })
  return { document, covers: SKILLS_NOW, statements: new Map(statements) }
}

const GUIDE_ENTRY =
  /^- \[[^\]]*\]\((\S+?)\): (?:(\$\d+\.\d+(?: to \$\d+\.\d+)?)(?: \(.*?\))?|free)\.(?: (POST|PUT|PATCH|DELETE)[.,])? /gm

/** The statements of the guide for language models, which lists what is sold now. Ignores lines on MCP tools. */
function guideStatements(document: string, text: string): DocumentStatements {
  const statements = [...text.matchAll(GUIDE_ENTRY)].flatMap(
    ([, url = '', price = 'free', method = 'GET']): [string, RouteStatement][] => {
      const path = pathOf(url)
      return path.startsWith('/paid/')
        ? [[keyOf(method, path), statementOf(['price', exact(price)], ['available', 'yes'])]]
        : []
    },
  )
  return { document, covers: SOLD_NOW, statements: new Map(statements) }
}
