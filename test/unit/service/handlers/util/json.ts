import { readFileSync } from 'node:fs'
import t from 'tap'
import { Failure, InvalidParameter, isJsonObject } from '../../../../../src/engine/handler.ts'
import type { EnvelopedAnswer, Json, JsonObject } from '../../../../../src/engine/handler.ts'
import type { Parameters } from '../../../../../src/service/handlers/catalog.ts'
import { json } from '../../../../../src/service/handlers/util/json.ts'
import { perform } from '../../../../../src/service/handlers/util/json/operations.ts'
import { fixedContext } from '../../../../support/handler-context.ts'
import { fc } from '../../../../support/fast-check.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const { property, assert: check, json: anyJson } = fc

type Op = Parameters['util/json']['op']

async function answerOf(op: Op, data: string, schema = ''): Promise<EnvelopedAnswer> {
  return checkedAnswer(
    'util/json',
    await json({ op, data, schema }, fixedContext({ now: () => new Date(0) })),
  )
}

async function resultOf(op: Op, data: string, schema = ''): Promise<Json> {
  return (await answerOf(op, data, schema)).body['result'] ?? null
}

async function warningsOf(op: Op, data: string, schema = ''): Promise<readonly string[]> {
  return ((await answerOf(op, data, schema)).warnings ?? []).map(
    (warning) => `${warning.code}: ${warning.message}`,
  )
}

/** What the caller reads when a request is refused: `parameter: sentence`. */
async function refusalOf(op: Op, data: string, schema = ''): Promise<string> {
  return refused(() => answerOf(op, data, schema))
}

async function refused(attempt: () => Promise<EnvelopedAnswer>): Promise<string> {
  try {
    return `answered ${JSON.stringify((await attempt()).body)}`
  } catch (error) {
    if (error instanceof InvalidParameter) return `${error.parameter}: ${error.sentence}`
    if (error instanceof Failure) return `${error.code}: ${error.detail}`
    throw error
  }
}

/** What a program reads when a request is refused. */
async function contextOf(op: Op, data: string, schema = ''): Promise<JsonObject | undefined> {
  const failure = await answerOf(op, data, schema).catch((error: unknown) => error)
  return failure instanceof InvalidParameter ? failure.ctx : undefined
}

const TOO_COMPLEX = 'data: input too complex to process within 1000 ms'

/** 64 levels are allowed, 65 are not. */
function nested(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels)
}

t.test('states what was computed and how large it was', async (t) => {
  t.same(await answerOf('minify', '{ "ä": 1.0 }'), {
    source: [{ name: 'computed', version: '1.0.0' }],
    body: { op: 'minify', result: '{"ä":1}', input_bytes: 13, output_bytes: 8, elapsed_ms: 0 },
    warnings: [],
  })
})

t.test('keeps the document in parse, format and minify', async (t) => {
  t.same(await resultOf('parse', ' [1, "x", null, {"a": true}] '), [1, 'x', null, { a: true }])
  t.equal(await resultOf('format', '{"a":[1]}'), '{\n  "a": [\n    1\n  ]\n}')
  t.equal(await resultOf('format', '[1]', '4'), '[\n    1\n]')
  t.equal(await resultOf('format', '[1]', '8'), '[\n        1\n]')
  t.equal(await resultOf('format', '[1, 2]', '0'), '[1,2]')
  t.equal(await resultOf('minify', '{\n "b" : 2,\t"a": [ ] }'), '{"b":2,"a":[]}')
  for (const indent of ['9', '-1', '2.0', ' ', 'two', '１']) {
    t.equal(
      await refusalOf('format', '1', indent),
      "schema: schema must be an indent from 0 to 8 for op 'format'",
    )
  }
})

