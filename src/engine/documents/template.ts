import { readFileSync } from 'node:fs'
import Handlebars from 'handlebars'

/** Folder of the templates of documents and pages. */
export const TEMPLATES = new URL('../../../templates/', import.meta.url)

/** The values of a template; a missing one is an error. */
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
  const print = handlebars.compile<TemplateContext>(source, { strict: true, noEscape: true })
  return (context) => escapeInvisible(print(context))
}

/** Control characters and marks that reorder text, which would hide what the text contains. */
const INVISIBLE = /(?![\t\n\r])\p{Cc}|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Escapes each as JSON does, so that JSON on a page keeps its value. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Text on one line, in a paragraph or a table cell. */
export function plain(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\\`*[\]<>|~]|&(?=#?\w+;)|(?<!\w)_|_(?!\w)/g, '\\$&')
    .replace(/^(?:[#+=-]|\d+(?=[.)](?:\s|$)))/, (start) => (/\d/.test(start) ? `${start}\\` : `\\${start}`))
}

/** A span of code, also in a table cell; empty for an empty text. */
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

/** The address of a link if it is a web address, otherwise empty: the catalog could contain `javascript:`. */
export function webAddress(url: string | undefined): string {
  return url !== undefined && /^https?:\/\/[^\s<>"]+$/i.test(url) ? url : ''
}
