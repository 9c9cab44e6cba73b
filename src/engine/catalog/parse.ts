import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Alias,
  type Document,
  type Node,
  type Pair,
  type YAMLError,
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
  /** Where the value stands, or the nearest place above it that exists. */
  at(path: Path): Position
  /** Where the key of a mapping entry stands. */
  atKey(path: Path): Position
  /** How a scalar is spelt in the file, without its quotes. */
  spelling(path: Path): string | undefined
}

export interface Parsed {
  readonly document: SourceDocument
  readonly issues: readonly Issue[]
  /** Whether the text can be trusted to say what it seems to say, so that checking it further makes sense. */
  readonly readable: boolean
}

/** More than any catalog has: aliases of aliases must not fill the memory. */
const MOST_NODES = 500_000
/** Deeper than any catalog: an alias inside its own anchor would never end. */
const MOST_DEPTH = 40

/** Mistakes after which the rest of the file still reads as it was meant, so that its other issues can be told too. */
const MILD = new Set([
  'DUPLICATE_KEY',
  'TAB_AS_INDENT',
  'TAG_RESOLVE_FAILED',
  'BAD_DQ_ESCAPE',
  'BAD_SCALAR_START',
])

/** Reads YAML 1.2 and reports every syntax problem in words of our own. */
export function parse(text: string): Parsed {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    version: '1.2',
    uniqueKeys: true,
    prettyErrors: false,
  })
  const place = (start: number, end: number): Position => {
    const { line, col } = lines.linePos(Math.max(0, Math.min(start, text.length)))
    return { line: Math.max(1, line), column: Math.max(1, col), width: Math.max(1, end - start) }
  }
  const faults = [...document.errors, ...document.warnings]
  const issues = faults.map((fault) =>
    error(yamlCode(fault), place(fault.pos[0], fault.pos[1]), yamlSentence(fault, text)),
  )
  const reader = new Reader(document, place)
  const value = reader.read(document.contents)
  return {
    document: reader.finish(value),
    issues: [...firstOfEachLine(issues), ...reader.issues],
    readable: faults.every((fault) => MILD.has(fault.code)) && reader.issues.length === 0,
  }
}

/** One slip makes the parser stumble several times over the same line: the first stumble says it. */
function firstOfEachLine(issues: readonly Issue[]): Issue[] {
  const seen = new Set<number>()
  return issues.filter(({ position }) => !seen.has(position.line) && seen.add(position.line))
}

interface Spot {
  readonly node: Node | null
  readonly key: Node | undefined
}

/** Walks the syntax tree once, keeping the node and the key node of every path. */
class Reader {
  readonly #document: Document
  readonly #place: (start: number, end: number) => Position
  readonly #spots = new Map<string, Spot>()
  readonly issues: Issue[] = []
  #count = 0

  constructor(document: Document, place: (start: number, end: number) => Position) {
    this.#document = document
    this.#place = place
  }

