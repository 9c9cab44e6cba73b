import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import type { Quote } from '../../../../src/engine/catalog/price/price.ts'
import { compileValidator } from '../../../../src/engine/catalog/validator.ts'
import type { Json, JsonObject } from '../../../../src/engine/base/json.ts'
import { quoteCall } from '../../../../src/engine/purchase/purchase.ts'
import { compileRoutes, routeAt } from '../../../support/catalogs.ts'
import { fc } from '../../../support/fast-check.ts'

/** What all generated routes take. */
const BODY = `    body:
      properties:
        text: { type: string, required: true, maxLength: 400, example: Guten Tag }
        words: { type: string, list: { max_items: 40 }, example: "a,b" }
        seconds: { type: number, default: 1.5 }
        quality: { type: string, enum: [low, mid, high], default: mid }
        loud: { type: boolean }
        extra: { type: object }
`

/** A number as exact fraction: a way of computing that the engine does not use. */
interface Fraction {
  readonly over: bigint
  readonly under: bigint
}

function fraction(text: string): Fraction {
  const [mantissa = '0', power = '0'] = text.split('e')
  const [whole = '0', places = ''] = mantissa.split('.')
  const exponent = BigInt(power.replace('+', ''))
  const over = BigInt(whole) * 10n ** BigInt(places.length) + BigInt(places || '0')
  const under = 10n ** BigInt(places.length)
  return exponent < 0n ? { over, under: under * 10n ** -exponent } : { over: over * 10n ** exponent, under }
}

const plus = (a: Fraction, b: Fraction): Fraction => ({
  over: a.over * b.under + b.over * a.under,
  under: a.under * b.under,
})
const times = (a: Fraction, b: Fraction): Fraction => ({ over: a.over * b.over, under: a.under * b.under })
const isLess = (a: Fraction, b: Fraction): boolean => a.over * b.under < b.over * a.under
const roundUp = ({ over, under }: Fraction): bigint => over / under + (over % under === 0n ? 0n : 1n)

interface Rate {
  readonly measure: 'characters_of' | 'bytes_of' | 'items_of' | 'value_of'
  readonly of: 'text' | 'words' | 'seconds' | 'extra'
  readonly unit: string | undefined
  readonly price: string
  readonly included: string | undefined
}

interface Rule {
  readonly base: string
  readonly rates: readonly Rate[]
  readonly quality: Readonly<Record<string, string>> | undefined
  readonly loud: string | undefined
  readonly min: string
  readonly max: string
}

/** What is sent, with its counts, which are known from how it was made. */
interface Call {
  readonly text: readonly string[]
  readonly words: readonly string[] | undefined
  readonly seconds: number | undefined
  readonly quality: string | undefined
  readonly loud: boolean | undefined
  readonly extra: JsonObject | undefined
}

function countOf({ measure, of }: Rate, call: Call): Fraction {
  const whole = (count: number): Fraction => ({ over: BigInt(count), under: 1n })
  const bytes = (text: string): Fraction => whole(new TextEncoder().encode(text).length)
  switch (of) {
    case 'text':
      return measure === 'bytes_of' ? bytes(call.text.join('')) : whole(call.text.length)
    case 'words':
      if (measure === 'items_of') return whole(call.words?.length ?? 0)
      return whole((call.words ?? []).reduce((sum, word) => sum + word.length, 0))
    case 'seconds':
      return fraction(String(call.seconds ?? 1.5))
    // Generated with sorted keys and without white space.
    case 'extra':
      return call.extra === undefined ? whole(0) : bytes(JSON.stringify(call.extra))
  }
}

/** Micro-dollars by the definition of the documentation, in fractions. */
function expected(rule: Rule, call: Call): bigint {
  let sum = fraction(rule.base)
  for (const rate of rule.rates) {
    let units = 0n
    const [unit, included] = [fraction(rate.unit ?? '1'), fraction(rate.included ?? '0')]
    const count = countOf(rate, call)
    if (isLess(included, count)) {
      const above = {
        over: count.over * included.under - included.over * count.under,
        under: count.under * included.under,
      }
      units = roundUp({ over: above.over * unit.under, under: above.under * unit.over })
    }
    sum = plus(sum, times({ over: units, under: 1n }, fraction(rate.price)))
  }
  const quality = rule.quality?.[call.quality ?? 'mid']
  if (quality !== undefined) sum = plus(sum, fraction(quality))
  if (call.loud === true && rule.loud !== undefined) sum = plus(sum, fraction(rule.loud))
  const amount = roundUp(times(sum, { over: 1_000_000n, under: 1n }))
  const [min, max] = [rule.min, rule.max].map((text) => roundUp(times(fraction(text), fraction('1000000'))))
  if (max !== undefined && amount > max) return max
  return min !== undefined && amount < min ? min : amount
}

