import t from 'tap'
import type { ValidationError } from '../../../../src/engine/catalog/validation-error.ts'
import type { Arguments } from '../../../../src/engine/handler.ts'
import type { Json } from '../../../../src/engine/base/json.ts'
import {
  compileArguments,
  compileValidator,
  type Validator,
} from '../../../../src/engine/catalog/validator.ts'
import { compileRoutes, routeAt } from '../../../support/catalogs.ts'
import { collectGarbage } from '../../../support/garbage.ts'

/** The check of a route with these parameters. */
function validator(parameters: string, path = '/paid/x', unknown: 'ignore' | 'refuse' = 'ignore'): Validator {
  return compileValidator(
    routeAt(compileRoutes(`  ${path}: { price: 1, summary: X, parameters: { ${parameters} } }\n`), path),
    unknown,
  )
}

function accepted(validate: Validator, query: string, path: Record<string, string> = {}): Arguments {
  const validated = validate({ path, query })
  if (validated.kind === 'valid') return validated.args
  throw new Error(`refused: ${JSON.stringify(validated.errors)}`)
}

function refused(
  validate: Validator,
  query: string,
  path: Record<string, string> = {},
): readonly ValidationError[] {
  const validated = validate({ path, query })
  if (validated.kind === 'invalid') return validated.errors
  throw new Error(`accepted: ${JSON.stringify(validated.args)}`)
}

t.test('reports every fault in the documented words', async (t) => {
  const cases: readonly (readonly [string, string, ValidationError])[] = [
    [
      'q: { type: string, required: true, example: x }',
      '',
      { type: 'missing', loc: ['query', 'q'], msg: 'Field required', input: null },
    ],
    [
      'q: { type: integer }',
      'q=ten',
      {
        type: 'int_parsing',
        loc: ['query', 'q'],
        msg: 'Input should be a valid integer, unable to parse string as an integer',
        input: 'ten',
      },
    ],
    [
      'q: { type: number }',
      'q=1e',
      {
        type: 'float_parsing',
        loc: ['query', 'q'],
        msg: 'Input should be a valid number, unable to parse string as a number',
        input: '1e',
      },
    ],
    [
      'q: { type: boolean }',
      'q=maybe',
      {
        type: 'bool_parsing',
        loc: ['query', 'q'],
        msg: 'Input should be a valid boolean, unable to interpret input',
        input: 'maybe',
      },
    ],
    [
      'q: { type: integer, minimum: 1 }',
      'q=0',
      {
        type: 'greater_than_equal',
        loc: ['query', 'q'],
        msg: 'Input should be greater than or equal to 1',
        input: '0',
        ctx: { ge: 1 },
      },
    ],
    [
      'q: { type: integer, maximum: 100 }',
      'q=101',
      {
        type: 'less_than_equal',
        loc: ['query', 'q'],
        msg: 'Input should be less than or equal to 100',
        input: '101',
        ctx: { le: 100 },
      },
    ],
    [
      'q: { type: number, exclusiveMinimum: 0 }',
      'q=0',
      {
        type: 'greater_than',
        loc: ['query', 'q'],
        msg: 'Input should be greater than 0',
        input: '0',
        ctx: { gt: 0 },
      },
    ],
    [
      'q: { type: string, required: true, minLength: 1, example: x }',
      'q=',
      {
        type: 'string_too_short',
        loc: ['query', 'q'],
        msg: 'String should have at least 1 character',
        input: '',
        ctx: { min_length: 1 },
      },
    ],
    [
      'q: { type: string, minLength: 3 }',
      'q=ab',
      {
        type: 'string_too_short',
        loc: ['query', 'q'],
        msg: 'String should have at least 3 characters',
        input: 'ab',
        ctx: { min_length: 3 },
      },
    ],
    [
      'q: { type: string, maxLength: 3 }',
      'q=abcd',
      {
        type: 'string_too_long',
        loc: ['query', 'q'],
        msg: 'String should have at most 3 characters',
        input: 'abcd',
        ctx: { max_length: 3 },
      },
    ],
    [
      'q: { type: string, enum: [people, companies, products] }',
      'q=planets',
      {
        type: 'enum',
        loc: ['query', 'q'],
        msg: "Input should be 'people', 'companies' or 'products'",
        input: 'planets',
        ctx: { expected: "'people', 'companies' or 'products'" },
      },
    ],
    [
      'q: { type: integer, enum: [1, 2] }',
      'q=3',
      {
        type: 'enum',
        loc: ['query', 'q'],
        msg: 'Input should be 1 or 2',
        input: '3',
        ctx: { expected: '1 or 2' },
      },
    ],
    [
      "q: { type: string, pattern: '^[a-z]+$' }",
      'q=A1',
      {
        type: 'string_pattern_mismatch',
        loc: ['query', 'q'],
        msg: "String should match pattern '^[a-z]+$'",
        input: 'A1',
        ctx: { pattern: '^[a-z]+$' },
      },
    ],
    [
      'q: { type: string, format: date }',
      'q=2026-02-30',
      {
        type: 'value_error',
        loc: ['query', 'q'],
        msg: 'q must be YYYY-MM-DD',
        input: '2026-02-30',
        ctx: { error: {} },
      },
    ],
    [
      'q: { type: string, format: country }',
      'q=Germany',
      {
        type: 'value_error',
        loc: ['query', 'q'],
        msg: 'q must be an ISO 3166-1 alpha-2 code',
        input: 'Germany',
        ctx: { error: {} },
      },
    ],
    [
      'q: { type: string, list: { max_items: 2 } }',
      'q=a,b,c',
      {
        type: 'value_error',
        loc: ['query', 'q'],
        msg: 'q must list at most 2 values',
        input: 'a,b,c',
        ctx: { error: {} },
      },
    ],
  ]
  for (const [parameters, query, expected] of cases) {
    t.strictSame(refused(validator(parameters), query), [expected], `${parameters} ← ${query}`)
  }
})

