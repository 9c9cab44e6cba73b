import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  visit,
  type Alias,
  type Document,
  type Node,
  type Pair,
} from 'yaml'
import { error, type Issue } from './issue.ts'

/** A place in the file: line and column count from 1, width in characters. */
export interface Position {
  readonly line: number
  readonly column: number
  readonly width: number
}

/** Keys from the root: `['routes', '/paid/ping', 'price']`. */
export type Path = readonly (string | number)[]

/** A YAML text as plain data that still knows where each value stands and how it was spelt. */
export interface SourceDocument {
  readonly value: unknown
  /** Whether the file says anything at this path, right or wrong. */
  has(path: Path): boolean
  /** Where the value stands, or the nearest place above it that exists. */
  at(path: Path): Position
  /** Where the key of a mapping entry stands, or the nearest one above it. */
  atKey(path: Path): Position
  /** How a scalar is spelt in the file, without its quotes. */
  spelling(path: Path): string | undefined
}

/** More than any catalog has: aliases of aliases must not fill the memory. */
const MOST_NODES = 500_000
/** Deeper than any catalog. */
const MOST_DEPTH = 40

/** Position of a range of the text. */
export type Place = (start: number, end: number) => Position

/** Where a word stands within a text that is spelt at `position`; the whole text when it cannot be told. */
export function wordIn(position: Position, text: string, word: string): Position {
  const index = text.indexOf(word)
  const quotes = position.width - text.length
  if (index < 0 || (quotes !== 0 && quotes !== 2)) return position
  return { ...position, column: position.column + index + quotes / 2, width: word.length }
}

interface Spot {
  readonly node: Node | null
  readonly key: Node | undefined
}

/** Walks the syntax tree once, keeping the node and the key node of every path. */
export class Reader {
  readonly #text: string
  readonly #place: Place
  readonly #targets: ReadonlyMap<Alias, Node>
  readonly #spots = new Map<string, Spot>()
  readonly issues: Issue[] = []
  #count = 0
  /** The outermost alias that is being followed: what has to change when too much hangs on it. */
  #followed: Alias | undefined

  constructor(document: Document, text: string, place: Place) {
    this.#text = text
    this.#place = place
    this.#targets = targetsOf(document)
  }

  read(node: Node | null, path: Path = [], key?: Node): unknown {
    this.#count += 1
    if (this.#count > MOST_NODES || path.length > MOST_DEPTH) return this.#overflow(node)
    this.#spots.set(name(path), { node, key })
    if (isAlias(node)) return this.#follow(node, path, key)
    if (isMap(node)) {
      return Object.fromEntries(
        node.items.map((pair: Pair) => {
          const keyNode = isNode(pair.key) ? pair.key : undefined
          const label = this.#label(pair.key)
          if (label === '<<') this.#report('yaml_merge', keyNode, MERGE)
          return [label, this.read(isNode(pair.value) ? pair.value : null, [...path, label], keyNode)]
        }),
      )
    }
    if (isSeq(node)) {
      return node.items.map((item, index) => this.read(isNode(item) ? item : null, [...path, index]))
    }
    return isScalar(node) ? node.value : null
  }

  #label(key: unknown): string {
    if (isScalar(key)) return spell(key)
    const [start, end] = isNode(key) ? (key.range ?? [0, 0]) : [0, 0]
    return this.#text.slice(start, end)
  }

  #follow(alias: Alias, path: Path, key?: Node): unknown {
    const target = this.#targets.get(alias)
    if (target === undefined) return this.#report('yaml_alias', alias, ALIAS)
    if (contains(target, alias)) return this.#report('yaml_alias_loop', alias, LOOP)
    const outer = this.#followed
    this.#followed ??= alias
    const value = this.read(target, path, key)
    this.#followed = outer
    return value
  }

  #overflow(node: Node | null): null {
    const sentence = 'too many or too deep values; do aliases repeat each other here?'
    return this.#report('yaml_too_large', this.#followed ?? node, sentence)
  }

  #report(code: string, node: Node | null | undefined, sentence: string): null {
    if (this.issues.length > 1000) return null
    const [start, end] = node?.range ?? [0, 1]
    this.issues.push(error(code, this.#place(start, end), sentence))
    return null
  }

  finish(value: unknown): SourceDocument {
    const find = (path: Path, fits: (spot: Spot) => boolean): Spot | undefined => {
      for (let length = path.length; length >= 0; length -= 1) {
        const spot = this.#spots.get(name(path.slice(0, length)))
        if (spot !== undefined && fits(spot)) return spot
      }
      return undefined
    }
    const range = (node: Node | null | undefined): Position | undefined => {
      const [start, end] = node?.range ?? []
      return start === undefined || end === undefined ? undefined : this.#place(start, end)
    }
    const first = { line: 1, column: 1, width: 1 }
    return {
      value,
      has: (path) => this.#spots.has(name(path)),
      at: (path) => {
        const spot = find(path, () => true)
        // A mapping or list is shown by its key: its own range covers everything below it.
        const whole = isMap(spot?.node) || isSeq(spot?.node)
        return (whole ? range(spot?.key) : undefined) ?? range(spot?.node) ?? range(spot?.key) ?? first
      },
      atKey: (path) => {
        const spot = find(path, ({ key }) => key !== undefined) ?? find(path, () => true)
        return range(spot?.key) ?? range(spot?.node) ?? first
      },
      spelling: (path) => {
        const node = this.#spots.get(name(path))?.node
        return isScalar(node) ? spell(node) : undefined
      },
    }
  }
}

/** What each alias stands for: the nearest anchor of its name before it, found in one walk. */
function targetsOf(document: Document): ReadonlyMap<Alias, Node> {
  const anchors = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  visit(document, {
    Node: (_, node) => {
      if (isAlias(node)) {
        const target = anchors.get(node.source)
        if (target !== undefined) targets.set(node, target)
      } else if (node.anchor !== undefined) anchors.set(node.anchor, node)
    },
  })
  return targets
}

function contains(outer: Node, inner: Node): boolean {
  const [start, , end] = outer.range ?? [0, 0, 0]
  const [at] = inner.range ?? [0]
  return at >= start && at < end
}

function name(path: Path): string {
  return JSON.stringify(path)
}

function spell(node: { readonly source?: string; readonly value: unknown }): string {
  return node.source ?? String(node.value)
}

const ALIAS =
  'this alias (*name) has no anchor (&name) before it; a text that starts with * must be quoted: "…"'
const LOOP = 'this alias stands inside its own anchor and would never end'
const MERGE =
  '"<<" does not merge in a catalog: write the keys out, or use an alias for one key: "parameters: *name"'
