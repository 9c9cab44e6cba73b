import type { Json, JsonObject } from '../../../src/engine/base/json.ts'
import { fc } from '../../support/fast-check.ts'
import { HANDLER_NAMES } from './recording-shop.ts'

/** What a rule can say of a parameter or a member of a body. */
type Measure = 'items_of' | 'characters_of' | 'bytes_of' | 'value_of' | 'by'

interface Kind {
  readonly measures: readonly Measure[]
  /** Declarations in the form of the catalog, without name, default and requirement. */
  readonly declared: fc.Arbitrary<JsonObject>
  readonly example: Json
  readonly default: Json
  readonly values?: readonly string[]
}

const list = (most: number): fc.Arbitrary<JsonObject> =>
  fc
    .record({ max_items: fc.integer({ min: 2, max: most }), min_items: fc.constantFrom(0, 1, 2) })
    .map((limits) => ({ type: 'string', list: limits }))

/** Parameters by their names, one of each kind. */
export const KINDS = {
  text: {
    measures: ['characters_of', 'bytes_of'],
    declared: fc.record({ type: fc.constant('string'), maxLength: fc.constantFrom(12, 40, 400) }),
    example: 'good day',
    default: 'grüß 🐉',
  },
  texts: {
    measures: ['items_of', 'characters_of'],
    declared: list(8),
    example: 'tea,milk',
    default: 'tea,milk',
  },
  numbers: {
    measures: ['items_of', 'characters_of'],
    declared: list(8).map(({ list: limits, ...rest }) => ({
      ...rest,
      list: { ...(limits as JsonObject), items: 'integer' },
    })),
    example: '7,8',
    default: '10,20',
  },
  countries: {
    measures: ['items_of', 'characters_of'],
    declared: list(5).map((declared) => ({ ...declared, format: 'country' })),
    example: 'US,DE',
    default: 'US,GB',
  },
  count: {
    measures: ['value_of'],
    declared: fc.constantFrom(
      { type: 'integer' },
      { type: 'integer', minimum: 0, maximum: 1000 },
      { type: 'integer', minimum: -5 },
    ),
    example: 3,
    default: 2,
  },
  ratio: {
    measures: ['value_of'],
    declared: fc.constantFrom({ type: 'number' }, { type: 'number', minimum: 0, maximum: 1_000_000 }),
    example: 1.5,
    default: 0.25,
  },
  size: {
    measures: ['value_of', 'by'],
    declared: fc.constant({ type: 'number', enum: [1, 2, 2.5] }),
    example: 2,
    default: 2.5,
    values: ['1', '2', '2.5'],
  },
  loud: {
    measures: ['by'],
    declared: fc.constant({ type: 'boolean' }),
    example: true,
    default: true,
    values: ['true', 'false'],
  },
  style: {
    measures: ['characters_of', 'by'],
    declared: fc.constant({ type: 'string', enum: ['plain', 'formal'], aliases: { posh: 'formal' } }),
    example: 'plain',
    default: 'formal',
    values: ['plain', 'formal'],
  },
  day: {
    measures: ['characters_of', 'bytes_of'],
    declared: fc.constant({ type: 'string', format: 'date' }),
    example: '2026-02-28',
    default: '2026-02-28',
  },
  /** In bodies of JSON only. */
  shape: {
    measures: ['bytes_of'],
    declared: fc.constant({ type: 'object' }),
    example: '{"a":1}',
    default: '{"ü":[1.5]}',
  },
} as const satisfies Record<string, Kind>

export type Name = keyof typeof KINDS
export const NAMES = Object.keys(KINDS) as Name[]

export const isList = (name: string): boolean => ['texts', 'numbers', 'countries'].includes(name)