t.test('sorts keys and writes numbers as RFC 8785 does', async (t) => {
  const numbers = '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]}'
  t.equal(await resultOf('sort', numbers), '{"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27]}')
  const keys = String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`
  const sorted = await resultOf('sort', keys)
  t.same(
    JSON.stringify(sorted)
      .replaceAll('\\"', '"')
      .match(/(?<=:")[^"]+/g),
    [
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ],
    'by UTF-16 code units',
  )
  t.equal(await resultOf('sort', '[56,{"d":true,"10":null,"1":[]},-0]'), '[56,{"1":[],"10":null,"d":true},0]')
})

t.test('gives equal documents equal hashes', async (t) => {
  const expected = {
    algorithm: 'sha256',
    hex: 'd3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772',
    canonical_bytes: 13,
  }
  t.same(await resultOf('hash', '{"b":1,"a":2}'), expected)
  t.same(await resultOf('hash', '{ "a": 2.0, "b": 1e0 }'), expected)
  t.notSame(await resultOf('hash', '{"a":1,"b":2}'), expected)
})

t.test('states what parsing loses', async (t) => {
  t.same(await warningsOf('parse', '{"a":1,"b":{"a":2},"a":3,"\\u0061":4}'), [
    'repeated_keys: data repeats 2 keys within an object, first at position 19; the last value counts',
  ])
  t.same(await resultOf('parse', '{"a":1,"a":3}'), { a: 3 })
  t.same(await warningsOf('parse', '[1, 12345678901234567890]'), [
    'rounded_numbers: data has 1 number with more digits than a 64-bit float holds, first at position 4; the nearest float is used',
  ])
  const rounded = ['9007199254740993', '-0.10000000000000000555', '1e-400', '3.141592653589793238']
  for (const number of rounded) t.match((await warningsOf('parse', number))[0], /^rounded_numbers/, number)
  const exact = [
    '9007199254740992',
    '100000000000000000000000',
    '0.1',
    '1.50',
    '-0',
    '1e308',
    '5e-324',
    '0e999',
  ]
  for (const number of exact) t.same(await warningsOf('parse', number), [], number)
  t.same(await warningsOf('diff', '1', '{"a":1,"a":2}'), [
    'repeated_keys: schema repeats 1 key within an object, first at position 7; the last value counts',
  ])
  t.same(await warningsOf('minify', '1', 'x'), ["schema_unused: op 'minify' takes no schema"])
  t.same(await warningsOf('from_csv', 'a', ';'), ["schema_unused: op 'from_csv' takes no schema"])
})

t.test('finds a syntax error at its position', async (t) => {
  const places: readonly (readonly [string, string])[] = [
    ['[1,]', "unexpected character ']' at position 3"],
    ['{"a":1,}', "unexpected character '}' at position 7"],
    ['{a:1}', "unexpected character 'a' at position 1"],
    ['{"a" 1}', "unexpected character '1' at position 5"],
    ['[1 2]', "unexpected character '2' at position 3"],
    ['[1}', "unexpected character '}' at position 2"],
    ['01', "unexpected character '1' at position 1"],
    ['-', "unexpected character '-' at position 0"],
    ['1.', "unexpected character '.' at position 1"],
    ['NaN', "unexpected character 'N' at position 0"],
    ['nul', "unexpected character 'n' at position 0"],
    ['"\\x"', "unexpected character 'x' at position 2"],
    ['"\\u12g4"', "unexpected character 'u' at position 2"],
    ['"a\nb"', 'unexpected character U+000A at position 2'],
    ['\ufeff1', 'unexpected character U+FEFF at position 0'],
    ['[😀]', "unexpected character '😀' at position 1"],
    ['"', 'unexpected end of text at position 1'],
    ['"\\', 'unexpected end of text at position 2'],
    ['[1', 'unexpected end of text at position 2'],
    ['{"a":', 'unexpected end of text at position 5'],
    [' ', 'unexpected end of text at position 1'],
  ]
  for (const [text, place] of places) {
    t.equal(await refusalOf('parse', text), `data: data is not valid JSON: ${place}`)
  }
  t.same(await contextOf('parse', '[1,]'), { position: 3 })
  t.equal(
    await refusalOf('diff', '1', '{'),
    'schema: schema is not valid JSON: unexpected end of text at position 1',
  )
})

t.test('accepts exactly the texts that are JSON', async (t) => {
  const accepted = (text: string): boolean => {
    try {
      perform({ op: 'parse', data: text, schema: '' })
      return true
    } catch (error) {
      if (error instanceof InvalidParameter) return false
      throw error
    }
  }
  check(property(anyJson({ maxDepth: 10 }), accepted))
  // every text that is one character away from JSON, against the parser of the platform
  const seed = '{"a":[1.5e+3,-0,"\\u00e9\\n",true,null],"b":{}}'
  for (let at = 0; at < seed.length; at += 1) {
    for (const put of ['', '"', '\\', ',', ':', '}', ']', '0', 'e', '-', ' ', '\u0000']) {
      const text = seed.slice(0, at) + put + seed.slice(at + 1)
      if (accepted(text) !== parses(text)) t.fail(text)
    }
  }
})

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

t.test('refuses an operation without its operand', async (t) => {
  const ops: readonly Op[] = ['validate', 'parse', 'repair', 'query', 'diff', 'to_csv', 'from_csv', 'hash']
  for (const op of ops) t.equal(await refusalOf(op, '', '1'), 'data: data is required', op)
  const withSecond: readonly Op[] = ['validate', 'query', 'diff', 'patch', 'merge']
  for (const op of withSecond) t.equal(await refusalOf(op, '1'), `schema: schema is required for op '${op}'`)
})

t.test('refuses numbers that would turn into null', async (t) => {
  t.equal(await refusalOf('parse', '[1e400]'), 'data: data has a number too large to hold at position 1')
  t.equal(
    await refusalOf('merge', '1', `-${'9'.repeat(400)}`),
    'schema: schema has a number too large to hold at position 0',
  )
})

t.test('refuses deep documents before anything recurses', async (t) => {
  t.equal(await resultOf('minify', nested(64)), nested(64))
  const sentence = 'is nested deeper than 64 levels'
  t.equal(await refusalOf('parse', nested(65)), `data: data ${sentence}`)
  t.equal(await refusalOf('stats', '['.repeat(100_000)), `data: data ${sentence}`)
  t.equal(await refusalOf('validate', '{"a":'.repeat(100_000), '{}'), `data: data ${sentence}`)
  t.equal(await refusalOf('diff', '1', nested(100_000)), `schema: schema ${sentence}`)
  t.equal(await refusalOf('repair', nested(70)), `data: data ${sentence}`)
  t.equal(await refusalOf('repair', '['.repeat(100_000)), 'data: data is nested too deeply to repair')
  t.equal(
    await refusalOf('unflatten', JSON.stringify({ ['a.'.repeat(65)]: 1 })),
    'data: data would be nested deeper than 64 levels',
  )
})

t.test('treats __proto__ as an ordinary member', async (t) => {
  const hostile = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'
  for (const op of ['parse', 'flatten', 'unflatten', 'stats', 'infer_schema', 'repair'] as const) {
    const { result } = (await answerOf(op, hostile)).body
    if (op !== 'stats') t.match(JSON.stringify(result), /"__proto__/, op)
  }
  t.equal(await resultOf('minify', hostile), hostile)
  t.equal(JSON.stringify(await resultOf('merge', '{}', hostile)), hostile)
  t.equal(
    JSON.stringify(
      await resultOf('patch', '{}', '[{"op":"add","path":"/__proto__","value":{"polluted":1}}]'),
    ),
    '{"__proto__":{"polluted":1}}',
  )
  t.equal(
    JSON.stringify(await resultOf('unflatten', '{"__proto__.polluted":1}')),
    '{"__proto__":{"polluted":1}}',
  )
  t.equal(JSON.stringify(await resultOf('from_csv', '__proto__\n1')), '[{"__proto__":"1"}]')
  t.equal(await resultOf('to_csv', '[{"__proto__":1},{"toString":2}]'), '__proto__,toString\r\n1,\r\n,2\r\n')
  t.same(await resultOf('query', hostile, '$.__proto__.polluted'), [
    { path: "$['__proto__']['polluted']", value: 1 },
  ])
  t.same(await resultOf('query', '{}', '$["__proto__","toString"]'), [])
  t.equal(await resultOf('pointer', hostile, '/__proto__/polluted'), 1)
  t.equal(await refusalOf('pointer', '{}', '/__proto__'), 'schema: schema points to nothing in data')
  t.same(await resultOf('diff', '{}', '{"__proto__":1}'), [{ op: 'add', path: '/__proto__', value: 1 }])
  t.equal(Object.hasOwn(Object.prototype, 'polluted'), false)
})

t.test('repairs broken JSON', async (t) => {
  t.same(await resultOf('repair', "{a:1, 'b':[1,2,], c: True}"), {
    value: { a: 1, b: [1, 2], c: true },
    text: '{"a":1, "b":[1,2], "c": true}',
    changed: true,
  })
  t.same(await resultOf('repair', '[1]'), { value: [1], text: '[1]', changed: false })
  t.same(await resultOf('repair', '```json\n{"a": [1, 2}\n```'), {
    value: { a: [1, 2] },
    text: '{"a": [1, 2]}',
    changed: true,
  })
  t.equal(await refusalOf('repair', '}'), 'data: data cannot be repaired: stuck at position 1')
})

t.test('extracts JSON values from the text of a language model', async (t) => {
  const answers: readonly [string, Json][] = [
    ['Here you are:\n```json\n{"a": [1, 2}\n```\nAnything else?', { a: [1, 2] }],
    ['The answer is {"a": 1}.', { a: 1 }],
    ['{"a":1}{"b":2}', [{ a: 1 }, { b: 2 }]],
    ['<think>perhaps {"x": 1}?</think>\n{"a": 2}', { a: 2 }],
    ['See [1]: {"quoted": "a } in a text"} as asked', { quoted: 'a } in a text' }],
    ['```\n[1]\n```\nand\n```\n[2,\n```', [[1], [2]]],
  ]
  for (const [data, value] of answers) {
    t.match(await resultOf('repair', data), { value, changed: true }, data)
    t.match(await warningsOf('repair', data), [/^surrounding_text_removed: data holds /], data)
  }
})

// RFC 9535 §1.5, with the document of §1.5 and the paths its table names
const BOOKSTORE = JSON.stringify({
  store: {
    book: [
      { category: 'reference', author: 'Nigel Rees', title: 'Sayings of the Century', price: 8.95 },
      { category: 'fiction', author: 'Evelyn Waugh', title: 'Sword of Honour', price: 12.99 },
      {
        category: 'fiction',
        author: 'Herman Melville',
        title: 'Moby Dick',
        isbn: '0-553-21311-3',
        price: 8.99,
      },
      {
        category: 'fiction',
        author: 'J. R. R. Tolkien',
        title: 'The Lord of the Rings',
        isbn: '0-395-19395-8',
        price: 22.99,
      },
    ],
    bicycle: { color: 'red', price: 399 },
  },
})

async function pathsOf(data: string, query: string): Promise<readonly Json[]> {
  const nodes = await resultOf('query', data, query)
  return Array.isArray(nodes)
    ? nodes.map((node: Json) => (isJsonObject(node) ? (node['path'] ?? null) : null))
    : []
}

t.test('selects by JSONPath what RFC 9535 says', async (t) => {
  const books = (...indices: readonly number[]): readonly string[] =>
    indices.map((index) => `$['store']['book'][${index}]`)
  const authors = books(0, 1, 2, 3).map((book) => `${book}['author']`)
  const prices = books(0, 1, 2, 3).map((book) => `${book}['price']`)
  const table: Readonly<Record<string, readonly string[]>> = {
    '$.store.book[*].author': authors,
    '$..author': authors,
    '$.store.*': ["$['store']['book']", "$['store']['bicycle']"],
    '$.store..price': [...prices, "$['store']['bicycle']['price']"],
    '$..book[2]': books(2),
    '$..book[2].author': books(2).map((book) => `${book}['author']`),
    '$..book[2].publisher': [],
    '$..book[-1]': books(3),
    '$..book[0,1]': books(0, 1),
    '$..book[:2]': books(0, 1),
    '$..book[?@.isbn]': books(2, 3),
    '$..book[?@.price<10]': books(0, 2),
    "$..book[?match(@.author, '[EJ].*')]": books(1, 3),
    "$..book[?search(@.author, 'R')]": books(0, 3),
    "$..book[?length(@.title) == 9 && !(@.category == 'reference')]": books(2),
    '$..book[?count(@.*) > 4 || value(@.price) > 20]': books(2, 3),
    $: ['$'],
  }
  for (const [query, paths] of Object.entries(table)) t.same(await pathsOf(BOOKSTORE, query), paths, query)
  t.equal((await pathsOf(BOOKSTORE, '$..*')).length, 27)
  t.same(await resultOf('query', BOOKSTORE, '$.store.bicycle'), [
    { path: "$['store']['bicycle']", value: { color: 'red', price: 399 } },
  ])
  t.same(await pathsOf('{"a":[3,{"b":1}],"o p":{"q\'":[true]}}', '$..[0]'), [
    "$['a'][0]",
    "$['o p']['q\\''][0]",
  ])
  t.same(
    await pathsOf(nested(64), '$..[0]'),
    Array.from({ length: 63 }, (_, depth) => `$${'[0]'.repeat(depth + 1)}`),
  )
})

t.test('leaves line ends out of the dot of an I-Regexp', async (t) => {
  t.same(await pathsOf('["a\\nb","a\\rb","axb","a.b"]', "$[?match(@, 'a.b')]"), ['$[2]', '$[3]'])
  t.same(await pathsOf('["a.b","axb"]', "$[?match(@, 'a[.]b')]"), ['$[0]'])
  t.same(await pathsOf('["a.b","axb"]', "$[?match(@, 'a\\\\.b')]"), ['$[0]'])
})

t.test('matches nothing with an invalid I-Regexp, and says so', async (t) => {
  t.same(await answerOf('query', '["12"]', "$[?match(@, '\\\\d+')]"), {
    source: [{ name: 'computed', version: '1.0.0' }],
    body: { op: 'query', result: [], input_bytes: 6, output_bytes: 2, elapsed_ms: 0 },
    warnings: [
      {
        code: 'pattern_not_interoperable',
        message: "The pattern '\\d+' is no I-Regexp (RFC 9485), so it matches nothing",
      },
    ],
  })
})

t.test('refuses a malformed JSONPath at its position', async (t) => {
  const places: Readonly<Record<string, number>> = { store: 0, '$.': 2, '$[?foo(@)]': 3, "$['a'": 5 }
  for (const [query, position] of Object.entries(places)) {
    t.same(await contextOf('query', '{}', query), { position }, query)
    t.equal(
      await refusalOf('query', '{}', query),
      `schema: schema is not a valid JSONPath at position ${position}`,
    )
  }
  t.match(
    await refusalOf('query', '{}', `$[?${'('.repeat(19_000)}`),
    /^schema: schema is not a valid JSONPath|^data: /,
  )
})

t.test('finds by JSON Pointer what RFC 6901 says', async (t) => {
  const document = {
    foo: ['bar', 'baz'],
    '': 0,
    'a/b': 1,
    'c%d': 2,
    'e^f': 3,
    'g|h': 4,
    'i\\j': 5,
    'k"l': 6,
    ' ': 7,
    'm~n': 8,
  }
  const table: Readonly<Record<string, Json>> = {
    '': document,
    '/foo': ['bar', 'baz'],
    '/foo/0': 'bar',
    '/': 0,
    '/a~1b': 1,
    '/c%d': 2,
    '/e^f': 3,
    '/g|h': 4,
    '/i\\j': 5,
    '/k"l': 6,
    '/ ': 7,
    '/m~0n': 8,
  }
  const data = JSON.stringify(document)
  for (const [pointer, value] of Object.entries(table))
    t.same(await resultOf('pointer', data, pointer), value, pointer)
  t.equal(await resultOf('pointer', '{"~1":5}', '/~01'), 5, '~01 is ~1, not /')
  for (const pointer of [
    '/nope',
    '/foo/2',
    '/foo/-',
    '/foo/00',
    '/foo/1.0',
    '/foo/length',
    '/foo/0/0',
    '/foo/#0',
  ]) {
    t.equal(await refusalOf('pointer', data, pointer), 'schema: schema points to nothing in data', pointer)
  }
  t.equal(
    await refusalOf('pointer', data, 'foo'),
    'schema: schema is not a JSON Pointer: it must be empty or start with /',
  )
  for (const pointer of ['/a~', '/a~2b']) {
    t.equal(
      await refusalOf('pointer', data, pointer),
      'schema: schema is not a JSON Pointer: after ~ only 0 or 1 may follow',
    )
  }
})

t.test('patches as RFC 6902 appendix A says', async (t) => {
  const table: readonly (readonly [string, string, string])[] = [
    // A.1 to A.7
    ['{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux"}]', '{"foo":"bar","baz":"qux"}'],
    ['{"foo":["bar","baz"]}', '[{"op":"add","path":"/foo/1","value":"qux"}]', '{"foo":["bar","qux","baz"]}'],
    ['{"baz":"qux","foo":"bar"}', '[{"op":"remove","path":"/baz"}]', '{"foo":"bar"}'],
    ['{"foo":["bar","qux","baz"]}', '[{"op":"remove","path":"/foo/1"}]', '{"foo":["bar","baz"]}'],
    [
      '{"baz":"qux","foo":"bar"}',
      '[{"op":"replace","path":"/baz","value":"boo"}]',
      '{"baz":"boo","foo":"bar"}',
    ],
    [
      '{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}',
      '[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]',
      '{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}',
    ],
    [
      '{"foo":["all","grass","cows","eat"]}',
      '[{"op":"move","from":"/foo/1","path":"/foo/3"}]',
      '{"foo":["all","cows","eat","grass"]}',
    ],
    // A.8, A.10, A.11, A.14, A.16
    [
      '{"baz":"qux","foo":["a",2,"c"]}',
      '[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]',
      '{"baz":"qux","foo":["a",2,"c"]}',
    ],
    [
      '{"foo":"bar"}',
      '[{"op":"add","path":"/child","value":{"grandchild":{}}}]',
      '{"foo":"bar","child":{"grandchild":{}}}',
    ],
    ['{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux","xyz":123}]', '{"foo":"bar","baz":"qux"}'],
    ['{"/":9,"~1":10}', '[{"op":"test","path":"/~01","value":10}]', '{"/":9,"~1":10}'],
    [
      '{"foo":["bar"]}',
      '[{"op":"add","path":"/foo/-","value":["abc","def"]}]',
      '{"foo":["bar",["abc","def"]]}',
    ],
    // beyond the appendix
    ['{"a":1}', '[]', '{"a":1}'],
    ['{"a":1}', '[{"op":"add","path":"","value":[null]}]', '[null]'],
    ['{"a":1}', '[{"op":"replace","path":"","value":2}]', '2'],
    ['{"a":1}', '[{"op":"move","from":"/a","path":"/a"}]', '{"a":1}'],
    ['{"a":{"b":[1]}}', '[{"op":"copy","from":"","path":"/a/c"}]', '{"a":{"b":[1],"c":{"a":{"b":[1]}}}}'],
    [
      '{"a":1,"b":{"x":1,"y":2}}',
      '[{"op":"test","path":"/b","value":{"y":2.0,"x":1}}]',
      '{"a":1,"b":{"x":1,"y":2}}',
    ],
  ]
  for (const [data, patch, result] of table)
    t.equal(JSON.stringify(await resultOf('patch', data, patch)), result, patch)
  t.same(
    await resultOf(
      'patch',
      '{"a":[1]}',
      '[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/-","value":2}]',
    ),
    { a: [1], b: [1, 2] },
    'a copy is independent of its source',
  )
})

t.test('names the operation and the reason of an impossible patch', async (t) => {
  const table: readonly (readonly [string, string, string])[] = [
    // A.9, A.12, A.15
    ['{"baz":"qux"}', '{"op":"test","path":"/baz","value":"bar"}', 'the tested value is different'],
    ['{"foo":"bar"}', '{"op":"add","path":"/baz/bat","value":"qux"}', 'nothing at its path'],
    ['{"/":9,"~1":10}', '{"op":"test","path":"/~01","value":"10"}', 'the tested value is different'],
    // beyond the appendix
    ['{"a":1}', '{"op":"test","path":"/b","value":null}', 'nothing at its path'],
    ['{"a":1}', '{"op":"remove","path":"/b"}', 'nothing at its path'],
    ['{"a":1}', '{"op":"replace","path":"/b","value":1}', 'nothing at its path'],
    ['{"a":1}', '{"op":"add","path":"/a/b","value":1}', 'nothing at its path'],
    ['{"a":1}', '{"op":"copy","from":"/b","path":"/c"}', 'nothing at its path'],
    ['{"a":1}', '{"op":"remove","path":""}', 'the whole document cannot be removed'],
    ['{"a":{}}', '{"op":"move","from":"/a","path":"/a/b"}', 'a value cannot move into itself'],
    ['[1]', '{"op":"add","path":"/2","value":1}', 'no such place in the array'],
    ['[1]', '{"op":"add","path":"/01","value":1}', 'no such place in the array'],
    ['[1]', '{"op":"add","path":"/x","value":1}', 'no such place in the array'],
    ['[]', '{"op":"add","path":"/","value":1}', 'no such place in the array'],
    ['[1]', '{"op":"remove","path":"/-"}', 'nothing at its path'],
    ['{}', '{"op":"add","path":"/a"}', "'value' is missing"],
    ['{}', '{"op":"add","value":1}', "'path' must be a JSON Pointer"],
    ['{}', '{"op":"copy","path":"/a"}', "'from' must be a JSON Pointer"],
    ['{}', '{"op":"add","path":"a","value":1}', 'malformed pointer'],
    ['{}', '{"op":"spam","path":"/a"}', "'op' must be add, remove, replace, move, copy or test"],
    ['{}', '{"path":"/a"}', "'op' must be add, remove, replace, move, copy or test"],
    ['{}', '7', 'it is not an object'],
  ]
  for (const [data, operation, reason] of table) {
    const patch = `[{"op":"test","path":"","value":${data}},${operation}]`
    t.equal(
      await refusalOf('patch', data, patch),
      `schema: schema cannot be applied: operation 1: ${reason}`,
      operation,
    )
  }
  t.equal(
    await refusalOf('patch', '{}', '{}'),
    "schema: schema must be an array of operations for op 'patch'",
  )
})

t.test('merges as RFC 7396 appendix A says', async (t) => {
  const table: readonly (readonly [string, string, string])[] = [
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['["a","b"]', '["c","d"]', '["c","d"]'],
    ['{"a":"b"}', '["c"]', '["c"]'],
    ['{"a":"foo"}', 'null', 'null'],
    ['{"a":"foo"}', '"bar"', '"bar"'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  ]
  for (const [data, patch, result] of table)
    t.equal(JSON.stringify(await resultOf('merge', data, patch)), result, patch)
})

t.test('computes a short difference that leads from one document to the other', async (t) => {
  t.match(
    (await answerOf('diff', '{"a":1,"b":[1,2,3],"c":{"d":1}}', '{"b":[1,9,2,3],"c":{"d":2},"e":null}')).body,
    {
      result: [
        { op: 'remove', path: '/a' },
        { op: 'add', path: '/b/1', value: 9 },
        { op: 'replace', path: '/c/d', value: 2 },
        { op: 'add', path: '/e', value: null },
      ],
      equal: false,
      counts: { add: 2, remove: 1, replace: 1 },
    },
  )
  t.match((await answerOf('diff', '{"a":[1.0,{"b":2,"c":3}]}', '{"a":[1,{"c":3,"b":2}]}')).body, {
    result: [],
    equal: true,
  })
  t.same(await resultOf('diff', '[{"id":1,"n":"x"},{"id":2}]', '[{"id":0},{"id":1,"n":"y"},{"id":2}]'), [
    { op: 'remove', path: '/0/n' },
    { op: 'replace', path: '/0/id', value: 0 },
    { op: 'add', path: '/1', value: { id: 1, n: 'y' } },
  ])
  t.same(await resultOf('diff', '{"a/b~":1}', '{}'), [{ op: 'remove', path: '/a~1b~0' }])
  t.same(await resultOf('diff', '[1]', '{"0":1}'), [{ op: 'replace', path: '', value: { '0': 1 } }])

  const small = anyJson({ maxDepth: 4 })
  check(
    property(small, small, (before, after) => {
      const patch = perform({ op: 'diff', data: before, schema: after }).body['result'] ?? null
      const result =
        perform({ op: 'patch', data: before, schema: JSON.stringify(patch) }).body['result'] ?? null
      const canonical = (text: string): Json =>
        perform({ op: 'sort', data: text, schema: '' }).body['result'] ?? null
      return canonical(JSON.stringify(result)) === canonical(after)
    }),
  )
})

t.test('flatten and unflatten reverse each other', async (t) => {
  const flat = { 'a.0.b': 1, 'a.1': [], c: {}, '': null }
  t.same(await resultOf('flatten', '{"a":[{"b":1},[]],"c":{},"":null}'), flat)
  t.same(await resultOf('unflatten', JSON.stringify(flat)), { a: [{ b: 1 }, []], c: {}, '': null })
  t.same(await resultOf('flatten', '{"a.b":{"c":1}}', '/'), { 'a.b/c': 1 })
  t.same(await resultOf('unflatten', '{"0.x":1,"1":2}'), [{ x: 1 }, 2])
  t.same(await resultOf('unflatten', '{"10":1,"a.99999999":1,"a.1":2}'), {
    '10': 1,
    a: { '1': 2, '99999999': 1 },
  })
  t.same(await resultOf('flatten', '[]'), {})
  t.equal(
    await refusalOf('flatten', '{"a.b":1,"a":{"b":2}}'),
    "schema: schema must be another separator: two values flatten to 'a.b'",
  )
  t.equal(await refusalOf('flatten', '1'), "data: data must be an object or an array for op 'flatten'")
  t.equal(await refusalOf('unflatten', '[]'), "data: data must be an object for op 'unflatten'")
  for (const data of ['{"a":1,"a.b":1}', '{"a.b":1,"a":1}', '{"a.b.c":1,"a.b":{}}']) {
    t.match(
      await refusalOf('unflatten', data),
      /^data: data has a value and a container at the same place: 'a/,
    )
  }
})

t.test('converts tables to CSV and back', async (t) => {
  const table = '[{"name":"Ann, \\"A\\"","age":30,"tags":["x"]},{"name":"line\\nend","ok":true,"age":null}]'
  const csv = 'name,age,tags,ok\r\n"Ann, ""A""",30,"[""x""]",\r\n"line\nend",,,true\r\n'
  t.equal(await resultOf('to_csv', table), csv)
  t.same(await resultOf('from_csv', csv), [
    { name: 'Ann, "A"', age: '30', tags: '["x"]', ok: '' },
    { name: 'line\nend', age: '', tags: '', ok: 'true' },
  ])
  t.equal(await resultOf('to_csv', '[[1,"a;b"],[null,false]]'), '1,a;b\r\n,false\r\n')
  t.equal(await resultOf('to_csv', '[{"a":null},{"a":""}]'), 'a\r\n""\r\n""\r\n')
  t.equal(await resultOf('to_csv', '[]'), '')
  t.same(await resultOf('from_csv', '\ufeffa,b\n007,"x\ny"\n\n'), [{ a: '007', b: 'x\ny' }])
  t.same(await resultOf('from_csv', 'a,b'), [])
  t.same(await resultOf('from_csv', '\n'), [])
  for (const data of ['{}', '[1]', '[[1],{"a":1}]', 'null']) {
    t.equal(
      await refusalOf('to_csv', data),
      "data: data must be an array of objects, or of arrays, for op 'to_csv'",
      data,
    )
  }
  t.equal(
    await refusalOf('from_csv', 'a,b\n1'),
    'data: data is not valid CSV: record 2 has 1 field, the header has 2',
  )
  t.equal(
    await refusalOf('from_csv', 'a\n1\n1,2'),
    'data: data is not valid CSV: record 3 has 2 fields, the header has 1',
  )
  t.equal(await refusalOf('from_csv', 'a,a\n1,2'), "data: data is not valid CSV: the header names 'a' twice")
  for (const data of ['a\n"1', 'a\n1"2"', 'a\n"1"2']) {
    t.equal(
      await refusalOf('from_csv', data),
      'data: data is not valid CSV: a quote is misplaced or never closed',
      data,
    )
  }
})

t.test('measures a document', async (t) => {
  t.same(await resultOf('stats', '{"a":[1,"héllo",null],"b":{"a":true}}'), {
    depth: 2,
    values: 7,
    types: { object: 2, array: 1, string: 1, number: 1, boolean: 1, null: 1 },
    keys: 3,
    distinct_keys: 2,
    longest_array: 3,
    longest_string: 5,
    minified_bytes: 38,
  })
  t.match(await resultOf('stats', '7'), { depth: 0, values: 1 })
  t.match(await resultOf('stats', '[]'), { depth: 1, values: 1 })
})

t.test('infers a schema that fits its document', async (t) => {
  t.same(await resultOf('infer_schema', '{"id":1,"tags":[],"rows":[{"a":1,"b":null},{"a":1.5},{"a":"x"}]}'), {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      id: { type: 'integer' },
      tags: { type: 'array' },
      rows: {
        type: 'array',
        items: {
          type: 'object',
          properties: { a: { type: ['number', 'string'] }, b: { type: 'null' } },
          required: ['a'],
        },
      },
    },
    required: ['id', 'tags', 'rows'],
  })
  check(
    property(anyJson({ maxDepth: 4 }), (data) => {
      const schema = perform({ op: 'infer_schema', data, schema: '' }).body['result'] ?? null
      if (JSON.stringify(schema).includes('"__proto__":')) return true
      return perform({ op: 'validate', data, schema: JSON.stringify(schema) }).body['valid'] === true
    }),
    { numRuns: 50 },
  )
})

async function verdictOf(data: Json, schema: Json): Promise<JsonObject> {
  return (await answerOf('validate', JSON.stringify(data), JSON.stringify(schema))).body
}

t.test('reports every validation error with its position and reason', async (t) => {
  const schema = {
    type: 'object',
    properties: { age: { type: 'integer', minimum: 0 }, mail: { type: 'string', format: 'email' } },
    required: ['age', 'toString'],
    additionalProperties: false,
  }
  t.match(await verdictOf({ age: -1, mail: 'x', 'a/b': 1 }, schema), {
    result: false,
    valid: false,
    error_count: 4,
    errors: [
      { path: '', keyword: 'required', params: { missing_property: 'toString' }, schema_path: '#/required' },
      { path: '', keyword: 'additionalProperties', params: { additional_property: 'a/b' } },
      {
        path: '/age',
        keyword: 'minimum',
        message: 'must be >= 0',
        params: { comparison: '>=', limit: 0 },
        schema_path: '#/properties/age/minimum',
      },
      { path: '/mail', keyword: 'format', params: { format: 'email' } },
    ],
  })
  t.match(await verdictOf({ age: 1, toString: 1 }, { ...schema, additionalProperties: true }), {
    result: true,
    valid: true,
    error_count: 0,
  })
  t.match(await verdictOf(1, true), { valid: true })
  t.match(await verdictOf(1, false), { valid: false })
  t.match(await verdictOf(1, {}), { valid: true })
})

t.test('divides decimals as on paper for multipleOf', async (t) => {
  // JSON-Schema-Test-Suite, draft 2020-12, multipleOf.json: "by number" and "by small number"
  for (const [value, step, valid] of [
    [0, 1.5, true],
    [4.5, 1.5, true],
    [35, 1.5, false],
    [0.0075, 0.0001, true],
    [0.00751, 0.0001, false],
    [0.3, 0.1, true],
  ] as const) {
    t.match(await verdictOf(value, { multipleOf: step }), { valid }, `${value} by ${step}`)
  }
})

t.test('lists fifty errors and counts all', async (t) => {
  const verdict = await verdictOf(
    Array.from({ length: 4000 }, (_, index) => index),
    { items: { type: 'string' } },
  )
  t.equal(verdict['error_count'], 4000)
  t.match(verdict['errors'], { length: 50 })
})

t.test('supports both drafts, each by its own rules', async (t) => {
  const draft07 = 'http://json-schema.org/draft-07/schema#'
  const draft2020 = 'https://json-schema.org/draft/2020-12/schema'
  t.match(await verdictOf([1, 'x'], { $schema: draft07, items: [{ type: 'string' }] }), { valid: false })
  t.match(await verdictOf([1, 'x'], { $schema: draft2020, prefixItems: [{ type: 'string' }] }), {
    valid: false,
  })
  t.match(await verdictOf([1, 'x'], { $schema: draft07, prefixItems: [{ type: 'string' }] }), { valid: true })
  t.match(await verdictOf({ a: 1 }, { allOf: [{ properties: { a: {} } }], unevaluatedProperties: false }), {
    valid: true,
  })
  for (const $schema of ['http://json-schema.org/draft-04/schema#', 'https://example.com/s', 7]) {
    t.equal(
      await refusalOf('validate', '1', JSON.stringify({ $schema })),
      'schema: schema must follow JSON Schema draft 2020-12 or draft-07',
    )
  }
})

t.test('refuses an unusable schema with the reason', async (t) => {
  const table: readonly (readonly [Json, string])[] = [
    [[], 'schema must be a JSON Schema: an object, true or false'],
    ['x', 'schema must be a JSON Schema: an object, true or false'],
    [null, 'schema must be a JSON Schema: an object, true or false'],
    [{ type: 'strin' }, "schema is not a valid JSON Schema at '/type'"],
    [
      { properties: { a: { minLength: -1 } } },
      "schema is not a valid JSON Schema at '/properties/a/minLength'",
    ],
    [{ $id: 'https://json-schema.org/draft/2020-12/schema' }, 'schema is not a valid JSON Schema'],
    [{ $async: true }, 'schema uses $async, which JSON Schema has not'],
    [
      { $ref: 'https://example.com/s.json' },
      'schema has a $ref that leads outside it, and nothing is loaded',
    ],
    [{ $ref: 'file:///etc/passwd' }, 'schema has a $ref that leads outside it, and nothing is loaded'],
    [{ $ref: '#/$defs/nope' }, 'schema has a $ref that leads outside it, and nothing is loaded'],
    [{ $ref: '#' }, 'schema refers to itself without an end'],
    [
      { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
      'schema refers to itself without an end',
    ],
    ...['(?=x)', '(?<!x)y', '(x)\\1', 'x{1,2000}'].map(
      (pattern) =>
        [
          { pattern },
          'schema pattern uses an unsupported construct (lookaround, backreference or a repeat above 1000)',
        ] as const,
    ),
    [{ pattern: '[' }, 'schema pattern is not a regular expression'],
  ]
  for (const [schema, sentence] of table) {
    t.equal(
      await refusalOf('validate', '"x"', JSON.stringify(schema)),
      `schema: ${sentence}`,
      JSON.stringify(schema),
    )
  }
  t.equal(
    await refusalOf('validate', '{"__proto__":1}', '{"properties":{"__proto__":{"type":"string"}}}'),
    "schema: schema has a member named '__proto__', which cannot be checked",
  )
})

t.test('validates recursive data with a recursive schema', async (t) => {
  const tree = { type: 'object', properties: { children: { type: 'array', items: { $ref: '#' } } } }
  t.match(await verdictOf({ children: [{ children: [] }] }, tree), { valid: true })
  t.match(await verdictOf({ children: [{ children: [1] }] }, tree), {
    valid: false,
    errors: [{ path: '/children/0/children/0' }],
  })
})

t.test('matches each pattern on its own in bounded time', async (t) => {
  const text = `${'a'.repeat(19_000)}!`
  t.match(await verdictOf(text, { pattern: '^(a+)+$' }), { valid: false })
  t.match(await verdictOf(text, { pattern: '^(a|a)*$' }), { valid: false })
  t.same(await resultOf('query', JSON.stringify([text, 'aa']), "$[?match(@, '(a+)+')]"), [
    { path: '$[1]', value: 'aa' },
  ])
  const verdict = await verdictOf(
    { a: 'x1', b: 'Ä/b' },
    {
      properties: { a: { pattern: '^x\\d$' }, b: { pattern: '^\\u00c4\\/(?<rest>b)$' } },
      patternProperties: { '^a': { pattern: '^y' } },
    },
  )
  t.match(verdict, { valid: false, error_count: 1, errors: [{ path: '/a', params: { pattern: '^y' } }] })
})

t.test('ends a hostile request and answers the next one', async (t) => {
  const doubling = Array.from({ length: 60 }, (_, index) => {
    const ref = `{"$ref":"#/$defs/d${index + 1}"}`
    return `"d${index}":{"allOf":[${ref},${ref}]}`
  })
  const hostile: readonly (readonly [Op, string, string])[] = [
    ['validate', '1', `{"$ref":"#/$defs/d0","$defs":{${doubling.join(',')},"d60":true}}`],
    ['query', JSON.stringify(Array(2000).fill(0)), '$[?count($[?count($[?count($..*)>0])>0])>0]'],
  ]
  for (const [op, data, schema] of hostile) {
    t.equal(await refusalOf(op, data, schema), TOO_COMPLEX, op)
    t.equal(await resultOf('minify', '[ 1 ]'), '[1]')
  }
})

t.test('queues requests and keeps their answers apart', async (t) => {
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) => resultOf('parse', String(index))),
  )
  t.same(
    answers,
    Array.from({ length: 50 }, (_, index) => index),
  )
})

t.test('skips a request that was given up before its turn', async (t) => {
  await t.rejects(
    json({ op: 'parse', data: '1', schema: '' }, fixedContext({ signal: AbortSignal.abort() })),
    { code: 'handler_timeout' },
  )
})

t.test('bounds the answer in proportion to the request', async (t) => {
  const tooLarge = 'answer_too_large: The result has more than 1000000 characters'
  const copies = Array(40).fill('{"op":"copy","from":"/a","path":"/a/-"}').join(',')
  t.equal(await refusalOf('patch', '{"a":["x"]}', `[${copies}]`), tooLarge)
  const long = JSON.stringify('x'.repeat(9000))
  t.equal(await refusalOf('query', `[${long}]`, `$[${Array(6000).fill('0').join(',')}]`), tooLarge)
  t.equal(
    await refusalOf('format', `${'['.repeat(64)}${Array(9000).fill('1').join(',')}${']'.repeat(64)}`, '8'),
    tooLarge,
  )
  t.equal(await refusalOf('flatten', `{${long}:[${Array(4000).fill('1').join(',')}]}`), tooLarge)
  t.equal(await refusalOf('from_csv', `${'x'.repeat(9000)}\n${'1\n'.repeat(5000)}`), tooLarge)
  const sparse = Array.from({ length: 1800 }, (_, index) => `{"${index}":1}`).join(',')
  t.equal(
    await refusalOf('to_csv', `[${sparse}]`),
    'answer_too_large: The table would have more than 200000 cells',
  )
})

t.test('refuses a patch that nests the answer too deeply', async (t) => {
  const copies = (times: number): string =>
    JSON.stringify(
      Array.from({ length: times }, (_, index) => ({
        op: 'copy',
        from: '',
        path: '/a'.repeat(60 * 2 ** index),
      })),
    )
  const data = `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`
  t.equal((await answerOf('patch', data, copies(1))).body['output_bytes'], 120 * 6 + 1)
  for (const times of [2, 5]) {
    t.equal(
      await refusalOf('patch', data, copies(times)),
      'answer_too_large: The result is nested deeper than 200 levels',
    )
  }
})

t.test('refuses a schema that refers to built-in properties', async (t) => {
  const names = ['constructor', 'toString', 'valueOf', 'hasOwnProperty', 'isPrototypeOf', '__defineGetter__']
  for (const name of [...names, '__proto__']) {
    const schema = JSON.stringify({ $defs: { a: { $dynamicAnchor: name } }, $dynamicRef: `#${name}` })
    t.equal(
      await refusalOf('validate', '"x"', schema),
      'schema: schema has a reference that cannot be followed',
    )
  }
})

t.test('answers the largest honest inputs', async (t) => {
  const distinct = Array.from({ length: 2500 }, (_, index) => [index])
  t.match(await verdictOf(distinct, { uniqueItems: true }), { valid: true })
  t.match(await verdictOf(Array(6000).fill({}), { uniqueItems: true }), { valid: false })
  t.match(await verdictOf(1, { enum: Array.from({ length: 4000 }, (_, index) => index) }), { valid: true })
  const zeros = JSON.stringify(Array(9999).fill(0))
  const ones = JSON.stringify(Array(9999).fill(1))
  t.match((await answerOf('diff', zeros, ones)).body, { counts: { replace: 9999 } })
  t.same(
    await resultOf('diff', `${'['.repeat(63)}1${']'.repeat(63)}`, `${'['.repeat(63)}2${']'.repeat(63)}`),
    [{ op: 'replace', path: '/0'.repeat(63), value: 2 }],
  )
  for (const op of ['parse', 'sort', 'hash', 'stats', 'infer_schema', 'flatten', 'repair'] as const) {
    t.not(await resultOf(op, zeros), null, op)
  }
  t.equal(await resultOf('parse', JSON.stringify('"'.repeat(9999))), '"'.repeat(9999))
})

t.test('repeats the same answer for the same request', async (t) => {
  const requests: readonly (readonly [Op, string, string])[] = [
    ['query', BOOKSTORE, '$..*'],
    ['infer_schema', BOOKSTORE, ''],
    ['diff', BOOKSTORE, '{"store":[]}'],
    ['validate', BOOKSTORE, '{"required":["a"],"type":"array"}'],
  ]
  for (const request of requests) t.same(await answerOf(...request), await answerOf(...request), request[0])
})

t.test('publishes an example that equals the handler’s answer', async (t) => {
  const example = new URL('../../../../../src/service/handlers/util/json.example.json', import.meta.url)
  const data = '{"games":[{"name":"Portal","price":9.99},{"name":"Portal 2","price":19.99}]}'
  t.same((await answerOf('query', data, '$.games[*].name')).body, JSON.parse(readFileSync(example, 'utf8')))
})

t.test('reads the fields of a spreadsheet in Europe, and of a table with tabs', async (t) => {
  t.same(await resultOf('from_csv', 'name;price\r\nTea;"3,50"\r\n'), [{ name: 'Tea', price: '3,50' }])
  t.same(await resultOf('from_csv', 'a\tb\n1\t2\n'), [{ a: '1', b: '2' }])
  t.same(await resultOf('from_csv', '"a;b",c\n1,2\n'), [{ 'a;b': '1', c: '2' }])
})

t.test('says when NaN becomes null, and when minify rounds a number', async (t) => {
  t.match(await resultOf('repair', '{"a": NaN, "b": [-Infinity], "c": "NaN"}'), {
    value: { a: null, b: [null], c: 'NaN' },
  })
  t.match(await warningsOf('repair', '{"a": NaN}'), [/^not_a_number/])
  t.match(await warningsOf('minify', '{"id": 12345678901234567890}'), [/^rounded_numbers/])
})