const decimal = (whole: number, places: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.nat(whole), fc.integer({ min: 0, max: places }), fc.bigInt(1n, 10n ** BigInt(places)))
    .map(([units, length, digits]) =>
      length === 0 ? String(units) : `${units}.${digits.toString().padStart(places, '0').slice(0, length)}`,
    )
const positive = (whole: number, places: number): fc.Arbitrary<string> =>
  decimal(whole, places).filter((text) => /[1-9]/.test(text))

const rate: fc.Arbitrary<Rate> = fc
  .tuple(
    fc.constantFrom(
      ...([
        ['characters_of', 'text'],
        ['bytes_of', 'text'],
        ['items_of', 'words'],
        ['characters_of', 'words'],
        ['value_of', 'seconds'],
        ['bytes_of', 'extra'],
      ] as const),
    ),
    fc.option(fc.oneof(fc.integer({ min: 1, max: 200 }).map(String), positive(3, 2)), { nil: undefined }),
    fc.oneof(positive(0, 6), positive(0, 12)),
    fc.option(fc.oneof(fc.nat(50).map(String), decimal(9, 12)), { nil: undefined }),
  )
  .map(([[measure, of], unit, price, included]) => ({ measure, of, unit, price, included }))

const rules: fc.Arbitrary<Rule> = fc.record({
  base: decimal(0, 12),
  rates: fc.array(rate, { minLength: 1, maxLength: 4 }),
  quality: fc.option(
    fc.record({ low: decimal(0, 12), mid: decimal(0, 7), high: decimal(1, 6) }, { requiredKeys: ['high'] }),
    { nil: undefined },
  ),
  loud: fc.option(decimal(0, 8), { nil: undefined }),
  min: positive(0, 6),
  max: fc
    .tuple(fc.integer({ min: 200, max: 900_000 }), fc.constantFrom('', '.5', '.000001'))
    .map((parts) => parts.join('')),
})

const characters = fc.constantFrom('a', 'Z', ' ', 'é', 'ß', '漢', '👍', '🇩', '\u0301', '"', '\\')
const calls: fc.Arbitrary<Call> = fc.record({
  text: fc.array(characters, { maxLength: 400, size: 'max' }),
  words: fc.option(
    fc.uniqueArray(fc.stringMatching(/^[a-z]{1,9}$/), { minLength: 1, maxLength: 40, size: 'max' }),
    { nil: undefined },
  ),
  seconds: fc.option(
    fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 }),
      fc.double({ noNaN: true, min: 0, max: 1_000 }),
      fc.nat(10_000),
    ),
    { nil: undefined },
  ),
  quality: fc.option(fc.constantFrom('low', 'mid', 'high'), { nil: undefined }),
  loud: fc.option(fc.boolean(), { nil: undefined }),
  extra: fc.option(fc.record({ a: fc.string(), b: fc.nat() }), { nil: undefined }),
})

function yaml({ base, rates, quality, loud, min, max }: Rule): string {
  const choices = [
    ...(quality === undefined ? [] : [`quality: { ${pairs(quality)} }`]),
    ...(loud === undefined ? [] : [`loud: { true: ${loud} }`]),
  ]
  const per = rates.map(({ measure, of, unit, price, included }) => {
    const more = { ...(unit === undefined ? {} : { unit }), ...(included === undefined ? {} : { included }) }
    return `{ ${pairs({ [measure]: of, price, ...more })} }`
  })
  const by = choices.length === 0 ? '' : `, by: { ${choices.join(', ')} }`
  return `{ base: ${base}, per: [${per.join(', ')}]${by}, min: ${min}, max: ${max} }`
}

const pairs = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([key, value]) => `${key}: ${value}`)
    .join(', ')