/** Members of a body with one schema: schemas in place of declarations. */
const MEMBERS = {
  text: { type: 'string', maxLength: 300 },
  texts: { type: 'array', items: { type: 'string', maxLength: 50 }, maxItems: 12 },
  numbers: { type: 'array', items: {}, maxItems: 12 },
  count: { type: 'integer', maximum: 1_000 },
  ratio: { type: ['number', 'null'], maximum: 1_000 },
  loud: { type: 'boolean' },
  style: { enum: ['plain', 'formal', null] },
} as const
const MEMBER_DEFAULTS: JsonObject = { text: 'usual', count: 4, ratio: 0.5, loud: true, style: 'formal' }
const MEMBER_NAMES = Object.keys(MEMBERS) as (keyof typeof MEMBERS)[]

/** A price rule in the form of the catalog. */
export interface Rule {
  readonly base: string
  readonly per?: readonly Rate[]
  readonly by?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly min?: string
  readonly max: string
}

export type Rate = Readonly<Partial<Record<Exclude<Measure, 'by'>, string>>> & {
  readonly unit: string
  readonly price: string
  readonly included: string
}

/** How arguments reach a route, and where its upstream gets them. */
const FORMS = [
  'query',
  'repeated',
  'path',
  'header',
  'renamed',
  'json',
  'form',
  'whole',
  'array',
  'text',
  'bytes',
] as const
export type Form = (typeof FORMS)[number]

/** One route that is sold, its declaration, and how it is read where it arrives. */
export interface Sold {
  readonly form: Form
  /** `proxy`: arguments reach an upstream. */
  readonly sink: 'proxy' | 'handler'
  readonly names: readonly Name[]
  /** The name of each argument where it arrives. */
  readonly renamed: Readonly<Record<string, string>>
  readonly rule: Rule
  /** Values that count for absent members of a body with one schema. */
  readonly defaults: JsonObject
  readonly path: string
  readonly tool: string
  readonly method: 'GET' | 'POST'
  readonly entry: JsonObject
}

const amount = fc.constantFrom('0.000001', '0.0000003', '0.01', '0.25', '0.1234567')

const rateOf = (measure: Exclude<Measure, 'by'>, of: string): fc.Arbitrary<Rate> =>
  fc.record({
    [measure]: fc.constant(of),
    unit: fc.constantFrom('1', '1', '2', '0.5', '1000', '7'),
    price: amount,
    included: fc.constantFrom('0', '0', '1', '3', '0.5'),
  }) as fc.Arbitrary<Rate>

const priced = (choices: readonly (readonly [Measure, string, readonly string[]])[]): fc.Arbitrary<Rule> => {
  const rates = choices.flatMap(([measure, of]) => (measure === 'by' ? [] : [rateOf(measure, of)]))
  const values = choices.filter(([measure]) => measure === 'by')
  const by = fc.record(
    Object.fromEntries(
      values.map(([, of, all]) => [
        of,
        fc.dictionary(fc.constantFrom(...all), amount, { minKeys: 1, noNullPrototype: true }),
      ]),
    ),
  )
  return fc.record({
    base: fc.constantFrom('0.001', '0.0000007', '0.02'),
    ...(rates.length === 0 ? {} : { per: fc.tuple(...rates) }),
    ...(values.length === 0 ? {} : { by }),
    max: fc.constantFrom('900000', '900000', '900000', '30'),
  }) as fc.Arbitrary<Rule>
}

interface Drawn {
  readonly names: readonly Name[]
  readonly parameters: JsonObject
  readonly rule: Rule
}

