import t from 'tap'
import {
  asciiJson,
  canonicalJson,
  compact,
  digestJson,
  isJsonObject,
  measureJson,
  parseStrictJson,
  type Json,
} from '../../../src/engine/base/json.ts'
import { fc } from '../../support/fast-check.ts'

const json = fc.jsonValue().map((value): Json => JSON.parse(JSON.stringify(value)) as Json)

t.test('writes the canonical form of the example of RFC 8785, section 3.2.2', async (t) => {
  const value: Json = JSON.parse(String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`) as Json
  t.equal(
    canonicalJson(value),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
      '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  )
})

t.test('sorts keys by UTF-16 code units: the example of RFC 8785, section 3.2.3', async (t) => {
  const value: Json = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  }
  const sorted: unknown = [...canonicalJson(value).matchAll(/:"([^"]*)"/g)].map(([, text]) => text)
  t.strictSame(sorted, [
    'Carriage Return',
    'One',
    'Control',
    'Latin Small Letter O With Diaeresis',
    'Euro Sign',
    'Emoji: Grinning Face',
    'Hebrew Letter Dalet With Dagesh',
  ])
})

t.test('prints numbers as ECMAScript does: appendix B of RFC 8785', async (t) => {
  const printed: readonly (readonly [string, string])[] = [
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
  ]
  for (const [bits, text] of printed) t.equal(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE()), text)
})

t.test('writes the canonical form of a value in any order of its keys', async () => {
  fc.assert(
    fc.property(json, (value) => {
      const text = canonicalJson(value)
      return canonicalJson(JSON.parse(text) as Json) === text && canonicalJson(turned(value)) === text
    }),
  )
})

function turned(value: Json): Json {
  if (Array.isArray(value)) return value.map(turned)
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).map(([key, member]): [string, Json] => [key, turned(member)])
  return Object.fromEntries(entries.reverse())
}

t.test('computes digests that are short and differ between values', async (t) => {
  t.equal(digestJson({}), 'RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o')
  t.equal(digestJson({ b: 1, a: 2 }), digestJson({ a: 2, b: 1 }))
  t.not(digestJson({ a: '1' }), digestJson({ a: 1 }))
  t.not(digestJson([1, 2]), digestJson([2, 1]))
})

t.test('leaves out exactly the members without a value', async (t) => {
  t.strictSame(compact({ a: undefined, b: null, c: false, d: 0, e: '' }), { b: null, c: false, d: 0, e: '' })
})

t.test('writes the same value in ASCII', async (t) => {
  fc.assert(
    fc.property(json, (value) => {
      const text = asciiJson(value)
      return !/[\u0080-\uffff]/.test(text) && JSON.stringify(JSON.parse(text)) === JSON.stringify(value)
    }),
  )
  t.equal(asciiJson({ é: '€ 😀' }), '{"\\u00e9":"\\u20ac \\ud83d\\ude00"}')
})

t.test('JSON with a key twice in one object is refused, however the key is spelt', async (t) => {
  for (const text of ['{"a":1,"a":2}', '{"a":{"b":1,"c":[{"x":1,"\\u0078":2}]}}', '[{"":1,"":1}]'])
    t.match(parseStrictJson(text), { kind: 'fault', sentence: /^has the key ".*" twice$/ }, text)
  for (const text of [
    '{"a":"a","b":{"a":"b"}}',
    '["a","a"]',
    '{"a":["x","x"],"x":"a"}',
    '{"a\\\\":1,"a\\"":",\\"a"}',
    '"a"',
  ])
    t.strictSame(parseStrictJson(text), { kind: 'json', value: JSON.parse(text) }, text)
  for (const number of ['9007199254740993', '-12345678901234567890', `1${'0'.repeat(400)}`, '1e400'])
    t.match(parseStrictJson(`{"a":[${number}]}`), { kind: 'fault', sentence: /^has the number / }, number)
  for (const number of ['9007199254740992', '-9007199254740991', '1e300', '0.1234567890123456789', '1.0'])
    t.equal(parseStrictJson(`{"a":[${number}],"b":"9007199254740993"}`).kind, 'json', number)
  t.match(parseStrictJson('{"a":'), { kind: 'fault', sentence: 'is not JSON' })
})

t.test('tells how large a text gets before it is parsed', async (t) => {
  const sizeOf = (text: string) => measureJson(Buffer.from(text))
  const countValues = (value: Json): number => {
    if (typeof value !== 'object' || value === null) return 1
    const members = Object.values(value)
    return 1 + members.reduce<number>((sum, each) => sum + countValues(each), 0)
  }
  const depthOf = (value: Json): number =>
    typeof value === 'object' && value !== null
      ? 1 + Math.max(0, ...Object.values(value).map((each) => depthOf(each)))
      : 0
  fc.assert(
    fc.property(json, (value) => {
      const { depth, values } = sizeOf(JSON.stringify(value))
      return depth === depthOf(value) && values >= countValues(value)
    }),
  )
  t.strictSame(
    sizeOf('{"a,[{\\":":"\\\\","b":[1,2]}'),
    { depth: 2, values: 7 },
    'texts have no values in them',
  )
  t.equal(sizeOf('['.repeat(100_000)).depth, 100_000, 'what is not finished too')
  t.match(sizeOf('{"a":1,'.repeat(1_000)), { depth: 1_000, values: 3_001 })
})
