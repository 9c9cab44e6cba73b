import type { Catalog, Credential, Operation, Parameter, Route } from '../catalog/catalog.ts'
import { bodyExample, kindOf } from '../catalog/body.ts'
import { embedSchema, inputSchema, sizeLimit } from '../catalog/input-schema.ts'
import { priceRange } from '../catalog/price/text.ts'
import { compact, type Json, type JsonObject } from '../base/json.ts'
import { hasContent, type SuccessStatus } from '../base/success-status.ts'
import { answerSchema } from './answer-schema.ts'
import { exampleAnswer } from './answer-example.ts'
import { listedRoutes } from './listed-operations.ts'
import { openapiComponents, paymentInfo, receiptHeaders } from './openapi-components.ts'
import { formSchema, openapiParameter } from './openapi-parameters.ts'
import { chargingOfAll, isUpfront, type OperationView, viewRoute } from './operation-view.ts'
import { howToPay, moneyNotice, nameMark } from './payment-guide.ts'
import {
  addressOf,
  defineDocument,
  type Facts,
  packJson,
  type PlacedDocument,
  placedDocuments,
} from './registry.ts'
import { shapeOf, shareSchemas } from './shared-schemas.ts'

/** Generates the OpenAPI 3.1.0 description of everything that is served; other documents refer to it. */
export const openapi = defineDocument('openapi', (catalog, facts) => {
  const routes = listedRoutes(catalog)
  const placed = placedDocuments(catalog, facts.baseUrl)
  const isListed = catalog.openapiDocuments === 'list'
  const documents = isListed ? placed : []
  const charging = chargingOfAll(routes.filter(({ kind }) => kind === 'paid'))
  const components = openapiComponents(catalog, facts.protocols, charging)
  const answers = answerSchemas(catalog, routes, Object.keys(components.schemas))
  const paths: Record<string, JsonObject> = {}
  for (const route of routes)
    paths[route.path] = {
      ...paths[route.path],
      [route.operation.method.toLowerCase()]: openapiOperation(
        catalog,
        facts,
        route,
        answers.schemas.get(route),
      ),
    }
  for (const [path, item] of documents.flatMap(documentPaths)) paths[path] = { ...paths[path], ...item }
  return packJson({
    openapi: '3.1.0',
    info: info(catalog, facts),
    servers: [{ url: facts.baseUrl }],
    tags: tags(catalog, routes, documents.length),
    ...extensions(catalog, facts),
    ...(isListed
      ? {}
      : { 'x-documents': Object.fromEntries(placed.map(({ name, paths }) => [name, [...paths]])) }),
    paths,
    components: {
      ...components,
      schemas: { ...components.schemas, ...answers.components },
      ...securitySchemes(catalog),
    },
  })
})

/** Extensions at the root for registries of paid services: MPP, AgentCash and x402scan. */
function extensions(catalog: Catalog, { baseUrl }: Facts): JsonObject {
  const { tags: words, ownershipProofs } = catalog.service
  const llms = addressOf('llms', catalog, baseUrl)
  const proofs = ownershipProofs.length === 0 ? undefined : { ownershipProofs }
  return compact({
    'x-service-info': compact({
      categories: words.length === 0 ? undefined : words,
      docs: compact({
        homepage: baseUrl,
        apiReference: addressOf('docs', catalog, baseUrl) ?? addressOf('openapi', catalog, baseUrl),
        llms,
      }),
    }),
    'x-agentcash-guidance': llms === undefined ? undefined : { llmsTxtUrl: llms },
    'x-agentcash-provenance': proofs,
    // The older name, which x402scan still reads.
    'x-discovery': proofs,
  })
}

function info(catalog: Catalog, facts: Facts): JsonObject {
  const { name, version, description, contact, guidance, license } = catalog.service
  const notice = moneyNotice(catalog, facts)
  return compact({
    title: name + nameMark(catalog, facts),
    version,
    description: notice === '' ? description : `${notice}\n\n${description}`,
    contact: Object.keys(contact).length === 0 ? undefined : compact({ ...contact }),
    license: license === undefined ? undefined : compact({ ...license }),
    'x-guidance': guidance ?? howToPay(catalog, facts).join('\n'),
  })
}

function tags({ categories }: Catalog, routes: readonly Route[], documents: number): JsonObject[] {
  const used = new Set(routes.flatMap(({ operation }) => operation.category ?? []))
  const named = [...used].map((name) => ({ name, description: categories[name] ?? name }))
  if (documents === 0 || used.has(DISCOVERY)) return named
  return [...named, { name: DISCOVERY, description: 'Documents about the service itself' }]
}

