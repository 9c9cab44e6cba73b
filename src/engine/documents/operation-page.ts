import { type Catalog, examplePath, type Parameter, type Route } from '../catalog/catalog.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { formatShort } from '../base/money.ts'
import { joinSentences, sentence } from '../base/words.ts'
import { answerSchema } from './answer-schema.ts'
import {
  bodyText,
  capOf,
  curlOf,
  exampleUrl,
  javascriptOf,
  payCommandOf,
  pythonOf,
} from './example-programs.ts'
import { chaptersOf, listedRoutes, listedTools, previewsOf } from './listed-operations.ts'
import { manualRoute } from './manual.ts'
import { addCommand, exampleCall } from './mcp-server-page.ts'
import { spellDollars, viewRoute } from './operation-view.ts'
import { frame, readPage } from './page-frame.ts'
import { type Facts, placedDocuments } from './registry.ts'
import { guideOf, trailOf } from './site-guide.ts'
import { readMarkdown, type TemplateContext } from './template.ts'

const printPage = readPage('operation.html.hbs')
const printMarkdown = readMarkdown('operation.md.hbs')

/** Routes with a page: all except samples, which are on the page of their paid route. */
export function pagedRoutes(catalog: Catalog): Route[] {
  return chaptersOf(catalog, listedRoutes(catalog)).flatMap(({ routes }) => routes)
}

/** The page of one route and its Markdown version; rendered on request, since a catalog may have thousands. */
export function renderOperation(
  catalog: Catalog,
  facts: Facts,
  route: Route,
  form: 'page' | 'markdown',
): string {
  const preview = previewsOf(listedRoutes(catalog)).get(route.operation)
  const { title, promise, page } = viewRoute(catalog, facts, route)
  const isSold = route.kind === 'paid' && facts.protocols.includes('x402')
  const context = {
    ...manualRoute(catalog, facts, route, preview),
    client: isSold ? javascriptOf(facts.baseUrl, route) : '',
    cap: `$${formatShort(capOf(route))}`,
    errorsPath:
      placedDocuments(catalog, facts.baseUrl).find(({ name }) => name === 'docs-errors')?.paths[0] ?? '',
    markdown: `${page}.md`,
    fields: fieldRows(answerSchema(catalog, route), route.operation.responseSchema !== undefined),
  }
  if (form === 'markdown') return printMarkdown(context)
  return printPage({
    ...context,
    page: frame(catalog, facts, {
      title: `${title} · ${catalog.service.name}`,
      description: promise,
      url: facts.baseUrl + page,
      style: '',
    }),
    guide: guideOf(catalog, facts, route),
    trail: trailOf(catalog, facts, route),
    form: formOf(route, preview),
    snippets: snippetsOf(catalog, facts, route),
    url: exampleUrl(facts.baseUrl, route),
    body: bodyText(route) ?? '',
    arguments: JSON.stringify(argumentsOf(catalog, facts, route) ?? {}),
  })
}

/** A request in a shell, programs that pay for it, and the tool that does the same. */
function snippetsOf(catalog: Catalog, facts: Facts, route: Route): TemplateContext[] {
  return [...programsOf(facts, route), ...toolSnippet(catalog, facts, route)]
}

function toolSnippet(catalog: Catalog, facts: Facts, route: Route): TemplateContext[] {
  const listed = listedTools(catalog, facts).find((each) => each.route === route)
  if (listed === undefined) return []
  const { name, arguments: given } = exampleCall(listed)
  const call = `{"name":${JSON.stringify(name)},"arguments":${JSON.stringify(given)}}`
  const note = `The tool ${name} does the same. A client that cannot pay gets it through: npx ratecard-buyer mcp ${facts.baseUrl}`
  const code = `${addCommand(listed.tool.server, listed.url)}\n\n# tools/call\n${call}`
  return [{ title: 'MCP', note, code }]
}

function argumentsOf(catalog: Catalog, facts: Facts, route: Route): JsonObject | undefined {
  const listed = listedTools(catalog, facts).find((each) => each.route === route)
  return listed === undefined ? undefined : exampleCall(listed).arguments
}

function programsOf({ baseUrl, protocols }: Facts, route: Route): TemplateContext[] {
  const paid = route.kind === 'paid'
  const note = paid ? 'Shows the price; nothing is charged.' : ''
  const curl = { title: 'curl', note, code: curlOf(baseUrl, route, paid ? '-i' : '') }
  if (!paid || !protocols.includes('x402')) return [curl]
  const cap = `Pays at most $${formatShort(capOf(route))} for a call.`
  return [
    curl,
    {
      title: 'Terminal',
      note: `${cap} PAYER_PRIVATE_KEY is the key of the wallet.`,
      code: payCommandOf(baseUrl, route),
    },
    { title: 'JavaScript', note: cap, code: javascriptOf(baseUrl, route) },
    { title: 'Python', note: cap, code: pythonOf(baseUrl, route) },
  ]
}