function bodyOf({ text, ...rest }: Call): JsonObject {
  const given = Object.entries({ text: text.join(''), ...rest }).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given as [string, Json][])
}

const RULES = 200
const CALLS = 50

t.test('charges what exact fractions give for 10,000 generated rules and calls', async (t) => {
  const generated = fc.sample(rules, RULES)
  const routes = generated.map(
    (rule, n) => `  POST /paid/r${n}:\n    summary: R\n    price: ${yaml(rule)}\n${BODY}`,
  )
  const catalog = compileRoutes(routes.join(''))
  const sent = fc.sample(calls, RULES * CALLS)
  let [wrong, outside] = [0, 0]
  const amounts = new Set<bigint>()
  for (const [n, rule] of generated.entries()) {
    const route = routeAt(catalog, `/paid/r${n}`)
    const validate = compileValidator(route, 'refuse')
    const { price } = route.operation
    if (typeof price !== 'object') throw new Error('a rule is a rule')
    for (const call of sent.slice(n * CALLS, (n + 1) * CALLS)) {
      const validated = validate({ path: {}, query: '', body: bodyOf(call) })
      if (validated.kind === 'invalid') throw new Error(JSON.stringify([validated.errors, bodyOf(call)]))
      const { amount } = quoteCall(route.operation, validated.args)
      amounts.add(amount)
      if (amount !== expected(rule, call)) {
        wrong += 1
        t.comment(yaml(rule), JSON.stringify(bodyOf(call)), amount, expected(rule, call))
      }
      if (amount < price.lowest || amount > price.highest) outside += 1
    }
  }
  t.equal(wrong, 0)
  t.equal(outside, 0, 'no call costs less or more than the range that is published')
  t.ok(amounts.size > 5_000, `${amounts.size} different amounts`)
})

/** The quote of a GET with this query. */
function ask(price: string, parameters: string, query: string): Quote {
  const route = routeAt(
    compileRoutes(`  /paid/x: { summary: X, price: ${price}, parameters: { ${parameters} } }\n`),
    '/paid/x',
  )
  const validated = compileValidator(route, 'refuse')({ path: {}, query })
  if (validated.kind === 'invalid') throw new Error(JSON.stringify(validated.errors))
  return quoteCall(route.operation, validated.args)
}

function fail(): never {
  throw new Error('it has a price')
}

const TEXT = 'text: { type: string, required: true, example: a }'

t.test('counts code points, counts units up, and rounds the sum up once', async (t) => {
  const rule = '{ base: 0.001, per: { characters_of: text, unit: 4, price: 0.0000001 } }'
  const emoji = encodeURIComponent('👍👍👍👍')
  t.strictSame(ask(rule, TEXT, `text=${emoji}`), {
    amount: 1_001n,
    parts: [
      { part: 'base', amount: '0.001' },
      { part: 'characters_of text', count: 4, units: 1, amount: '0.0000001' },
    ],
  })
  t.equal(ask(rule, TEXT, `text=${emoji.repeat(10)}`).amount, 1_001n, 'ten units are one micro-dollar')
  t.equal(ask(rule, TEXT, `text=${emoji.repeat(10)}a`).amount, 1_002n)
})

t.test('names the limit that decides, and the value that adds', async (t) => {
  const rule =
    '{ by: { size: { s: 0.001, l: 0.02 } }, per: { value_of: days, price: 0.01, included: 1 }, min: 0.005, max: 0.04 }'
  const parameters =
    'size: { type: string, enum: [s, m, l], default: m }, days: { type: integer, default: 1, minimum: 1 }'
  t.match(ask(rule, parameters, ''), {
    amount: 5_000n,
    parts: [{ units: 0 }, { part: 'min', amount: '0.005' }],
  })
  t.match(ask(rule, parameters, 'size=l'), { amount: 20_000n, parts: [{ part: 'size', value: 'l' }, {}] })
  t.match(ask(rule, parameters, 'size=l&days=9'), { amount: 40_000n, parts: [{}, {}, { part: 'max' }] })
})

t.test('counts an item once, however often a list repeats it', async (t) => {
  const rule = '{ per: { items_of: domains, price: 0.002 } }'
  const parameters = 'domains: { type: string, required: true, example: a.example, list: { max_items: 5 } }'
  t.equal(ask(rule, parameters, 'domains=a.example,b.example,a.example').amount, 4_000n)
})