t.test('reads whole numbers in every usual spelling', async (t) => {
  const validate = validator('n: { type: integer }')
  for (const [text, value] of [
    ['10', 10],
    ['+10', 10],
    ['%2B10', 10],
    ['-10', -10],
    ['10.0', 10],
    ['10.000', 10],
    ['%2010%20', 10],
    ['007', 7],
    ['999999999999999', 999_999_999_999_999],
    ['-0', -0],
  ] as const) {
    t.strictSame(accepted(validate, `n=${text}`), { n: value }, text)
  }
  for (const text of [
    '',
    '+',
    '10.5',
    '10.',
    '.0',
    '1e3',
    '0x10',
    '1,000',
    '1_000',
    '1 0',
    '--1',
    '1000000000000000',
    '9'.repeat(400),
    'NaN',
    'Infinity',
    'true',
    'null',
    '１０',
    '10%00',
  ]) {
    t.equal(refused(validate, `n=${encodeURI(text)}`)[0]?.type, 'int_parsing', text)
  }
})

t.test('reads numbers as finite decimals', async (t) => {
  const validate = validator('n: { type: number }')
  for (const [text, value] of [
    ['1.5', 1.5],
    ['.5', 0.5],
    ['5.', 5],
    ['1e3', 1000],
    ['1E-3', 0.001],
    ['-2', -2],
    ['%201.5%20', 1.5],
  ] as const) {
    t.strictSame(accepted(validate, `n=${text}`), { n: value }, text)
  }
  for (const text of ['', '.', 'e3', '1e999', '1e+', 'Infinity', '-Infinity', 'NaN', '0x1p3', '1/2', '1,5']) {
    t.equal(refused(validate, `n=${encodeURIComponent(text)}`)[0]?.type, 'float_parsing', text)
  }
})

t.test('reads booleans as true, false, 1 and 0', async (t) => {
  const validate = validator('b: { type: boolean }')
  for (const [text, value] of [
    ['true', true],
    ['TRUE', true],
    ['1', true],
    ['false', false],
    ['0', false],
  ] as const) {
    t.strictSame(accepted(validate, `b=${text}`), { b: value })
  }
  for (const text of ['', 'yes', '2', 'truee'])
    t.equal(refused(validate, `b=${text}`)[0]?.type, 'bool_parsing')
})

t.test('reports all faults of a request in one answer', async (t) => {
  const validate = validator(
    'port: { type: string, pattern: "^[a-z]+$", example: cork }, a: { type: integer }, b: { type: integer, minimum: 1 }, c: { type: string, required: true, example: x }, d: { type: string, format: date }, e: { type: string, list: { max_items: 1 } }',
    '/paid/x/{port}',
  )
  const errors = refused(validate, 'a=x&b=0&d=never&e=1,2', { port: '9' })
  t.strictSame(
    errors.map(({ loc }) => loc.join('.')),
    ['path.port', 'query.a', 'query.b', 'query.c', 'query.d', 'query.e'],
  )
})

