import { Ajv2020, type ErrorObject, type JSONSchemaType, type ValidateFunction } from 'ajv/dist/2020.js'
import { isJsonObject } from 'ratecard/handler'

/** Tells whether an answer has the form we read it by. */
export interface Shape<Answer> {
  (answer: unknown): answer is Answer
  /** How the last answer looked at differed. */
  readonly errors?: readonly ErrorObject[] | null
  /** Reads an answer that may be odd in places; changes the value it is given. */
  readonly read: (answer: unknown) => Reading<Answer>
}

/** What an answer is worth nothing without. Paths have `/` between names, and `*` for the only name in an object. */
export interface Content {
  /** Where the rows are: `response/store_items`; empty when the answer is the list. Undefined: the answer is one row. */
  readonly rows?: string
  /**
   * Fields of a row without which nobody would buy the answer: absent from most rows, the source has changed. Of an answer
   * that is one row nothing in them is left out.
   */
  readonly vital?: readonly string[]
  /** Fields of a row that are absent from some rows but never from all. */
  readonly expected?: readonly string[]
  /** A row that does not have this value says itself that it has no fields. */
  readonly given?: readonly [field: string, value: unknown]
}

export type Reading<Answer> =
  | { readonly kind: 'read'; readonly answer: Answer; readonly flaws: readonly Flaw[] }
  | { readonly kind: 'unreadable'; readonly where: string }

/** A field that was left out, or whose row was, and how often. */
export interface Flaw {
  /** Names of fields and what is wrong with them, never what was in them: `items/#/price: type`. */
  readonly where: string
  readonly count: number
}

/** Rows or fields that are odd in more than this share of an answer: the source has changed, and the answer is none. */
const LARGEST_SHARE = 0.5
/** Of so few rows nothing can be said but that a field is missing. */
const FEWEST_ROWS = 4
/** What is left out may leave something else incomplete: that many times over. */
const ROUNDS = 5

// The game store writes some numbers as text, now and then.
const compiler = once(() => new Ajv2020({ allowUnionTypes: true }))
const thorough = once(() => new Ajv2020({ allowUnionTypes: true, allErrors: true }))

/**
 * Compiles a schema, at the first answer, that is strict about the fields in use and silent about all others. The compiler holds `Answer`
 * and the schema together.
 *
 * `read` is tolerant: an entry of a list that does not fit is left out, and so is a field that need not be there. It
 * refuses an answer when what does not fit must be there, when more than half of the rows are left out or lack a vital
 * field, and when the same field is left out of more than half of at least four rows.
 */
export function compileShape<Answer>(schema: JSONSchemaType<Answer>, content: Content = {}): Shape<Answer> {
  const compiled = once(() => compiler().compile<Answer>(schema))
  const finder = once(() => thorough().compile(schema))
  const shape = (answer: unknown): answer is Answer => compiled()(answer)
  const read = (answer: unknown): Reading<Answer> => {
    const before = rowsIn(answer, content)
    const left = shape(answer) ? new Map<string, Left>() : leaveOut(answer, schema, content, finder())
    if (typeof left === 'string') return { kind: 'unreadable', where: left }
    if (!shape(answer)) return { kind: 'unreadable', where: whereItDiffers(compiled()) }
    const rows = rowsIn(answer, content)
    const [worst] = [...left].toSorted(([, one], [, other]) => other.count - one.count)
    if (worst && before.length - rows.length > LARGEST_SHARE * before.length)
      return { kind: 'unreadable', where: worst[0] }
    const changed = [...left].find(([, { nodes }]) => isMost(before, (row) => nodes.has(row)))
    if (changed && before.length >= FEWEST_ROWS) return { kind: 'unreadable', where: changed[0] }
    const { vital = [], expected = [] } = content
    const vanished =
      content.rows === undefined
        ? undefined
        : vital.find((field) => isMost(rows, (row) => isAbsent(row, field)))
    if (vanished !== undefined) return { kind: 'unreadable', where: `${inRow(content, vanished)}: absent` }
    const absent =
      rows.length === 0 ? [] : expected.filter((field) => rows.every((row) => isAbsent(row, field)))
    return {
      kind: 'read',
      answer,
      flaws: [
        ...Array.from(left, ([where, { count }]) => ({ where, count })),
        ...absent.map((field) => ({ where: `${inRow(content, field)}: absent`, count: 1 })),
      ],
    }
  }
  return Object.defineProperty(Object.assign(shape, { read }), 'errors', {
    get: () => compiled().errors,
  })
}

/** Where the last answer a shape refused differs from it. */
export function whereItDiffers({ errors }: { readonly errors?: readonly ErrorObject[] | null }): string {
  const [error] = errors ?? []
  if (error === undefined) return 'somewhere'
  // Places in a list and ids are no fields: the same drift is to look the same.
  return wordsOf(error.instancePath.replace(/\/\d+(?=\/|$)/g, '/#').slice(1), error)
}