t.test('follows the members of a body that is declared as one schema', async (t) => {
  const schema = {
    $ref: '#/$defs/Request',
    $defs: {
      Request: {
        type: 'object',
        required: ['prompt', 'n'],
        properties: {
          model: { $ref: '#/$defs/Model', default: 'small' },
          prompt: { type: 'string', minLength: 2, maxLength: 10 },
          n: { type: ['integer', 'null'], maximum: 4, default: 1 },
          stream: { type: 'boolean' },
          extra: {},
        },
      },
      Model: { enum: ['small', 'large'] },
    },
  }
  const rule = `{ by: { model: { small: 0.01, large: 0.02 }, stream: { true: 0.05 } }, per: [{ characters_of: prompt, price: 0.001 }, { value_of: n, price: 0.1 }] }`
  const quote = (price: string, body: Json): Quote => {
    const declared = `body: { schema: ${JSON.stringify(schema)}, example: { prompt: abc, n: 2 } }`
    const catalog = compileRoutes(`  POST /paid/x: { summary: X, price: ${price}, ${declared} }\n`)
    const route = routeAt(catalog, '/paid/x')
    const validated = compileValidator(route, 'refuse')({ path: {}, query: '', body })
    if (validated.kind === 'invalid') throw new Error(JSON.stringify(validated.errors))
    const { price: compiled = fail() } = route.operation
    if (price === rule) t.match(compiled, { lowest: 12_000n, highest: 480_000n, example: 213_000n })
    return quoteCall(route.operation, validated.args)
  }
  t.equal(quote(rule, { prompt: 'ab', n: 0 }).amount, 12_000n)
  t.equal(quote(rule, { prompt: 'ab', n: null }).amount, 112_000n, 'null stands for the default')
  t.equal(quote(rule, { prompt: 'ab', n: 4, model: 'large', stream: true }).amount, 472_000n)
  const bytes = '{ base: 0.001, per: { bytes_of: extra, price: 0.001 }, max: 1 }'
  t.equal(quote(bytes, { prompt: 'ab', n: 1, extra: [1, 'ä'] }).amount, 9_000n)
  t.equal(quote(bytes, { prompt: 'ab', n: 1 }).amount, 1_000n)
})

const FORMS = `body:
      schema:
        $ref: '#/$defs/Either'
        $defs:
          Either:
            oneOf: [{ $ref: '#/$defs/Prompt' }, { allOf: [{ $ref: '#/$defs/Common' }, { $ref: '#/$defs/Chat' }] }]
          Common: { type: object, required: [kind], properties: { n: { anyOf: [{ type: integer, maximum: 4 }, { type: 'null' }], default: 1 } } }
          Prompt:
            allOf: [{ $ref: '#/$defs/Common' }]
            required: [prompt]
            properties: { kind: { const: prompt }, prompt: { type: string, minLength: 2, maxLength: 10 } }
          Chat:
            required: [messages]
            properties:
              kind: { enum: [chat, draft] }
              messages: { type: array, maxItems: 3 }
      example: { kind: prompt, prompt: abc }`
const FORMS_RULE =
  '{ base: 0.001, by: { kind: { prompt: 0.01, chat: 0.02 } }, per: [{ characters_of: prompt, price: 0.001 }, { items_of: messages, price: 0.1 }, { value_of: n, price: 1 }] }'

t.test('follows the members of a body that has one of several forms', async (t) => {
  const catalog = compileRoutes(`  POST /paid/x:\n    summary: X\n    price: ${FORMS_RULE}\n    ${FORMS}\n`)
  const route = routeAt(catalog, '/paid/x')
  const validate = compileValidator(route, 'refuse')
  const { price = fail() } = route.operation
  t.match(price, { lowest: 1_000n, highest: 4_331_000n, example: 1_014_000n })
  const quote = (body: Json): bigint => {
    const validated = validate({ path: {}, query: '', body })
    if (validated.kind === 'invalid') throw new Error(JSON.stringify(validated.errors))
    return quoteCall(route.operation, validated.args).amount
  }
  t.equal(quote({ kind: 'prompt', prompt: 'ab' }), 1_013_000n)
  t.equal(quote({ kind: 'prompt', prompt: 'abc', n: null }), 1_014_000n, 'null stands for the default')
  t.equal(quote({ kind: 'chat', messages: [1, 2], n: 4 }), 4_221_000n)
  t.equal(quote({ kind: 'draft', messages: [1, 2], n: 0 }), 201_000n)
  // What another form declares can be anything.
  t.equal(quote({ kind: 'chat', messages: [], prompt: { a: 1 }, n: 0 }), 21_000n)
  t.equal(quote({ kind: 'chat', messages: [], prompt: 'x'.repeat(5_000), n: 0 }), 31_000n)
})