t.test('reports a value with several faults once', async (t) => {
  const validate = validator(
    "q: { type: string, required: true, minLength: 3, pattern: '^[a-z]+$', example: abc }",
  )
  t.equal(refused(validate, 'q=1').length, 1)
})

t.test('uses the last of repeated parameters', async (t) => {
  const validate = validator('n: { type: integer, default: 1 }, s: { type: string }')
  t.strictSame(accepted(validate, 'n=2&n=3&unknown=4&__proto__=5&constructor=6&s=%26'), { n: 3, s: '&' })
  t.equal(refused(validate, 'n=3&n=x')[0]?.input, 'x')
  t.strictSame(accepted(validate, 'N=9&n=2'), { n: 2 }, 'names are case-sensitive')
  t.strictSame(accepted(validate, 'n%5B%5D=9'), { n: 1 })
})

t.test('reads a path parameter from the path only', async (t) => {
  const validate = validator('appid: { type: integer, minimum: 1, example: 730 }', '/paid/app/{appid}')
  t.strictSame(accepted(validate, 'appid=570', { appid: '730' }), { appid: 730 })
  t.strictSame(refused(validate, 'appid=570', { appid: 'x' })[0]?.loc, ['path', 'appid'])
  t.strictSame(refused(validate, '', { appid: '0' })[0]?.loc, ['path', 'appid'])
})

t.test('tells an absent value from an empty one', async (t) => {
  const validate = validator(
    "plain: { type: string }, optional: { type: string, default: '', minLength: 3, pattern: '^x' }, day: { type: string, default: '', format: date }, land: { type: string, default: US, format: country }, items: { type: string, default: '', list: { max_items: 2 } }",
  )
  t.strictSame(accepted(validate, ''), { optional: '', day: '', land: 'US', items: [] })
  t.strictSame(accepted(validate, 'plain=&optional=&day=&items='), {
    plain: '',
    optional: '',
    day: '',
    land: 'US',
    items: [],
  })
  t.equal(refused(validate, 'land=')[0]?.msg, 'land must be an ISO 3166-1 alpha-2 code')
  t.equal(refused(validate, 'optional=xy')[0]?.type, 'string_too_short')
  t.equal(refused(validate, 'optional=%20')[0]?.type, 'string_too_short')
})

t.test('passes texts to the handler as they were sent', async (t) => {
  const validate = validator('s: { type: string }')
  for (const text of [
    ' a ',
    'ø小🐉',
    'a+b',
    '%',
    'a&b=c',
    '<script>',
    '\0',
    'constructor',
    'toString',
    '__proto__',
  ]) {
    t.strictSame(accepted(validate, `s=${encodeURIComponent(text)}`), { s: text }, JSON.stringify(text))
  }
  t.strictSame(accepted(validate, 's=a+b'), { s: 'a b' }, 'a plus sign is a space')
  t.strictSame(accepted(validate, 's=%zz%'), { s: '%zz%' }, 'broken encoding is text')
  t.strictSame(accepted(validate, 's=%FF'), { s: '\ufffd' })
  t.strictSame(accepted(validate, 's'), { s: '' })
})

t.test('counts lengths in characters as people do', async (t) => {
  const validate = validator('s: { type: string, maxLength: 2 }')
  t.strictSame(accepted(validate, `s=${encodeURIComponent('🐉🐉')}`), { s: '🐉🐉' })
  t.equal(refused(validate, `s=${encodeURIComponent('🐉🐉🐉')}`)[0]?.type, 'string_too_long')
  const unsaid = validator('s: { type: string }')
  t.strictSame(accepted(unsaid, `s=${'x'.repeat(2000)}`), { s: 'x'.repeat(2000) })
  t.strictSame(refused(unsaid, `s=${'x'.repeat(2001)}`)[0]?.ctx, { max_length: 2000 })
})

t.test('resolves aliases, and treats inherited property names as plain values', async (t) => {
  const validate = validator(
    'kind: { type: string, default: people, enum: [people, orders], aliases: { person: people, order: orders } }',
  )
  t.strictSame(accepted(validate, 'kind=order'), { kind: 'orders' })
  t.strictSame(accepted(validate, ''), { kind: 'people' })
  for (const name of ['constructor', 'toString', '__proto__', 'People', '']) {
    t.equal(refused(validate, `kind=${name}`)[0]?.type, 'enum', name)
  }
})

