import { type Catalog, examplePath, type Parameter, type Route } from '../catalog/catalog.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { formatShort } from '../base/money.ts'
import { sentence } from '../base/words.ts'
import { answerSchema } from './answer-schema.ts'
import { bodyText, capOf, curlOf, exampleUrl, javascriptOf, pythonOf } from './example-programs.ts'
import { chaptersOf, listedRoutes, previewsOf } from './listed-operations.ts'
import { manualRoute } from './manual.ts'
import { viewRoute } from './operation-view.ts'
import { frame, readPage } from './page-frame.ts'
import { type Facts, placedDocuments } from './registry.ts'
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
  const { method } = route.operation
  const paid = route.kind === 'paid'
  const open = paid ? preview : route
  return printPage({
    ...context,
    page: frame(catalog, facts, {
      title: `${title} · ${catalog.service.name}`,
      description: promise,
      url: facts.baseUrl + page,
      style: '',
    }),
    snippets: snippetsOf(facts, route),
    trial: open === undefined ? '' : formOf(open, 'trial'),
    purchase: paid ? formOf(route, 'purchase') : '',
    browsable: method === 'GET',
    offer: paid && method === 'GET' ? exampleUrl('', route) : '',
  })
}

/** A request in a shell, and programs that pay for it. */
function snippetsOf({ baseUrl, protocols }: Facts, route: Route): TemplateContext[] {
  const paid = route.kind === 'paid'
  const note = paid ? 'Shows the price; nothing is charged.' : ''
  const curl = { title: 'curl', note, code: curlOf(baseUrl, route, paid ? '-i' : '') }
  if (!paid || !protocols.includes('x402')) return [curl]
  const cap = `Pays at most $${formatShort(capOf(route))} for a call.`
  return [
    curl,
    { title: 'JavaScript', note: cap, code: javascriptOf(baseUrl, route) },
    { title: 'Python', note: cap, code: pythonOf(baseUrl, route) },
  ]
}

/** A form for a request of the route; `id` distinguishes the forms of a page. */
function formOf(route: Route, id: string): TemplateContext {
  const { method, body } = route.operation
  return {
    id,
    path: route.path,
    // Works without scripts when the path and the body have no parameters.
    action: examplePath(route),
    method,
    media: body?.mediaType ?? '',
    scripted: method !== 'GET' || route.path.includes('{'),
    fields: route.parameters.map((parameter) => fieldOf(parameter, id)),
    body: body?.form === 'whole',
    file: body?.kind === 'bytes',
    text: bodyText(route) ?? '',
  }
}

function fieldOf(parameter: Parameter, form: string): TemplateContext {
  const { name, type, required, enum: allowed, list, example, default: usual } = parameter
  const value = String((required ? (example ?? usual) : (usual ?? '')) ?? '')
  const options = type === 'boolean' ? ['false', 'true'] : (allowed?.map(String) ?? [])
  return {
    id: `${form}.${name}`,
    name,
    place: parameter.in,
    type: list === undefined ? type : `list of ${list.items}`,
    required,
    value,
    options: [...(required || options.includes(value) ? [] : ['']), ...options].map((option) => ({
      option,
      selected: option === value,
    })),
    isChoice: options.length > 0,
    hint: parameter.description === undefined ? '' : sentence(parameter.description),
  }
}

/** Members of an answer without the envelope: types and descriptions; those from an example may be null. */
function fieldRows(schema: JsonObject, isDeclared: boolean): FieldRow[] {
  const rows = [...rowsOf(schema, '', 0)].slice(0, MOST_FIELDS)
  return isDeclared ? rows : rows.map((row) => ({ ...row, type: row.type.replace(NULLABLE, '') }))
}

/** A type alias, so that templates accept it. */
type FieldRow = { readonly name: string; readonly type: string; readonly meaning: string }

const NULLABLE = ', may be null'

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