/** How callers say who they are, by the name of the scheme. */
function securitySchemes(catalog: Catalog): JsonObject {
  const all = catalog.routes.flatMap((route) => identitiesOf(catalog, route))
  if (all.length === 0) return {}
  return { securitySchemes: Object.assign({}, ...all) }
}

/** What a route takes instead of a payment, or needs for a free answer: Security Schemes by name, one set for each way. */
function identitiesOf({ apiKeys }: Catalog, { kind, operation, requires }: Route): JsonObject[] {
  const { access, upstream } = operation
  const ways: JsonObject[] = []
  // `Authorization: Bearer` works too.
  if (kind === 'paid' && access.apiKeys && apiKeys !== undefined)
    ways.push({ apiKey: inHeader(apiKeys.header) })
  if (kind === 'paid' && access.upstream && upstream?.credential !== undefined)
    ways.push(upstreamSchemes(upstream.credential))
  if (requires === 'signer') ways.push({ signIn: inHeader('SIGN-IN-WITH-X') })
  return ways
}

function inHeader(name: string): JsonObject {
  return { type: 'apiKey', in: 'header', name }
}

function upstreamSchemes(credential: Credential): JsonObject {
  if (credential.kind !== 'header')
    return { [`upstream_${credential.kind}`]: { type: 'http', scheme: credential.kind } }
  const names = Object.keys(credential.values)
  return Object.fromEntries(names.map((name) => [`upstream_${name.toLowerCase()}`, inHeader(name)]))
}

/** Each way in; a paid route has the payment besides. */
function security(catalog: Catalog, route: Route): JsonObject[] {
  const ways = identitiesOf(catalog, route).map((schemes): JsonObject =>
    Object.fromEntries(Object.keys(schemes).map((name) => [name, []])),
  )
  return ways.length === 0 || route.requires !== undefined ? ways : [...ways, {}]
}

/** The tag of the generated documents. */
const DISCOVERY = 'discovery'

const FAILURES: JsonObject = { default: { $ref: '#/components/responses/Problem' } }

/** The Operation Object of a route. */
function openapiOperation(
  catalog: Catalog,
  facts: Facts,
  route: Route,
  answer: JsonObject | undefined,
): JsonObject {
  const { operation } = route
  const view = viewRoute(catalog, facts, route)
  const parameters = route.parameters.filter((each) => each.in !== 'body')
  return compact({
    operationId: route.name,
    summary: view.summary,
    description: describe(view, route),
    deprecated: view.deprecation === '' ? undefined : true,
    tags: operation.category === undefined ? undefined : [operation.category],
    security: security(catalog, route),
    'x-title': route.kind === 'sample' ? undefined : view.title,
    'x-payment-info': paymentInfo(catalog, facts, route),
    'x-price-rule':
      typeof operation.price === 'object' && route.kind === 'paid' ? operation.price.rule : undefined,
    'x-price-meter': route.kind === 'paid' ? meterOf(operation) : undefined,
    'x-settle': isUpfront(route) ? 'upfront' : undefined,
    'x-free-preview': route.sample,
    'x-attribution': route.kind === 'sample' ? undefined : attributions(catalog, route),
    'x-available': view.unavailability === '' ? undefined : false,
    parameters: parameters.length === 0 ? undefined : parameters.map((each) => parameterOf(route, each)),
    externalDocs: view.page === '' ? undefined : { url: facts.baseUrl + view.page },
    requestBody: requestBody(route),
    responses: responses(catalog, facts, route, answer),
  })
}

/** What is counted after the work, with the range of the ceiling. */
function meterOf({ price, meter }: Operation): JsonObject | undefined {
  if (price === undefined || meter === undefined) return undefined
  return { ...meter, ceiling: priceRange(price) }
}

/** A parameter. A sample leaves the description to its paid route, where that is the same. */
function parameterOf({ full, operation }: Route, parameter: Parameter): JsonObject {
  const { description, ...rest } = openapiParameter(parameter)
  const isSaid =
    full !== undefined &&
    operation.parameters.some(
      (each) => each.name === parameter.name && openapiParameter(each)['description'] === description,
    )
  return isSaid ? rest : compact({ ...rest, description })
}

/** The Request Body Object of a route. */
export function requestBody({
  path,
  operation: { body, method },
  parameters,
}: Route): JsonObject | undefined {
  if (body === undefined) return undefined
  const place = ['paths', path, method.toLowerCase(), 'requestBody', 'content', body.mediaType, 'schema']
  const members = parameters.filter((each) => each.in === 'body')
  const { $schema: _, ...typed } = inputSchema(members)
  const properties = body.kind === 'form' ? formSchema(members) : typed
  const schema = body.form === 'properties' ? properties : embedSchema(body.schema ?? {}, pointerOf(place))
  const example = bodyExample(body, members)
  return {
    description: sizeLimit(body),
    required: body.form === 'whole' || members.some(({ required }) => required),
    content: { [body.mediaType]: compact({ schema, example }) },
  }
}

