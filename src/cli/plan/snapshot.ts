import {
  isJsonObject,
  measureHeaders,
  openapiParameter,
  parsePrice,
  type Catalog,
  type Json,
  type JsonObject,
  type Micros,
  type Operation,
} from '../../engine/internal.ts'
import { at, listAt, textAt } from '../json-access.ts'
import { documentPlaces, openapiClaims } from '../doctor/claim-readers.ts'
import { previewProtocols, revise } from '../preview.ts'

/** What buyers meet: of a catalog, or of a service that runs. */
export interface Snapshot {
  /** What is sold or shown, by its path; tools that only MCP serves as `tool game.app_intel`. */
  readonly items: ReadonlyMap<string, Item>
  /** By name, with a digest of the content; undefined: only the name is known. */
  readonly documents: ReadonlyMap<string, string | undefined>
  /** Bytes of PAYMENT-REQUIRED by path. */
  readonly headers: ReadonlyMap<string, number>
  /** Terms of payment by name; undefined: not told. */
  readonly payments: ReadonlyMap<string, string> | undefined
}

export interface Item {
  /** Undefined: free. */
  readonly price: Micros | undefined
  /** JSON Schema of each by name, with `required: true` where it must be given. */
  readonly parameters: ReadonlyMap<string, JsonObject>
  /** Undefined: not known. */
  readonly settle: Operation['settle'] | undefined
  /** An example answer; undefined: not known. */
  readonly example: Json | undefined
}

/** Nothing here depends on what is configured: somebody is paid, everybody settles, every credential is set. */
const SOMEBODY = `0x${'1'.repeat(40)}`
const NOWHERE = 'http://localhost'
const SECRET = 'nobody signs anything with this in a plan'

export function catalogSnapshot(catalog: Catalog, baseUrl: string): Snapshot {
  const items = catalog.routes
    .filter(({ operation }) => !operation.planned)
    .map(({ path, kind, operation, parameters }): [string, Item] => [
      path,
      {
        price: kind === 'paid' ? operation.price : undefined,
        parameters: rulesOf(parameters.map(openapiParameter)),
        settle: operation.settle,
        example: operation.example,
      },
    ])
  return {
    items: new Map([...items, ...toolsOf(catalog)]),
    documents: documentsOf(catalog, baseUrl),
    headers: measureHeaders(catalog, baseUrl),
    payments: new Map(termsOf(catalog)),
  }
}

function toolsOf({ operations, routes }: Catalog): [string, Item][] {
  const isTool = (operation: Operation): boolean => !routes.some((route) => route.operation === operation)
  return operations.flatMap((operation): [string, Item][] => {
    const { tool, price, parameters, planned, settle, example } = operation
    if (tool === undefined || planned || !isTool(operation)) return []
    return [
      [
        `tool ${tool.server}.${tool.name}`,
        { price, parameters: rulesOf(parameters.map(openapiParameter)), settle, example },
      ],
    ]
  })
}

function termsOf({ payments: { payTo, x402, mpp } }: Catalog): [string, string][] {
  return [
    ...(payTo === undefined ? [] : [['pay_to', payTo] as [string, string]]),
    ['x402', x402?.networks.join(', ') ?? 'none'],
    ['mpp', mpp === undefined ? 'none' : `${mpp.method} on eip155:${mpp.chain}, ${mpp.currency}`],
  ]
}

function documentsOf(catalog: Catalog, baseUrl: string): ReadonlyMap<string, string | undefined> {
  const { operations, payments, documents } = catalog
  const means = {
    payTo: SOMEBODY,
    rpcUrls: payments.mpp === undefined ? {} : { [payments.mpp.chain]: NOWHERE },
    signerKeys: [],
    mppRecipient: SOMEBODY,
    mppSecretKeys: [SECRET],
    facilitators: [{ url: NOWHERE, token: undefined }],
  }
  const unasked = (): Promise<never> => Promise.reject(new Error('no handler is run in a plan'))
  const handlers = Object.fromEntries(operations.map(({ handler }) => [handler, unasked]))
  const protocols = previewProtocols(catalog, means, baseUrl)
  const { pages, live } = revise({ catalog, handlers, protocols, baseUrl, mcpUrls: {}, secret: () => SECRET })
  const served = Object.entries(documents).filter(
    ([, { paths, planned }]) => !planned && paths.some((path) => pages.has(path) || live.has(path)),
  )
  return new Map(
    served.map(
      ([
        name,
        {
          paths: [path = ''],
        },
      ]) => [name, pages.get(path)?.etag],
    ),
  )
}

/** What the OpenAPI document of a running service tells. */
export function serviceSnapshot(openapi: JsonObject): Snapshot {
  const { claims } = openapiClaims('openapi', openapi)
  const items = [...claims].map(([path, claim]): [string, Item] => {
    const price = parsePrice(claim.get('price') ?? 'free')
    const parameters = listAt(openapi, 'paths', path, 'get', 'parameters')
    return [
      path,
      {
        price: price.kind === 'price' ? price.value : undefined,
        parameters: rulesOf(parameters),
        settle: undefined,
        example: undefined,
      },
    ]
  })
  const documents = [...documentPlaces(openapi).keys()].map((name) => [name, undefined] as const)
  return { items: new Map(items), documents: new Map(documents), headers: new Map(), payments: undefined }
}

/** Parameter Objects of OpenAPI; what is only said to explain them is no difference. */
function rulesOf(parameters: readonly Json[]): ReadonlyMap<string, JsonObject> {
  return new Map(
    parameters.map((parameter) => {
      const schema = at(parameter, 'schema')
      const { examples: _, example: __, description: ___, ...rules } = isJsonObject(schema) ? schema : {}
      const required = at(parameter, 'required') === true ? { required: true } : {}
      return [textAt(parameter, 'name') ?? '', { ...rules, ...required }]
    }),
  )
}