function wordsOf(path: string, { params, keyword }: ErrorObject): string {
  const missing: unknown = params['missingProperty']
  const field = typeof missing === 'string' ? [path, missing].filter(Boolean).join('/') : path || 'all of it'
  return `${field}: ${keyword}`
}

interface Left {
  readonly count: number
  /** Everything the field was in, its row among them. */
  readonly nodes: Set<unknown>
}

/** How often each field was left out, or its row was; where it differs when that must be there. */
function leaveOut(
  answer: unknown,
  schema: object,
  content: Content,
  check: ValidateFunction,
): Map<string, Left> | string {
  const left = new Map<string, Left>()
  for (let round = 0; round < ROUNDS && !check(answer); round++) {
    const removals = new Map<string, Removal>()
    for (const error of check.errors ?? []) {
      const removal = removalOf(answer, schema, content, error)
      if (removal.parent === undefined) return removal.where
      if (!removals.has(removal.path)) removals.set(removal.path, removal)
    }
    const lists = new Map<unknown[], Set<string>>()
    for (const { parent, key, where, nodes } of removals.values()) {
      const known = left.get(where) ?? { count: 0, nodes: new Set() }
      for (const node of nodes) known.nodes.add(node)
      left.set(where, { ...known, count: known.count + 1 })
      if (Array.isArray(parent)) lists.set(parent, (lists.get(parent) ?? new Set()).add(key))
      else if (parent !== undefined) Reflect.deleteProperty(parent, key)
    }
    for (const [list, keys] of lists) {
      const kept = list.filter((_, place) => !keys.has(String(place)))
      list.splice(0, list.length, ...kept)
    }
  }
  return left
}

/** What has to go for an error to be gone. Without a parent: the answer itself. */
interface Removal {
  readonly path: string
  readonly where: string
  readonly parent: unknown[] | object | undefined
  readonly key: string
  /** From the answer to where the error lies. */
  readonly nodes: readonly unknown[]
}

/** The innermost entry of a list, or field that need not be there, in which the error lies. */
function removalOf(answer: unknown, schema: object, content: Content, error: ErrorObject): Removal {
  const keys = error.instancePath
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  let [node, form, path]: [unknown, unknown, string] = [answer, schema, '']
  const named: string[] = []
  const nodes: unknown[] = [answer]
  let removal: Omit<Removal, 'where' | 'nodes'> = { path: '', parent: undefined, key: '' }
  for (const key of keys) {
    if (typeof node !== 'object' || node === null || !isJsonObject(form)) break
    path += `/${key}`
    const { properties, required, items, additionalProperties } = form
    const isField = isJsonObject(properties) && key in properties
    named.push(isField ? key : '#')
    const isRequired = isField && Array.isArray(required) && required.includes(key)
    if (!isRequired && !isHeld(named.join('/'), content)) removal = { path, parent: node, key }
    form = isField ? properties[key] : Array.isArray(node) ? items : additionalProperties
    node = Reflect.get(node, key)
    nodes.push(node)
  }
  return { ...removal, nodes, where: wordsOf(named.join('/'), error) }
}

/** Without its rows an answer would say that there are none, and without a part of what is vital it would be wrong. */
function isHeld(place: string, { rows, vital = [] }: Content): boolean {
  const isWithin = (inner: string, outer: string): boolean => `${inner}/`.startsWith(`${outer}/`)
  if (rows !== undefined) return isWithin(rows, place)
  return vital
    .map((field) => field.replaceAll('*', '#'))
    .some((field) => isWithin(field, place) || isWithin(place, field))
}

function rowsIn(answer: unknown, { rows, given }: Content): readonly unknown[] {
  const list: unknown = rows === undefined ? [answer] : at(answer, rows)
  if (!Array.isArray(list)) return []
  // A list of its own: what is left out goes from the answer, too.
  return list.filter((row) => given === undefined || at(row, given[0]) === given[1])
}

function isMost(rows: readonly unknown[], test: (row: unknown) => boolean): boolean {
  return rows.filter(test).length > LARGEST_SHARE * rows.length
}

function isAbsent(row: unknown, field: string): boolean {
  const value = at(row, field)
  return value === undefined || value === null
}

function inRow({ rows }: Content, field: string): string {
  const place = field.replaceAll('*', '#')
  return rows === undefined ? place : [rows, '#', place].filter(Boolean).join('/')
}

function at(value: unknown, path: string): unknown {
  let node = value
  for (const key of path.split('/').filter(Boolean)) {
    if (typeof node !== 'object' || node === null) return undefined
    node = key === '*' ? Object.values(node)[0] : Reflect.get(node, key)
  }
  return node
}

/** Makes a value when it is asked for first: a compiler takes a tenth of a second, and most processes never need it. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
