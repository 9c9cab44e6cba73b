import { SaxesParser } from 'saxes'
import { ListFault } from './entry.ts'

/** An element by local names: namespaces change from year to year, names do not. */
export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly Element[]
  /** Its own text, without that of its children. */
  readonly text: string
}

export interface XmlReading {
  /** Local name of the root element: another one is another document. */
  readonly root: string
  /** Elements that are handed over whole, one after the other. */
  readonly entries: ReadonlySet<string>
  readonly onEntry: (entry: Element) => void
}

/** The root's attributes, and the texts of elements outside the entries by their names. */
export interface XmlFrame {
  readonly attributes: Readonly<Record<string, string>>
  readonly texts: ReadonlyMap<string, string>
}

interface Growing extends Element {
  readonly children: Growing[]
  text: string
}

/** No list comes near; a document made to be deep would fill the memory. */
const DEEPEST = 32

/**
 * Reads a document piece by piece, so that it never is in memory as a tree. Entities other than the five of XML are
 * not expanded. Throws `ListFault` for what is not well-formed, not complete, or another document.
 */
export class XmlReader {
  readonly #reading: XmlReading
  readonly #parser = new SaxesParser()
  readonly #open: Growing[] = []
  readonly #texts = new Map<string, string>()
  #root: Growing | undefined

  constructor(reading: XmlReading) {
    this.#reading = reading
    this.#parser.on('opentag', ({ name, attributes }) => this.#opened(name, attributes))
    this.#parser.on('text', (text) => this.#said(text))
    this.#parser.on('cdata', (text) => this.#said(text))
    this.#parser.on('closetag', () => this.#closed())
    this.#parser.on('error', () => {
      throw new ListFault('is cut off or is not well-formed XML')
    })
  }

  write(text: string): void {
    this.#parser.write(text)
  }

  end(): XmlFrame {
    this.#parser.close()
    return { attributes: this.#root?.attributes ?? {}, texts: this.#texts }
  }

  #opened(name: string, attributes: Readonly<Record<string, string>>): void {
    const element: Growing = { name: localName(name), attributes, children: [], text: '' }
    const parent = this.#open.at(-1)
    if (parent === undefined) {
      this.#root = element
      if (element.name !== this.#reading.root)
        throw new ListFault(`begins with <${element.name.slice(0, 40)}>, not with <${this.#reading.root}>`)
    }
    if (this.#open.length > DEEPEST) throw new ListFault('is nested deeper than any list')
    if (parent !== undefined && this.#entry !== undefined) parent.children.push(element)
    this.#open.push(element)
  }

  #said(text: string): void {
    const element = this.#open.at(-1)
    if (element !== undefined) element.text += text
  }

  #closed(): void {
    const entry = this.#entry
    const element = this.#open.pop()
    if (element === undefined) return
    if (element === entry) this.#reading.onEntry(element)
    else if (entry === undefined && element.text.trim() !== '')
      this.#texts.set(element.name, element.text.trim())
  }

  get #entry(): Growing | undefined {
    return this.#open.find(({ name }) => this.#reading.entries.has(name))
  }
}

/** The elements at a path below: `all(entry, 'akaList', 'aka')`. */
export function all(element: Element, ...path: readonly string[]): readonly Element[] {
  return path.reduce<readonly Element[]>(
    (found, name) => found.flatMap(({ children }) => children.filter((child) => child.name === name)),
    [element],
  )
}

/** The text of the first element at a path; undefined where there is none, or an empty one. */
export function textOf(element: Element, ...path: readonly string[]): string | undefined {
  const text = all(element, ...path)[0]?.text.trim()
  return text === '' ? undefined : text
}

export function textsOf(element: Element, ...path: readonly string[]): string[] {
  return all(element, ...path).flatMap(({ text }) => text.trim() || [])
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}