t.test('reads countries in any case, and UK as GB', async (t) => {
  const validate = validator('country: { type: string, default: US, format: country }')
  for (const [text, value] of [
    ['de', 'DE'],
    ['%20jp%20', 'JP'],
    ['uk', 'GB'],
    ['UK', 'GB'],
    ['gb', 'GB'],
  ] as const) {
    t.strictSame(accepted(validate, `country=${text}`), { country: value }, text)
  }
  for (const text of ['USA', 'D', '12', 'D3', 'U K', 'ＵＳ', 'ß', 'ﬁ']) {
    t.equal(refused(validate, `country=${encodeURIComponent(text)}`)[0]?.type, 'value_error', text)
  }
})

t.test('reads dates as days of the calendar', async (t) => {
  const validate = validator("date: { type: string, default: '', format: date }")
  for (const day of ['1970-01-01', '2024-02-29', '2100-12-31', '%202026-12-23%20']) {
    t.strictSame(accepted(validate, `date=${day}`), { date: day.replaceAll('%20', '') }, day)
  }
  for (const day of [
    '2026-2-3',
    '2026-02-29',
    '2026-13-01',
    '2026-00-10',
    '2026-01-00',
    '1969-12-31',
    '2101-01-01',
    '20260101',
    '2026-01-01T00:00:00Z',
    '01.02.2026',
    'today',
    '+2026-01-01',
  ]) {
    t.equal(refused(validate, `date=${encodeURIComponent(day)}`)[0]?.msg, 'date must be YYYY-MM-DD', day)
  }
})

t.test('splits lists at any usual separator and counts an item once', async (t) => {
  const lands = validator('c: { type: string, default: "US,DE", format: country, list: { max_items: 3 } }')
  t.strictSame(accepted(lands, ''), { c: ['US', 'DE'] })
  t.strictSame(accepted(lands, 'c=us,uk;jp'), { c: ['US', 'GB', 'JP'] })
  t.strictSame(accepted(lands, 'c=us%7Cus+US,,gb,UK'), { c: ['US', 'GB'] })
  t.match(refused(lands, 'c=us,de,jp,fr')[0]?.msg, 'at most 3 values')
  t.match(refused(lands, 'c=usa')[0]?.msg, 'country codes')
  t.match(refused(lands, 'c=')[0]?.msg, 'at least 1 value')
  t.match(refused(lands, 'c=,')[0]?.msg, 'at least 1 value')
  const ids = validator(
    'ids: { type: string, required: true, example: "1", list: { items: integer, minimum: 1, maximum: 9, max_items: 5 } }',
  )
  t.strictSame(accepted(ids, 'ids=3,1,03,2'), { ids: [3, 1, 2] })
  for (const text of ['0', '10', 'x', '1,x', '1.5', '1e0', '9'.repeat(30)]) {
    t.match(refused(ids, `ids=${text}`)[0]?.msg, 'whole numbers from 1 to 9', text)
  }
})

t.test('refuses an item with a separator wherever a list comes as an array', async (t) => {
  const { routes } = compileRoutes(`  POST /paid/tags:
    price: { per: { items_of: tags, price: 0.001 } }
    summary: X
    parameters: { lands: { type: string, list: { max_items: 3 }, example: x } }
    body: { properties: { tags: { type: string, required: true, list: { max_items: 3 }, example: x } } }
`)
  const [route] = routes
  if (route === undefined) throw new Error('no route')
  const overHttp = compileValidator(route, 'ignore')
  const asTool = compileArguments(route)
  for (const item of ['a,b', 'a;b', 'a|b', 'a b', 'a\tb', 'a\u00a0b', ' a', ',', '']) {
    const body = overHttp({ path: {}, query: '', body: { tags: ['x', item] } })
    t.match(body, { kind: 'invalid', errors: [{ loc: ['body', 'tags', 1] }] }, JSON.stringify(item))
    t.match(asTool({ tags: ['x', item] }), {
      kind: 'invalid',
      errors: [{ loc: ['arguments', 'tags', 1] }],
    })
    t.match(asTool({ tags: ['x'], lands: [item] }), { kind: 'invalid' })
  }
  t.match(overHttp({ path: {}, query: '', body: { tags: ['a,b'] } }), {
    errors: [
      {
        msg: 'each item of tags must be a value without commas, semicolons, vertical bars or white space',
      },
    ],
  })
  t.match(
    overHttp({ path: {}, query: '', body: { tags: ['x', 'y', 'x'] } }),
    { kind: 'valid', args: { tags: ['x', 'y', 'x'] } },
    'an array of a body keeps its items',
  )
  t.match(
    overHttp({ path: {}, query: 'tags=z', body: { tags: ['x'] } }),
    { kind: 'valid', args: { tags: ['x'] } },
    'the query does not replace a member of the body',
  )
})

