import { readFileSync } from 'node:fs'
import Handlebars from 'handlebars'

/** Where the texts and pages stand that the world reads. */
export const TEMPLATES = new URL('../../../templates/', import.meta.url)

/** A template’s context: everything it names must be there. */
export interface TemplateContext {
  readonly [name: string]: string | boolean | TemplateContext | readonly string[] | readonly TemplateContext[]
}

const handlebars = Handlebars.create()
handlebars.registerHelper({
  plain: (text: unknown) => plain(String(text)),
  code: (text: unknown) => code(String(text)),
})

/**
 * Reads a Markdown template once; a name that the context lacks is an error. What comes from the catalog goes through
 * `plain` or `code`, which leave nothing in it that Markdown would read as markup, or stands as JSON or as a command
 * between fences: no line of those begins with one.
 */
export function readMarkdown(file: string): (context: TemplateContext) => string {
  const source = readFileSync(new URL(file, TEMPLATES), 'utf8')
  return handlebars.compile<TemplateContext>(source, { strict: true, noEscape: true })
}

/** Words on one line, in a paragraph or in the cell of a table. */
export function plain(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\\`*[\]<>|~]|&(?=#?\w+;)|(?<!\w)_|_(?!\w)/g, '\\$&')
    .replace(/^(?:[#+=-]|\d+(?=[.)](?:\s|$)))/, (start) => (/\d/.test(start) ? `${start}\\` : `\\${start}`))
}

/** A span of code, in the cell of a table too; nothing for nothing. */
export function code(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  if (line.trim() === '') return ''
  const marks = '`'.repeat(longestRun(line) + 1)
  const room = line.startsWith('`') || line.endsWith('`') ? ' ' : ''
  return marks + room + line.replaceAll('|', '\\|') + room + marks
}

function longestRun(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length))
}

/** An address that a link may have, else the empty text: the catalog could hold `javascript:` too. */
export function webAddress(url: string | undefined): string {
  return url !== undefined && /^https?:\/\/[^\s<>"]+$/i.test(url) ? url : ''
}
