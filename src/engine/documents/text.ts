import Handlebars from 'handlebars'
import { readFileSync } from 'node:fs'

/** Where the texts and pages stand that the world reads. */
export const TEMPLATES = new URL('../../../templates/', import.meta.url)

/** A template’s context: everything it names must be there. */
export interface TemplateContext {
  readonly [name: string]: string | boolean | TemplateContext | readonly string[] | readonly TemplateContext[]
}

/** Text that begins a line of Markdown: no heading, list, quotation or rule comes of it. */
export function paragraph(text: string): string {
  return text.replace(/^(\d+)([.)])/, '$1\\$2').replace(/^[#>+*=~`_-]/, '\\$&')
}

/**
 * Reads a plain-text template once; a name that the context lacks is an error, and nothing is escaped.
 * Only for text documents: JSON is built as objects, and a page needs escaping.
 */
export function readTemplate(file: string): (context: TemplateContext) => string {
  const source = readFileSync(new URL(file, TEMPLATES), 'utf8')
  return Handlebars.create().compile<TemplateContext>(source, { strict: true, noEscape: true })
}