t.test('turns the one parameter of a sample into the list of its handler', async (t) => {
  const catalog = compileRoutes(`  /paid/dossier:
    price: 0.5
    summary: X
    parameters:
      appids: { type: string, required: true, example: '730,570', list: { items: integer, minimum: 1, max_items: 5 } }
      countries: { type: string, default: 'US,DE', format: country, list: { max_items: 3 } }
      count: { type: integer, default: 30, maximum: 100 }
    sample:
      parameters:
        appid: { type: integer, default: 730 }
        country: { type: string, default: US, format: country }
      with: { appids: $appid, countries: $country, count: 3 }
`)
  const sample = compileValidator(routeAt(catalog, '/sample/dossier'), 'ignore')
  t.strictSame(accepted(sample, ''), { appids: [730], countries: ['US'], count: 3 })
  t.strictSame(accepted(sample, 'appid=570&country=uk&count=99&appids=1'), {
    appids: [570],
    countries: ['GB'],
    count: 3,
  })
  const [error] = refused(sample, 'appid=0')
  t.strictSame(error?.loc, ['query', 'appid'], 'the buyer is told of the parameter they know')
  t.equal(error?.type, 'value_error')
  const paid = compileValidator(routeAt(catalog, '/paid/dossier'), 'ignore')
  t.strictSame(accepted(paid, 'appids=1+2'), { appids: [1, 2], countries: ['US', 'DE'], count: 30 })
})

t.test('accepts any query on a route without parameters', async (t) => {
  const catalog = compileRoutes('  /paid/x: { price: 1, summary: X }\n')
  t.strictSame(accepted(compileValidator(routeAt(catalog, '/paid/x'), 'ignore'), 'a=1&%&&='), {})
})

t.test('reads a query of the greatest length', async (t) => {
  const validate = validator('n: { type: integer, default: 1 }')
  t.strictSame(accepted(validate, 'a&'.repeat(30_000)), { n: 1 })
  t.strictSame(accepted(validate, `${'n=x&'.repeat(15_000)}n=2`), { n: 2 })
})

t.test('names unknown query parameters and suggests the right ones', async (t) => {
  const declared = 'country: { type: string, default: US, format: country }, n: { type: integer, default: 1 }'
  const query = 'contry=DE&n=2&utm_source=x&n=3&contry=FR'
  t.strictSame(validator(declared)({ path: {}, query: 'n=3&utm_source=x&m=1' }), {
    kind: 'valid',
    args: { country: 'US', n: 3 },
    ignored: [
      { name: 'utm_source', suggestion: undefined },
      { name: 'm', suggestion: 'n' },
    ],
  })
  t.strictSame(refused(validator(declared, '/paid/x', 'refuse'), `${query}&n=x`), [
    {
      type: 'int_parsing',
      loc: ['query', 'n'],
      msg: 'Input should be a valid integer, unable to parse string as an integer',
      input: 'x',
    },
    {
      type: 'extra_forbidden',
      loc: ['query', 'contry'],
      msg: 'Extra inputs are not permitted — did you mean "country"?',
      input: 'FR',
    },
    {
      type: 'extra_forbidden',
      loc: ['query', 'utm_source'],
      msg: 'Extra inputs are not permitted',
      input: 'x',
    },
  ])
  const many = validator(declared)({
    path: {},
    query: Array.from({ length: 50 }, (_, i) => `p${i}=1`).join('&'),
  })
  t.equal(many.kind === 'valid' && many.ignored?.length, 10, 'as many as fit into an answer')
})