/** A JSON Pointer as a URI fragment. */
function pointerOf(path: readonly string[]): string {
  return path.map((step) => `/${encodeURIComponent(step.replaceAll('/', '~1'))}`).join('')
}

/** What no other member says. A sample is described at its paid route. */
function describe(view: OperationView, route: Route): string {
  const paragraphs =
    route.kind === 'sample'
      ? [view.preview, view.unavailability]
      : [
          view.deprecation,
          view.useWhen,
          view.description,
          route.operation.cache === undefined ? '' : view.freshness,
          isUpfront(route) ? `${view.cost} ${view.charging}` : view.cost,
          view.identity,
          view.unavailability,
        ]
  return paragraphs.filter((each) => each !== '').join('\n\n')
}

/** The attributions that a route must publish by the terms of its sources. */
function attributions({ sources }: Catalog, { operation }: Route): string[] | undefined {
  const lines = operation.sources.flatMap((name) => sources[name]?.attribution ?? [])
  return lines.length === 0 ? undefined : [...new Set(lines)]
}

/** The shapes of answers by their routes; what several answers contain is a component. */
function answerSchemas(
  catalog: Catalog,
  routes: readonly Route[],
  taken: readonly string[],
): { readonly schemas: ReadonlyMap<Route, JsonObject>; readonly components: JsonObject } {
  const { schemas, components } = shareSchemas(
    routes.map((route) => shapeOf(answerSchema(catalog, route))),
    taken,
  )
  return {
    schemas: new Map(routes.map((route, index) => [route, schemas[index] ?? {}])),
    components,
  }
}

/** An answer whose schema is derived shows its deeper levels in an example. */
function shownExample(catalog: Catalog, route: Route): Json | undefined {
  const isDerived = route.full === undefined && route.operation.responseSchema === undefined
  return isDerived ? exampleAnswer(catalog, route) : undefined
}

function responses(
  catalog: Catalog,
  { protocols }: Facts,
  route: Route,
  answer: JsonObject | undefined,
): JsonObject {
  const paid = route.kind === 'paid'
  const { mediaType: media, stream, statuses } = route.operation.response
  const isJson = media === undefined || kindOf(media) === 'json'
  const described = compact({ schema: answer, example: shownExample(catalog, route) })
  const success = (status: SuccessStatus): JsonObject => {
    const location = status === 201 || status === 202 ? { Location: LOCATION } : undefined
    return compact({
      description: `The answer${paid ? ', paid' : ''}${stream ? ', sent while it is made' : ''}.`,
      headers: paid ? { ...location, ...receiptHeaders(protocols) } : location,
      content: hasContent(status) ? { [media ?? 'application/json']: isJson ? described : {} } : undefined,
    })
  }
  return compact({
    ...Object.fromEntries(statuses.map((status) => [status, success(status)])),
    402: paid
      ? { $ref: '#/components/responses/PaymentRequired' }
      : route.requires === undefined
        ? undefined
        : SIGNATURE,
    422: route.parameters.length === 0 && route.operation.body === undefined ? undefined : VALIDATION,
    ...FAILURES,
  })
}

const LOCATION: JsonObject = {
  description: 'What was created, or where its state is, if the answer says so.',
  schema: { type: 'string', format: 'uri-reference' },
}

const SIGNATURE: JsonObject = {
  description: 'A signature is asked for, not a payment: what to sign, also in PAYMENT-REQUIRED.',
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
}

const VALIDATION: JsonObject = { $ref: '#/components/responses/HTTPValidationError' }

/** Path items of a document, one for each of its paths. */
function documentPaths({ name, paths, title, summary, type }: PlacedDocument): [string, JsonObject][] {
  const media = type.replace(/;.*$/, '')
  const schema: JsonObject = media.endsWith('json')
    ? { type: 'object', additionalProperties: true }
    : { type: 'string' }
  return paths.map((path, index) => {
    const id = `document_${name.replace(/[^A-Za-z0-9]+/g, '_')}${index === 0 ? '' : `_${index + 1}`}`
    const operation: JsonObject = {
      operationId: id,
      summary: title,
      description: summary,
      tags: [DISCOVERY],
      security: [],
      'x-document': name,
      responses: { 200: { description: `${title}.`, content: { [media]: { schema } } }, ...FAILURES },
    }
    return [path, { get: operation }]
  })
}
