import { Parser, type Handler } from 'htmlparser2'

/** Elements deeper than this become siblings: no page for people needs more, and who walks the tree must not overflow. */
const DEEPEST = 400

/**
 * htmlparser2 with a limit on nesting. It searches its stack of open elements at every tag, so the limit is also what
 * keeps its time proportional to the length of a page.
 */
class BoundedParser extends Parser {
  #depth = 0
  #isFull = false
  #isIgnored = false

  constructor(handler: Partial<Handler>) {
    super({
      ...handler,
      onopentagname: (name) => {
        this.#depth += 1
        this.#isIgnored = false
        handler.onopentagname?.(name)
      },
      onattribute: (name, value) => {
        if (!this.#isIgnored) handler.onattribute?.(name, value)
      },
      onclosetag: (name, isImplied) => {
        this.#depth -= 1
        handler.onclosetag?.(name, isImplied)
      },
    })
  }

  override onopentagname(start: number, end: number): void {
    this.#isFull = this.#depth >= DEEPEST
    // A form in a form has attributes, but is no element.
    this.#isIgnored = true
    super.onopentagname(start, end)
  }

  override onclosetag(start: number, end: number): void {
    this.#isFull = false
    super.onclosetag(start, end)
  }

  protected override isVoidElement(name: string): boolean {
    return this.#isFull || super.isVoidElement(name)
  }
}

/** Calls the handler for each tag, text and comment of a page, in time proportional to its length. */
export function parseHtml(html: string, handler: Partial<Handler>): void {
  new BoundedParser(handler).end(html)
}