t.test('refuses a name that is nearly a declared one, unless that one is given too', async (t) => {
  const declared = 'country: { type: string, default: US, format: country }, n: { type: integer, default: 1 }'
  const query = validator(declared)
  for (const [text, name, meant] of [
    ['contry=DE&n=2', 'contry', 'country'],
    ['Country=DE', 'Country', 'country'],
    ['N=2', 'N', 'n'],
  ] as const)
    t.match(refused(query, text), [
      { type: 'extra_forbidden', loc: ['query', name], msg: new RegExp(`did you mean "${meant}"`) },
    ])
  t.strictSame(accepted(query, 'contry=DE&country=FR'), { country: 'FR', n: 1 })

  const { routes } = compileRoutes(
    ['', ', additionalProperties: true']
      .map(
        (open, place) => `  POST /paid/body${place}:
    price: 1
    summary: X
    body:
      example: { model: m, text: t }
      schema: { type: object, properties: { model: { type: string }, text: { type: string } }${open} }
`,
      )
      .join(''),
  )
  const [closed, open] = routes.map((route) => compileValidator(route, 'ignore'))
  const raw = (body: Json) => ({ path: {}, query: '', body })
  t.match(closed?.(raw({ modle: 'm', text: 't' })), {
    kind: 'invalid',
    errors: [{ loc: ['body', 'modle'], msg: /did you mean "model"/ }],
  })
  t.match(closed?.(raw({ model: 'm', models: 'm', temperature: 1 })), { kind: 'valid' })
  t.match(open?.(raw({ modle: 'm' })), { kind: 'valid' })
})

t.test('a body is read as properties, a form, or a whole with a schema', async (t) => {
  const { routes } = compileRoutes(`  POST /paid/json/{id}:
    price: 1
    summary: X
    parameters: { id: { type: integer, example: 1 } }
    body:
      properties:
        text: { type: string, required: true, example: x }
        tags: { type: string, list: { max_items: 2 } }
        count: { type: integer, default: 3 }
  POST /paid/form:
    price: 1
    summary: X
    body:
      media_type: application/x-www-form-urlencoded
      properties: { count: { type: integer, required: true, example: 1 } }
  POST /paid/whole:
    price: 1
    summary: X
    body:
      example: { items: [{ size: 1 }] }
      schema:
        type: object
        required: [items]
        properties: { items: { type: array, items: { type: object, properties: { size: { type: integer } } } } }
`)
  const [json, form, whole] = routes.map((route) => compileValidator(route, 'ignore'))
  const raw = (body: Json | undefined) => ({ path: { id: '7' }, query: '', body })
  t.match(json?.(raw({ text: 'a', tags: ['x', 'y'] })), {
    kind: 'valid',
    args: { id: 7, text: 'a', tags: ['x', 'y'], count: 3 },
  })
  const wrong = json?.(raw({ text: 1, tags: ['x', 2], id: 8, count: '4' }))
  t.equal(wrong?.kind, 'invalid')
  t.strictSame(wrong?.kind === 'invalid' ? wrong.errors.map(({ loc, type }) => [loc.join('.'), type]) : [], [
    ['body.text', 'string_type'],
    ['body.tags.1', 'string_type'],
    ['body.count', 'int_type'],
    ['body.id', 'extra_forbidden'],
  ])
  t.match(form?.(raw({ count: '4' })), { kind: 'valid', args: { count: 4 } })
  t.match(form?.(raw({ count: 'x' })), { errors: [{ loc: ['body', 'count'], type: 'int_parsing' }] })
  t.match(whole?.(raw({ items: [] })), { kind: 'valid', args: { body: { items: [] } } })
  t.match(whole?.(raw({ items: [{ size: 'x' }] })), { errors: [{ loc: ['body', 'items', 0, 'size'] }] })
  t.match(whole?.(raw({})), { errors: [{ loc: ['body', 'items'], type: 'missing' }] })
  t.match(whole?.(raw(undefined)), { errors: [{ loc: ['body'], type: 'missing' }] })
})

t.test('frees the validators of former revisions', (t) => {
  const megabytesAfter = (count: number): number => {
    for (let made = 0; made < count; made += 1) accepted(validator('q: { type: integer }'), 'q=1')
    for (let round = 0; round < 10; round += 1) collectGarbage()
    return process.memoryUsage().heapUsed / 1e6
  }
  megabytesAfter(300)
  const before = megabytesAfter(300)
  // One that is kept takes ten kilobytes.
  const grown = megabytesAfter(1000) - before
  t.ok(grown < 5, `${grown.toFixed(1)} MB more after a thousand validators`)
  t.end()
})