/** Some parameters, and a rule that counts each of them in some way. */
function drawn(
  names: readonly Name[],
  fit: (name: Name) => boolean,
  required: readonly Name[],
): fc.Arbitrary<Drawn> {
  const some = fc
    .subarray(names.filter(fit), { minLength: 1, maxLength: 5 })
    .map((chosen) => [...new Set([...required, ...chosen])])
  return some.chain((chosen) =>
    fc
      .tuple(
        fc.tuple(
          ...chosen.map((name) =>
            fc.tuple(
              KINDS[name].declared as fc.Arbitrary<JsonObject>,
              required.includes(name)
                ? fc.constant('required')
                : fc.constantFrom('required', 'optional', 'default'),
              fc.constantFrom<Measure>(...(KINDS[name].measures as readonly Measure[])),
            ),
          ),
        ),
      )
      .chain(([drafts]) => {
        const parameters = Object.fromEntries(
          chosen.map((name, place): [string, Json] => {
            const [declared = {}, given] = drafts[place] ?? []
            const { example, default: usual } = KINDS[name]
            const more =
              given === 'required' ? { required: true } : given === 'default' ? { default: usual } : {}
            return [name, { ...declared, ...more, example }]
          }),
        )
        const choices = chosen.map((name, place): [Measure, string, readonly string[]] => {
          const kind: Kind = KINDS[name]
          return [drafts[place]?.[2] ?? 'by', name, kind.values ?? []]
        })
        return priced(choices).map((rule) => ({ names: chosen, parameters, rule }))
      }),
  )
}

const FORM_MEDIA = 'application/x-www-form-urlencoded'

/** The entry of the catalog without names and places. */
type Draft = Omit<Sold, 'sink' | 'path' | 'tool'>

const inQuery = (name: Name): boolean => name !== 'shape'

const DRAFTS: Readonly<Record<Form, fc.Arbitrary<Draft>>> = {
  query: drawn(NAMES, inQuery, []).map((made) => draft('query', made, { parameters: made.parameters })),
  repeated: drawn(NAMES, inQuery, ['texts']).map((made) =>
    draft('repeated', made, { parameters: made.parameters, upstream: '/repeated?texts={texts*}' }),
  ),
  path: fc
    .constantFrom<Name>('text', 'texts', 'numbers', 'countries', 'count', 'style')
    .chain((first) => drawn(NAMES, inQuery, [first]))
    .map((made) => draft('path', made, { parameters: made.parameters })),
  header: drawn(NAMES, inQuery, ['text']).map((made) =>
    draft('header', made, { parameters: made.parameters, upstream_headers: { 'X-Text': '{text}' } }),
  ),
  renamed: drawn(NAMES, inQuery, []).map((made) => {
    const renamed = Object.fromEntries(made.names.map((name): [string, string] => [name, `${name}_x`]))
    const given = Object.fromEntries(made.names.map((name): [string, string] => [`${name}_x`, `$${name}`]))
    return { ...draft('renamed', made, { parameters: made.parameters, with: given }), renamed }
  }),
  json: drawn(NAMES, () => true, []).map((made) =>
    draft('json', made, { body: { properties: made.parameters } }),
  ),
  form: drawn(NAMES, inQuery, []).map((made) =>
    draft('form', made, { body: { media_type: FORM_MEDIA, properties: made.parameters } }),
  ),
  whole: fc
    .tuple(
      fc.subarray(MEMBER_NAMES, { minLength: 1 }),
      fc.subarray(Object.keys(MEMBER_DEFAULTS)),
      fc.boolean(),
    )
    .chain(([names, withDefault, isOpen]) => {
      const measures: Readonly<Record<string, readonly Measure[]>> = {
        text: ['characters_of', 'bytes_of'],
        texts: ['items_of', 'characters_of'],
        numbers: ['items_of', 'bytes_of'],
        count: ['value_of'],
        ratio: ['value_of'],
      }
      const values: Readonly<Record<string, readonly string[]>> = {
        loud: ['true', 'false'],
        style: ['plain', 'formal'],
      }
      const defaults = Object.fromEntries(
        Object.entries(MEMBER_DEFAULTS).filter(
          ([name]) => withDefault.includes(name) && names.some((each) => each === name),
        ),
      )
      const properties = Object.fromEntries(
        names.map((name): [string, JsonObject] => {
          const usual = defaults[name]
          return [name, { ...MEMBERS[name], ...(usual === undefined ? {} : { default: usual }) }]
        }),
      )
      const choices = fc.tuple(
        ...names.map((name) =>
          fc
            .constantFrom<Measure>(...(measures[name] ?? ['by']))
            .map((measure): [Measure, string, readonly string[]] => [measure, name, values[name] ?? []]),
        ),
      )
      const schema = { type: 'object', properties, ...(isOpen ? {} : { additionalProperties: false }) }
      return choices.chain(priced).map((rule) => ({
        ...draft('whole', { names: names as Name[], rule }, { body: { schema, example: {} } }),
        defaults,
      }))
    }),
  array: fc
    .constantFrom<Measure>('items_of', 'bytes_of')
    .chain((measure) =>
      priced([[measure, 'body', []]]).map((rule) =>
        draft('array', { names: [], rule }, { body: { schema: { type: 'array' }, example: ['a'] } }),
      ),
    ),
  text: fc
    .constantFrom<Measure>('characters_of', 'bytes_of')
    .chain((measure) =>
      priced([[measure, 'body', []]]).map((rule) =>
        draft('text', { names: [], rule }, { body: { media_type: 'text/plain', example: 'good day' } }),
      ),
    ),
  bytes: priced([['bytes_of', 'body', []]]).map((rule) =>
    draft('bytes', { names: [], rule }, { body: { media_type: 'image/png' } }),
  ),
}