  read(node: Node | null, path: Path = [], key?: Node): unknown {
    this.#count += 1
    if (this.#count > MOST_NODES || path.length > MOST_DEPTH) return this.#overflow()
    this.#spots.set(name(path), { node, key })
    if (isAlias(node)) return this.#follow(node, path, key)
    if (isMap(node)) {
      return Object.fromEntries(
        node.items.map((pair: Pair) => {
          const label = isScalar(pair.key) ? spell(pair.key) : String(pair.key)
          const keyNode = isScalar(pair.key) ? pair.key : undefined
          return [label, this.read(asNode(pair.value), [...path, label], keyNode)]
        }),
      )
    }
    if (isSeq(node)) return node.items.map((item, index) => this.read(asNode(item), [...path, index]))
    if (isScalar(node)) return typeof node.value === 'bigint' ? Number(node.value) : node.value
    return null
  }

  #follow(alias: Alias, path: Path, key?: Node): unknown {
    const target = alias.resolve(this.#document)
    if (target !== undefined) return this.read(target, path, key)
    const [start, end] = alias.range ?? [0, 1]
    this.issues.push(error('yaml_alias', this.#place(start, end), ALIAS))
    return null
  }

  #overflow(): null {
    const said = this.issues.some(({ code }) => code === 'yaml_too_large')
    if (!said)
      this.issues.push(
        error(
          'yaml_too_large',
          this.#place(0, 1),
          'too many or too deep nodes: do aliases repeat each other?',
        ),
      )
    return null
  }

  finish(value: unknown): SourceDocument {
    const find = (path: Path): Spot | undefined => {
      for (let length = path.length; length >= 0; length -= 1) {
        const spot = this.#spots.get(name(path.slice(0, length)))
        if (spot !== undefined) return spot
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
      at: (path) => {
        const spot = find(path)
        // A mapping or list is shown by its key: its own range covers everything below it.
        const whole = isMap(spot?.node) || isSeq(spot?.node)
        return (whole ? range(spot?.key) : undefined) ?? range(spot?.node) ?? range(spot?.key) ?? first
      },
      atKey: (path) => range(find(path)?.key) ?? range(find(path)?.node) ?? first,
      spelling: (path) => {
        const node = this.#spots.get(name(path))?.node
        return isScalar(node) ? spell(node) : undefined
      },
    }
  }
}

function name(path: Path): string {
  return JSON.stringify(path)
}

function asNode(value: unknown): Node | null {
  return isScalar(value) || isMap(value) || isSeq(value) || isAlias(value) ? value : null
}

function spell(node: { readonly source?: string; readonly value: unknown }): string {
  return node.source ?? String(node.value)
}

const QUOTE =
  'A text that holds ": ", "{", "}", "[", "]", "#" or starts with one of them must be quoted: quote it with "…".'

const ALIAS = 'this alias (*name) has no anchor (&name) before it; a text that starts with * must be quoted'

const YAML_WORDS: Readonly<Record<string, readonly [code: string, sentence: string]>> = {
  TAB_AS_INDENT: ['yaml_tab', 'a tab is used as indentation; YAML wants spaces'],
  DUPLICATE_KEY: ['yaml_duplicate_key', 'this key stands twice in the same mapping; keep one'],
  BAD_INDENT: [
    'yaml_indentation',
    'this line is not indented like its neighbours (or a bracket before it is not closed)',
  ],
  BLOCK_AS_IMPLICIT_KEY: ['yaml_nested_mapping', `a second ": " on one line. ${QUOTE}`],
  MULTILINE_IMPLICIT_KEY: [
    'yaml_key_over_lines',
    `a key runs over several lines; is a ":" missing? ${QUOTE}`,
  ],
  MISSING_CHAR: ['yaml_missing_character', `a ",", a bracket or a quote is missing. ${QUOTE}`],
  UNEXPECTED_TOKEN: ['yaml_unexpected', `this does not belong here. ${QUOTE}`],
  BLOCK_IN_FLOW: ['yaml_block_in_braces', `inside { } or [ ] everything is separated by commas. ${QUOTE}`],
  BAD_SCALAR_START: ['yaml_reserved_character', 'a text cannot start with this character; quote it'],
  BAD_DQ_ESCAPE: [
    'yaml_escape',
    'not an escape of double-quoted text; write \\\\ for a backslash or use single quotes',
  ],
  MULTIPLE_DOCS: ['yaml_documents', 'the file holds several YAML documents; a catalog is one'],
  MULTIPLE_ANCHORS: ['yaml_anchors', 'a value can have one anchor only'],
  TAG_RESOLVE_FAILED: [
    'yaml_tag',
    'tags (!name) are not used in a catalog; a text that starts with ! must be quoted',
  ],
}

function yamlCode(fault: YAMLError): string {
  return YAML_WORDS[fault.code]?.[0] ?? 'yaml_syntax'
}

function yamlSentence(fault: YAMLError, text: string): string {
  const known = YAML_WORDS[fault.code]
  if (known === undefined) return `this is not YAML. ${QUOTE}`
  if (fault.code !== 'DUPLICATE_KEY') return known[1]
  const word = /^[^\s:]+/.exec(text.slice(fault.pos[0]))?.[0]
  return word === undefined ? known[1] : `"${word}" stands twice in the same mapping; keep one`
}