/** One form for a call and for its free sample. */
function formOf(route: Route, preview: Route | undefined): TemplateContext {
  const { path, parameters, kind, operation } = route
  const { method, body, price } = operation
  const sample = kind === 'paid' ? preview : undefined
  const shared = new Set(sample?.parameters.map(({ name }) => name))
  const isOwn = ({ name }: Parameter): boolean => parameters.every((each) => each.name !== name)
  const onlyCall = sample === undefined ? '' : 'call'
  return {
    path,
    // Works without scripts when neither the path nor the body has parameters.
    action: examplePath(route),
    method,
    media: body?.mediaType ?? '',
    scripted: method !== 'GET' || path.includes('{') || sample?.path.includes('{') === true,
    sample: sample?.path ?? '',
    sold: kind === 'paid',
    // Of a computed price, which the 402 of the call states.
    counted: typeof price === 'object',
    price: typeof price === 'bigint' ? spellDollars(price, operation.meter) : '',
    offer: kind === 'paid' && method === 'GET' ? exampleUrl('', route) : '',
    fields: [
      ...parameters.map((parameter) => fieldOf(parameter, shared.has(parameter.name) ? '' : onlyCall)),
      ...(sample?.parameters.filter(isOwn).map((parameter) => fieldOf(parameter, 'sample')) ?? []),
    ],
    body: body?.form === 'whole',
    file: body?.kind === 'bytes',
    text: bodyText(route) ?? '',
  }
}

/** The most that a text of a query may have unless the catalog says otherwise: one for more is meant for paragraphs. */
const LONGEST_LINE = 2_000

/** A field; `only` names the request that takes it, unless both do. */
function fieldOf(parameter: Parameter, only: '' | 'call' | 'sample'): TemplateContext {
  const { name, type, required, enum: allowed, list, example, default: usual } = parameter
  const value = String((required ? (example ?? usual) : (usual ?? '')) ?? '')
  const options = type === 'boolean' ? ['false', 'true'] : (allowed?.map(String) ?? [])
  const isText = type === 'string' && list === undefined && parameter.format === undefined
  const isLong = isText && (parameter.maxLength ?? Infinity) > LONGEST_LINE
  const words = parameter.description === undefined ? '' : sentence(parameter.description)
  return {
    id: `call.${name}`,
    name,
    only,
    place: parameter.in,
    type: list === undefined ? type : `list of ${list.items}`,
    required,
    value,
    options: [...(required || options.includes(value) ? [] : ['']), ...options].map((option) => ({
      option,
      selected: option === value,
    })),
    isChoice: options.length > 0,
    isArea: type === 'object' || isLong,
    hint: joinSentences(only === 'sample' ? 'Of the sample.' : '', words),
  }
}

/** Members of an answer without the envelope: types and descriptions; those from an example may be null. */
function fieldRows(schema: JsonObject, isDeclared: boolean): FieldRow[] {
  const rows = [...rowsOf(schema, '', 0)].slice(0, MOST_FIELDS)
  return isDeclared ? rows : rows.map((row) => ({ ...row, type: row.type.replace(NULLABLE, '') }))
}

/** A type alias, so that templates accept it. */
type FieldRow = { readonly name: string; readonly type: string; readonly meaning: string }

/** After a type: it may be null. */
const NULLABLE = '?'

const MOST_FIELDS = 60
const DEEPEST = 3

function* rowsOf(schema: JsonObject, prefix: string, depth: number): Generator<FieldRow> {
  const { properties } = schema
  if (depth > DEEPEST || !isJsonObject(properties)) return
  for (const [name, member] of Object.entries(properties)) {
    if (!isJsonObject(member)) continue
    const { description, items } = member
    const path = `${prefix}${name}`
    yield {
      name: path,
      type: typeName(member),
      meaning: typeof description === 'string' ? sentence(description) : '',
    }
    if (isJsonObject(items)) yield* rowsOf(items, `${path}[].`, depth + 1)
    else yield* rowsOf(member, `${path}.`, depth + 1)
  }
}

function typeName({ type, enum: allowed, const: only }: JsonObject): string {
  const types: readonly Json[] = Array.isArray(type) ? type : type === undefined ? [] : [type]
  const words = types.filter((each) => each !== 'null').map(String)
  const values = only === undefined ? allowed : [only]
  const choice = Array.isArray(values) ? `: ${values.map(String).join(', ')}` : ''
  return `${words.join(' or ')}${types.length > words.length ? NULLABLE : ''}${choice}`
}