function draft(form: Form, { names, rule }: Pick<Drawn, 'names' | 'rule'>, entry: JsonObject): Draft {
  const method = entry['body'] === undefined ? 'GET' : 'POST'
  return { form, names, rule, entry, method, renamed: {}, defaults: {} }
}

/** Some routes of a catalog, each with a tool. */
export const soldRoutes: fc.Arbitrary<readonly Sold[]> = fc
  .array(
    fc.tuple(
      fc.constantFrom(...FORMS).chain((form) => DRAFTS[form]),
      fc.constantFrom('proxy' as const, 'handler' as const),
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((drafts) => drafts.map(([each, sink], place) => placed(each, sink, place)))

/** Keys of a route that only proxies have. */
const OF_PROXIES = new Set(['upstream', 'upstream_headers'])

function placed(each: Draft, sink: Sold['sink'], place: number): Sold {
  const [first = ''] = each.names
  const segment = each.form === 'path' ? `/{${first}}` : ''
  const path = `/paid/${each.form}${place}${segment}`
  const tool = `tool${place}`
  const own = Object.entries(each.entry).filter(([key]) => sink === 'proxy' || !OF_PROXIES.has(key))
  const parameters = each.entry['parameters'] as JsonObject | undefined
  const inPath = parameters?.[first]
  const entry: JsonObject = {
    ...Object.fromEntries(own),
    ...(each.form === 'path'
      ? { parameters: { ...parameters, [first]: withoutDefault(inPath as JsonObject) } }
      : {}),
    summary: 'Counts',
    handler: sink === 'proxy' ? 'proxy' : (HANDLER_NAMES[place] ?? ''),
    price: JSON.parse(JSON.stringify(each.rule)),
    tool: `tools.${tool}`,
  }
  return { ...each, sink, path, tool, entry }
}

function withoutDefault(schema: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => name !== 'default'))
}

/** A catalog as JSON, which is YAML too. */
export function catalogOf(routes: readonly Sold[], upstream: string): string {
  return JSON.stringify({
    catalog: 1,
    service: { name: 'Counts', version: '1.0.0', description: 'Counts' },
    payments: { currency: 'USD', x402: { networks: ['base'] } },
    mcp_servers: { tools: { title: 'Tools' } },
    defaults: { upstream },
    routes: Object.fromEntries(
      routes.map(({ method, path, entry }) => [method === 'GET' ? path : `${method} ${path}`, entry]),
    ),
  })
}