t.test('charges within the published range whichever form of a body is sent', async (t) => {
  const member = fc.constantFrom(
    ['prompt', { type: 'string', minLength: 1, maxLength: 4 }],
    ['prompt', { type: 'string', maxLength: 9 }],
    ['prompt', { anyOf: [{ type: 'string', minLength: 2, maxLength: 6 }, { type: 'null' }] }],
    ['tags', { type: 'array', minItems: 1, maxItems: 3 }],
    ['tags', { allOf: [{ type: 'array', maxItems: 5 }, { maxItems: 2 }] }],
    ['n', { type: 'integer', minimum: 2, maximum: 9 }],
    ['n', { type: ['number', 'null'], minimum: 0, maximum: 4 }],
    ['mode', { enum: ['a', 'b'] }],
    ['mode', { const: 'a' }],
    ['mode', { enum: ['a', 'c'] }],
  )
  const form = fc
    .tuple(fc.array(member, { maxLength: 4 }), fc.subarray(['prompt', 'tags', 'n', 'mode']), fc.boolean())
    .map(([members, required, additionalProperties]) => ({
      type: 'object',
      properties: Object.fromEntries(members),
      required,
      additionalProperties,
    }))
  const every = Object.fromEntries(['prompt', 'tags', 'n', 'mode'].map((name) => [name, {}]))
  const schema = fc
    .tuple(fc.constantFrom('anyOf', 'oneOf', 'allOf'), fc.array(form, { minLength: 1, maxLength: 3 }))
    .filter(([, forms]) =>
      Object.keys(every).every((name) => forms.some(({ properties }) => name in properties)),
    )
    .map(([by, forms]) => ({
      [by]: by === 'allOf' ? forms.map((each) => ({ ...each, additionalProperties: true })) : forms,
    }))
  const sent = fc.record(
    {
      prompt: fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom(null, 7, ['a'])),
      tags: fc.oneof(fc.array(fc.nat(), { maxLength: 7 }), fc.constant('a')),
      n: fc.oneof(fc.nat(12), fc.constantFrom(null, 'x', 2.5)),
      mode: fc.constantFrom('a', 'b', 'c', 'd'),
    },
    { requiredKeys: [] },
  )
  const rule =
    '{ base: 0.001, by: { mode: { a: 0.01 } }, per: [{ characters_of: prompt, price: 0.001 }, { items_of: tags, price: 0.1 }, { value_of: n, price: 1 }] }'
  const ajv = new Ajv2020({ strict: false })
  const schemas = fc.sample(schema, 150).flatMap((each) => {
    const fits = ajv.compile(each)
    const example = fc.sample(sent, 60).find((body) => fits(body))
    return example === undefined ? [] : [{ schema: each, example }]
  })
  const routes = schemas.map(
    (each, n) => `  POST /paid/f${n}: { summary: F, price: ${rule}, body: ${JSON.stringify(each)} }\n`,
  )
  const catalog = compileRoutes(routes.join(''))
  let [outside, valid, varied] = [0, 0, new Set<bigint>()]
  for (const n of schemas.keys()) {
    const route = routeAt(catalog, `/paid/f${n}`)
    const { price } = route.operation
    if (typeof price !== 'object') throw new Error('a rule is a rule')
    const validate = compileValidator(route, 'refuse')
    for (const body of fc.sample(sent, 60)) {
      const validated = validate({ path: {}, query: '', body: body as JsonObject })
      if (validated.kind === 'invalid') continue
      const { amount } = quoteCall(route.operation, validated.args)
      valid += 1
      varied.add(amount)
      if (amount < price.lowest || amount > price.highest) outside += 1
    }
  }
  t.equal(outside, 0)
  t.ok(valid > 500, `${valid} valid calls`)
  t.ok(varied.size > 50, `${varied.size} different amounts`)
})
