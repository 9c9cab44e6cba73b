import { fc } from '../../support/fast-check.ts'
import { type Name, NAMES } from './price-declarations.ts'

/** One value in the two ways in which it can be sent: as the text of a query, and as JSON, which may be no such value. */
export interface Spelling {
  readonly text: string
  readonly json: string
}

/** The values of one call by the names of parameters; those that are left out are not sent. */
export type Values = Readonly<Partial<Record<Name, Spelling>>>

const WORDS = ['a', 'b', 'tea', 'é', '🐉', 'e\u0301', 'x-y', 'A', '，', '0', '%2C', "'", '"', '\\', '\u200b']
/** Items that a reader of one text would take for several, or that no text can carry. */
const EVIL = ['a,b', 'a;b', 'a|b', 'a b', ' a', 'b ', 'a\tb', 'a\n', 'x\u00a0y', 'x\u2028y', ',', '', '\0']
const SEPARATORS = [',', ',', ',', ', ', ';', '|', ' ', ',,', '\t', '\u00a0', ' , ']

const word = fc.constantFrom(...WORDS)
const anyText = fc.oneof(
  { weight: 4, arbitrary: fc.array(word, { maxLength: 12 }).map((words) => words.join('')) },
  {
    weight: 1,
    arbitrary: fc.array(fc.constantFrom(...WORDS, ...EVIL), { maxLength: 12 }).map((all) => all.join('')),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
)
/** Half of a surrogate pair, in JSON only. */
const HALF = '"\\ud83d"'

const quoted = (text: string): string => JSON.stringify(text)
const alike = (text: string): Spelling => ({ text, json: quoted(text) })
const odd = (...all: readonly (readonly [string, string])[]): fc.Arbitrary<Spelling> =>
  fc.constantFrom(...all.map(([text, json]) => ({ text, json })))

/** Values that fit no parameter, or only some. */
const strange = odd(
  ['null', 'null'],
  ['', '""'],
  ['[]', '[]'],
  ['{}', '{}'],
  ['undefined', '[null]'],
  ['[["a","b"]]', '[["a","b"]]'],
  ['1', '"1"'],
  ['true', '"true"'],
  ['NaN', '{"length":40}'],
  [' ', HALF],
)

const listOf = (items: fc.Arbitrary<string>, json: (item: string) => string): fc.Arbitrary<Spelling> =>
  fc.tuple(fc.array(items, { maxLength: 9 }), fc.constantFrom(...SEPARATORS)).map(([all, separator]) => ({
    text: all.join(separator),
    json: `[${all.map(json).join(',')}]`,
  }))

const NUMBERS: readonly (readonly [string, string])[] = [
  ['0', '0'],
  ['1', '1'],
  ['7', '7'],
  ['07', '7.0'],
  ['3.0', '3.0'],
  ['1e3', '1e3'],
  ['2.5', '2.5'],
  ['-0', '-0'],
  ['-3', '-3'],
  ['+4', '4e0'],
  ['.5', '0.5'],
  ['5.', '5'],
  ['0.1', '0.30000000000000004'],
  ['1e-7', '1e-7'],
  ['1e-20', '1e-20'],
  ['99999', '99999'],
  ['999999999999999', '999999999999999'],
  ['9007199254740993', '9007199254740993'],
  ['1e22', '1e22'],
  ['1e999', '1e999'],
  ['Infinity', '-1e999'],
  [' 12 ', '12'],
  ['0x10', '16'],
  ['１２', '"12"'],
  ['1,5', '"1,5"'],
  ['999.9999999999999', '999.9999999999999'],
]
const numbers = odd(...NUMBERS)
const numberItem = fc.constantFrom(...NUMBERS)

const VALUES: Readonly<Record<Name, fc.Arbitrary<Spelling>>> = {
  text: anyText.map(alike),
  texts: fc.oneof(
    { weight: 3, arbitrary: listOf(word, quoted) },
    { weight: 1, arbitrary: listOf(fc.oneof(word, fc.constantFrom(...EVIL)), quoted) },
    { weight: 1, arbitrary: fc.constant({ text: 'a,a,a', json: `["a",${HALF},"a"]` }) },
  ),
  numbers: fc.oneof(
    listOf(fc.integer({ min: -3, max: 99 }).map(String), String),
    fc.array(numberItem, { maxLength: 9 }).map((all) => ({
      text: all.map(([text]) => text).join(','),
      json: `[${all.map(([, json]) => json).join(',')}]`,
    })),
  ),
  countries: listOf(
    fc.constantFrom('US', 'us', 'DE', 'gb', 'UK', 'uk', 'FR', ' de ', 'DEU', 'ß', 'US,DE', 'JP'),
    quoted,
  ),
  count: numbers,
  ratio: numbers,
  size: fc.oneof(odd(['1', '1'], ['2.50', '2.5'], ['2.0', '2.0'], ['25e-1', '25e-1']), numbers),
  loud: odd(
    ['true', 'true'],
    ['1', 'true'],
    ['FALSE', 'false'],
    ['0', '0'],
    ['yes', '"true"'],
    [' true ', 'false'],
  ),
  style: odd(
    ['plain', '"plain"'],
    ['formal', '"formal"'],
    ['posh', '"posh"'],
    ['Plain', '"Plain"'],
    ['plain ', '"formal "'],
    ['', 'null'],
    ['constructor', '"__proto__"'],
  ),
  day: odd(
    ['2026-02-28', '"2026-02-28"'],
    [' 2026-02-28 ', '" 2026-02-28\\n"'],
    ['2026-02-30', '"2026-02-30"'],
    ['', '""'],
  ),
  shape: odd(
    ['{}', '{}'],
    ['{"b":1,"a":[1.0,-0]}', '{"b":1,"a":[1.0,-0]}'],
    ['{"n":9007199254740993}', '{"n":9007199254740993}'],
    ['{"a":1,"a":2}', '{"a":1,"a":2}'],
    ['{"é":"\\u00e9"}', '{"é":"\\u00e9\\/"}'],
    ['{"a":"\\ud800"}', '{"a":"\\ud800"}'],
    ['{"__proto__":{"x":1}}', '{"__proto__":{"x":1}}'],
  ),
}

const values: fc.Arbitrary<Values> = fc.record(
  Object.fromEntries(
    NAMES.map((name) => [
      name,
      fc.option(fc.oneof({ weight: 12, arbitrary: VALUES[name] }, { weight: 1, arbitrary: strange }), {
        nil: undefined,
        freq: 5,
      }),
    ]),
  ),
) as fc.Arbitrary<Values>

/** One call of any route: each uses the parts that it takes. */
export interface Call {
  /** Which route, of as many as there are. */
  readonly route: number
  readonly by: 'http' | 'mcp'
  readonly values: Values
  /** Sends the first argument twice. */
  readonly twice: boolean
  /** For bodies that are a list, a text, or bytes. */
  readonly items: readonly string[]
  readonly bytes: Uint8Array
}

const callOf: fc.Arbitrary<Call> = fc.record({
  route: fc.nat(11),
  by: fc.constantFrom('http' as const, 'http' as const, 'mcp' as const),
  values,
  twice: fc.integer({ min: 0, max: 19 }).map((drawn) => drawn === 0),
  items: fc.array(
    fc.oneof(VALUES.text, VALUES.texts, VALUES.shape, numbers).map(({ json }) => json),
    {
      maxLength: 8,
    },
  ),
  bytes: fc.uint8Array({ maxLength: 60 }),
})

export const calls = fc.array(callOf, { minLength: 1, maxLength: 24, size: 'max' })
