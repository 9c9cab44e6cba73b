import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Node,
  visit,
  type YAMLMap,
} from 'yaml'
import { error, type Issue, type Position } from './issue.ts'

/** Keys from the root: `['routes', '/paid/ping', 'price']`. */
export type Path = readonly (string | number)[]

/** A YAML text as plain data, with the position and source text of each value. */
export interface SourceDocument {
  readonly value: unknown
  /** Whether the file has a value at this path, valid or not. */
  has(path: Path): boolean
  /** Position of the value, or of the nearest existing parent. */
  at(path: Path): Position
  /** Position of the key of a mapping entry, or of the nearest existing parent. */
  atKey(path: Path): Position
  /** Position of the key at which the mapping is written; for an alias, that of its anchor. */
  atHome(path: Path): Position
  /** Source text of a scalar, without its quotes. */
  spelling(path: Path): string | undefined
}

/** Limit of nodes, above that of any catalog: nested aliases must not exhaust the memory. */
const MOST_NODES = 500_000
/** Limit of depth, above that of any catalog. */
const MOST_DEPTH = 40

/** Position of a range of the text. */
export type Place = (start: number, end: number) => Position

interface Spot {
  /** The node behind any aliases. */
  readonly node: Node | null
  readonly key: Node | undefined
}

/** Reads the syntax tree once, and looks up positions in it. */
export class Reader {
  readonly #root: Node | null
  readonly #text: string
  readonly #place: Place
  readonly #targets: ReadonlyMap<Alias, Node>
  readonly #entries = new Map<YAMLMap, ReadonlyMap<string, Spot>>()
  /** The key below which each mapping is written. */
  readonly #homes = new Map<Node, Node>()
  readonly #unknown = new Set<string>()
  readonly issues: Issue[] = []
  #count = 0
  /** The outermost alias that is being resolved: the one to report when it expands to too much. */
  #followed: Alias | undefined

  constructor(document: Document, text: string, place: Place) {
    this.#root = document.contents
    this.#text = text
    this.#place = place
    this.#targets = targetsOf(document)
  }

  read(): SourceDocument {
    const value = this.#read(this.#root, 0)
    const first = { line: 1, column: 1, width: 1 }
    return {
      value,
      has: (path) => this.#trail(path).length === path.length + 1,
      at: (path) => {
        const spot = this.#trail(path).at(-1)
        // A mapping or list is shown by its key, because its own range covers everything below it.
        const whole = isMap(spot?.node) || isSeq(spot?.node)
        return (
          (whole ? this.#range(spot?.key) : undefined) ??
          this.#range(spot?.node) ??
          this.#range(spot?.key) ??
          first
        )
      },
      atKey: (path) => {
        const trail = this.#trail(path)
        const spot = trail.findLast(({ key }) => key !== undefined) ?? trail.at(-1)
        return this.#range(spot?.key) ?? this.#range(spot?.node) ?? first
      },
      atHome: (path) => {
        const spot = this.#trail(path).at(-1)
        const home = spot?.node == null ? undefined : this.#homes.get(spot.node)
        return this.#range(home) ?? this.#range(spot?.key) ?? this.#range(spot?.node) ?? first
      },
      spelling: (path) => {
        const trail = this.#trail(path)
        const node = trail.length === path.length + 1 ? trail.at(-1)?.node : undefined
        return isScalar(node) ? spell(node) : undefined
      },
    }
  }

  #read(node: Node | null, depth: number): unknown {
    this.#count += 1
    if (this.#count > MOST_NODES || depth > MOST_DEPTH) {
      const sentence = 'too many or too deep values; do aliases repeat each other here?'
      return this.#report('yaml_too_large', this.#followed ?? node, sentence)
    }
    if (isAlias(node)) return this.#follow(node, depth)
    if (isMap(node)) return this.#readMap(node, depth)
    if (isSeq(node)) return node.items.map((item) => this.#read(isNode(item) ? item : null, depth + 1))
    return isScalar(node) ? node.value : null
  }

  #readMap(map: YAMLMap, depth: number): unknown {
    const entries = new Map<string, Spot>()
    const members = map.items.map(({ key, value }): [string, unknown] => {
      const keyNode = isNode(key) ? key : undefined
      const node = isNode(value) ? value : null
      const label = this.#label(key)
      if (label === '<<') this.#report('yaml_merge', keyNode, MERGE)
      const line = this.#range(entries.get(label)?.key)?.line
      if (line !== undefined) {
        this.#report('yaml_duplicate_key', keyNode, `"${label}" is already on line ${line}; keep one`)
      }
      entries.set(label, { node, key: keyNode })
      if (isMap(node) && keyNode !== undefined) this.#homes.set(node, keyNode)
      return [label, this.#read(node, depth + 1)]
    })
    this.#entries.set(map, entries)
    return Object.fromEntries(members)
  }

  #label(key: unknown): string {
    if (isScalar(key)) return spell(key)
    const [start, end] = isNode(key) ? (key.range ?? [0, 0]) : [0, 0]
    return this.#text.slice(start, end)
  }

  #follow(alias: Alias, depth: number): unknown {
    const target = this.#targets.get(alias)
    if (target === undefined) {
      const isReported = this.#unknown.has(alias.source)
      this.#unknown.add(alias.source)
      return isReported ? null : this.#report('yaml_alias', alias, ALIAS)
    }
    if (contains(target, alias)) return this.#report('yaml_alias_loop', alias, LOOP)
    const outer = this.#followed
    this.#followed ??= alias
    const value = this.#read(target, depth)
    this.#followed = outer
    return value
  }

  #report(code: string, node: Node | null | undefined, sentence: string): null {
    if (this.issues.length > 1000) return null
    this.issues.push(error(code, this.#range(node) ?? this.#place(0, 1), sentence))
    return null
  }

  /** The nodes from the root along a path, as far as they exist. */
  #trail(path: Path): Spot[] {
    const trail: Spot[] = [{ node: this.#target(this.#root), key: undefined }]
    for (const step of path) {
      const spot = this.#below(trail.at(-1)?.node, step)
      if (spot === undefined) break
      trail.push({ node: this.#target(spot.node), key: spot.key })
    }
    return trail
  }

  #below(node: Node | null | undefined, step: string | number): Spot | undefined {
    if (isMap(node)) return this.#entries.get(node)?.get(String(step))
    if (!isSeq(node) || typeof step !== 'number' || step >= node.items.length) return undefined
    const item = node.items[step]
    return { node: isNode(item) ? item : null, key: undefined }
  }

  #target(node: Node | null): Node | null {
    return isAlias(node) ? (this.#targets.get(node) ?? node) : node
  }

  #range(node: Node | null | undefined): Position | undefined {
    const [start, end] = node?.range ?? []
    return start === undefined || end === undefined ? undefined : this.#place(start, end)
  }
}

/** The target of each alias: the last anchor of its name before it, found in one pass. */
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

function spell(node: { readonly source?: string; readonly value: unknown }): string {
  return node.source ?? String(node.value)
}

const ALIAS =
  'this alias (*name) has no anchor (&name) before it; a text that starts with * must be quoted: "…"'
const LOOP = 'this alias is inside its own anchor and would never end'
const MERGE =
  '"<<" does not merge in a catalog: write the keys out, or use an alias for one key: "parameters: *name"'
