import type { Json } from '../../../src/engine/base/json.ts'
import { CANARY } from './answer-rules.ts'
import { fc } from '../../support/fast-check.ts'

/** The source form of JSON: keys may repeat, and a leaf may be any text. */
type Tree =
  | { readonly kind: 'leaf'; readonly text: string }
  | { readonly kind: 'list'; readonly items: readonly Tree[] }
  | { readonly kind: 'object'; readonly members: readonly (readonly [key: string, value: Tree])[] }

function grow(value: Json): Tree {
  if (Array.isArray(value)) return { kind: 'list', items: value.map(grow) }
  if (typeof value !== 'object' || value === null) return { kind: 'leaf', text: JSON.stringify(value) }
  return { kind: 'object', members: Object.entries(value).map(([key, member]) => [key, grow(member)]) }
}

function write(tree: Tree): string {
  switch (tree.kind) {
    case 'leaf':
      return tree.text
    case 'list':
      return `[${tree.items.map(write).join(',')}]`
    case 'object':
      return `{${tree.members.map(([key, value]) => `${JSON.stringify(key)}:${write(value)}`).join(',')}}`
  }
}

function size(tree: Tree): number {
  switch (tree.kind) {
    case 'leaf':
      return 1
    case 'list':
      return tree.items.reduce((sum, item) => sum + size(item), 1)
    case 'object':
      return tree.members.reduce((sum, [, value]) => sum + size(value), 1)
  }
}

/** A change of the value at one position, counted through the tree. */
interface Change {
  readonly at: number
  readonly how: 'tweak' | 'replace' | 'remove' | 'double' | 'rename' | 'add' | 'wrap'
  readonly key: string
  readonly text: string
  readonly by: number
}

function change(tree: Tree, { at, ...rest }: Change): Tree {
  return alter(tree, at % size(tree), rest)
}

function alter(tree: Tree, at: number, how: Omit<Change, 'at'>): Tree {
  if (at === 0) return alterHere(tree, how)
  if (tree.kind === 'list') {
    const { index, left } = step(tree.items, at)
    return { kind: 'list', items: tree.items.map((item, i) => (i === index ? alter(item, left, how) : item)) }
  }
  if (tree.kind === 'leaf') return tree
  const values = tree.members.map(([, value]) => value)
  const { index, left } = step(values, at)
  const members = tree.members.flatMap(([key, value], i): (readonly [string, Tree])[] => {
    if (i !== index) return [[key, value]]
    const altered = alter(value, left, how)
    if (left > 0) return [[key, altered]]
    switch (how.how) {
      case 'remove':
        return []
      case 'rename':
        return [[how.key, value]]
      case 'double':
        return [
          [key, value],
          [key, { kind: 'leaf', text: how.text }],
        ]
      default:
        return [[key, altered]]
    }
  })
  return { kind: 'object', members }
}

function alterHere(tree: Tree, { how, key, text, by }: Omit<Change, 'at'>): Tree {
  const leaf: Tree = { kind: 'leaf', text }
  switch (how) {
    case 'tweak':
      return tree.kind === 'leaf' ? { kind: 'leaf', text: tweak(tree.text, by) } : tree
    case 'replace':
      return leaf
    case 'wrap':
      return { kind: 'list', items: [tree, leaf] }
    case 'add':
      return tree.kind === 'object' ? { kind: 'object', members: [...tree.members, [key, leaf]] } : leaf
    default:
      return tree
  }
}

/** A value of the same form with one character replaced by another of its kind. */
function tweak(leaf: string, by: number): string {
  const places = [...leaf.matchAll(/[0-9a-zA-Z]/g)].map(({ index }) => index)
  const place = places[by % Math.max(1, places.length)]
  if (place === undefined) return leaf
  const was = leaf.charAt(place)
  const is = /[0-9]/.test(was) ? String((Number(was) + 1 + (by % 9)) % 10) : otherLetter(was)
  return leaf.slice(0, place) + is + leaf.slice(place + 1)
}

function otherLetter(was: string): string {
  return was === was.toLowerCase() ? was.toUpperCase() : was.toLowerCase()
}

/** The child that contains a position, and the position within it. */
function step(children: readonly Tree[], at: number): { readonly index: number; readonly left: number } {
  let left = at - 1
  for (const [index, child] of children.entries()) {
    if (left < size(child)) return { index, left }
    left -= size(child)
  }
  return { index: -1, left: 0 }
}

const keys = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'length',
    '',
    'x402Version',
    'payload',
  ),
  fc.constantFrom(
    'signature',
    'authorization',
    'challenge',
    'source',
    'request',
    'id',
    'token',
    'info',
    'url',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
)

const numbers = fc.oneof(
  fc.constantFrom('0', '-0', '1e999', '-1e999', '1E-400', '0.1', '9007199254740993', '1'.repeat(400)),
  fc.bigInt().map(String),
  fc.double({ noNaN: true }).map((number) => JSON.stringify(number)),
)

const texts = fc.oneof(
  fc.constantFrom('', '0', '-1', '0x', '0x00', '1e3', ' 10000', '10000 ', '00', '+1', 'null', CANARY),
  fc.constantFrom(
    '\u0000',
    '\r\nX-Evil: 1',
    '\ud800',
    '\u202e',
    '%00',
    '../..',
    'eip155:1',
    'http://[::1',
    '//x',
  ),
  fc.constantFrom(
    '1'.repeat(77),
    '1'.repeat(78),
    '9'.repeat(78),
    `0x${'0'.repeat(40)}`,
    `0x${'f'.repeat(64)}`,
  ),
  fc.integer({ min: 1, max: 9_000 }).map((length) => 'a'.repeat(length)),
  fc.bigInt().map(String),
  fc.string({ unit: 'binary', maxLength: 40 }),
)

/** Unusual JSON texts, and texts that are not JSON. */
export const strange: fc.Arbitrary<string> = fc.oneof(
  numbers,
  texts.map((text) => JSON.stringify(text)),
  fc.constantFrom('null', 'true', 'false', '[]', '{}', '""', '[null]', '{"__proto__":{"x402Version":2}}'),
  fc.constantFrom('NaN', 'undefined', "'x'", '{', ']', '01', '"\\u12"', '\u0001', ''),
  fc.integer({ min: 1, max: 9_000 }).map((depth) => '['.repeat(depth) + ']'.repeat(depth)),
  fc.integer({ min: 1, max: 2_000 }).map((depth) => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth)),
  fc.json({ maxDepth: 3 }),
)

const ways = fc.constantFrom('tweak', 'replace', 'remove', 'double', 'rename', 'add', 'wrap')
const made = fc.record({
  at: fc.nat(200),
  how: fc.oneof({ weight: 2, arbitrary: fc.constant('tweak' as const) }, { weight: 5, arbitrary: ways }),
  key: keys,
  text: strange,
  by: fc.nat(1_000),
})
const changes = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(made) },
  { weight: 2, arbitrary: fc.array(made, { minLength: 2, maxLength: 4 }) },
)

/** A value with up to four mistakes in it, as JSON text. */
export function mutated(value: Json): fc.Arbitrary<string> {
  const tree = grow(value)
  return changes.map((several) => write([...several].reduce(change, tree)))
}
