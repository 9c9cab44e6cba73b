import type { YAMLError } from 'yaml'

/** A syntax error in our own words, at the word that must change. */
export interface SyntaxFault {
  readonly code: string
  readonly sentence: string
  readonly start: number
  readonly end: number
}

/** Errors after which the rest of the file is still parsed as intended, so that it can be checked too. */
const MILD: ReadonlySet<string> = new Set(['TAG_RESOLVE_FAILED', 'BAD_DQ_ESCAPE', 'BAD_SCALAR_START'])

export function isMild(fault: YAMLError): boolean {
  return MILD.has(fault.code)
}

const QUOTE = 'a text that holds ": ", " #", braces or brackets must be quoted: "…"'

const AFTER_QUOTE =
  "the quoted text ends before this; quote the whole text, and write a quote inside it as \\\" or, in single quotes, ''"

const WORDS: Readonly<Record<string, readonly [code: string, sentence: string]>> = {
  BAD_INDENT: [
    'yaml_indentation',
    'this line is not indented like its neighbours (or a bracket before it is not closed)',
  ],
  MULTILINE_IMPLICIT_KEY: [
    'yaml_key_over_lines',
    `a key runs over several lines; is a ":" missing? ${QUOTE}`,
  ],
  MISSING_CHAR: ['yaml_missing_character', `a ",", a bracket or a quote is missing; ${QUOTE}`],
  UNEXPECTED_TOKEN: ['yaml_unexpected', `this does not belong here; ${QUOTE}`],
  BLOCK_IN_FLOW: ['yaml_block_in_braces', `inside { } and [ ] a "," separates the entries; ${QUOTE}`],
  BAD_SCALAR_START: ['yaml_reserved_character', 'a text cannot start with this character; quote it: "…"'],
  BAD_DQ_ESCAPE: [
    'yaml_escape',
    'not an escape of double-quoted text; write \\\\ for a backslash, or use single quotes',
  ],
  MULTIPLE_DOCS: ['yaml_documents', 'the file holds several YAML documents; a catalog is one'],
  MULTIPLE_ANCHORS: ['yaml_anchors', 'a value can have one anchor only'],
  TAG_RESOLVE_FAILED: [
    'yaml_tag',
    'tags (!name) are not used in a catalog; a text that starts with ! must be quoted: "…"',
  ],
}

/** Describes an error of the parser. The parser's message is only used to distinguish errors with the same code. */
export function describeFault(fault: YAMLError, text: string): SyntaxFault {
  const [start, end] = fault.pos
  if (/^(BLOCK_AS|MULTILINE)_IMPLICIT_KEY$/.test(fault.code)) return strangeKey(start, text)
  if (fault.code === 'TAB_AS_INDENT') return tabs(start, text)
  if (/followed by map values/.test(fault.message)) return colonMissing(start, text)
  if (/closing ["']quote/.test(fault.message)) {
    return {
      code: 'yaml_quote_open',
      sentence: 'this quote is never closed',
      start: opening(start, text),
      end,
    }
  }
  if (fault.code === 'BAD_INDENT' && fault.message.startsWith('Flow ')) {
    const open = openBracket(start, text)
    if (open !== undefined) return open
  }
  if (fault.code === 'RESOURCE_EXHAUSTION') return tooDeep(start, text)
  if (fault.code === 'UNEXPECTED_TOKEN' && /["'] *$/.test(text.slice(0, start))) {
    return { code: 'yaml_after_quote', sentence: AFTER_QUOTE, start, end }
  }
  const [code, sentence] = WORDS[fault.code] ?? ['yaml_syntax', `this is not YAML; ${QUOTE}`]
  const word = firstWord(start, text)
  return {
    code,
    sentence,
    start: word,
    end: Math.max(word + 1, start + text.slice(start, end).trimEnd().length),
  }
}

/** Explains a second `: ` on a line, a key without its colon, or a line that became part of the text above it. */
function strangeKey(start: number, text: string): SyntaxFault {
  const line = lineFrom(start, text)
  if (/:(?:\s|$)/.test(line)) {
    const sentence = `a text that holds ": " must be quoted: "${line}"`
    return { code: 'yaml_nested_mapping', sentence, start, end: start + line.length }
  }
  if (/(?:^|\n)[ \t]*$/.test(text.slice(0, start))) return colonMissing(start, text)
  const next = firstWord(start + line.length, text)
  const sentence =
    'this line is indented deeper than its neighbours, so YAML reads it as part of the text above'
  return { code: 'yaml_indentation', sentence, start: next, end: next + lineFrom(next, text).length }
}

function colonMissing(from: number, text: string): SyntaxFault {
  const start = firstWord(from, text)
  const line = lineFrom(start, text)
  if (line.startsWith('- ')) {
    const sentence =
      'a list entry does not belong here: is its key missing, or does that have a value already?'
    return { code: 'yaml_unexpected', sentence, start, end: start + line.length }
  }
  const [key = 'key', ...rest] = line.split(/:|\s+/)
  const sentence = `a key needs a colon and a space after it: "${key}: ${rest.join(' ').trim() || '…'}"`
  return { code: 'yaml_colon_missing', sentence, start, end: start + line.length }
}

function tabs(start: number, text: string): SyntaxFault {
  const lines = text.slice(start).match(/^ *\t/gm)?.length ?? 1
  const more = lines > 1 ? ` (here and on ${lines - 1} more ${lines === 2 ? 'line' : 'lines'})` : ''
  const sentence = `a tab is used as indentation${more}; YAML requires spaces`
  return { code: 'yaml_tab', sentence, start, end: start + 1 }
}

/** Position of the quote that is still open at the end of the text. */
function opening(end: number, text: string): number {
  const match = /[:\s[{,-](["'])(?:(?!\1)[^])*$/.exec(text.slice(0, end))
  return match === null ? end : match.index + 1
}

/** Reports the start of the nesting: the depth at which the parser stops depends on the machine. */
function tooDeep(fault: number, text: string): SyntaxFault {
  const line = text.lastIndexOf('\n', fault - 1) + 1
  const start = line + Math.max(0, text.slice(line).search(/[[{]|- /))
  const sentence = 'brackets or lists are nested too deeply here'
  return { code: 'yaml_too_large', sentence, start, end: start + 1 }
}

/** A bracket that is not closed before the end of the text, or only after a `#`. */
function openBracket(start: number, text: string): SyntaxFault | undefined {
  const before = text.slice(0, start).trimEnd()
  const line = before.slice(before.lastIndexOf('\n') + 1)
  const hidden = /[{[].*\s(#.*[}\]].*)$/.exec(line)?.[1]
  if (hidden !== undefined) {
    const sentence = 'this # begins a comment, which hides the rest of the line; quote the text: "…"'
    return { code: 'yaml_comment', sentence, start: before.length - hidden.length, end: before.length }
  }
  const bracket = Math.max(line.lastIndexOf('['), line.lastIndexOf('{'))
  if (text.slice(start).trim() !== '' || bracket < 0) return undefined
  const at = before.length - line.length + bracket
  return {
    code: 'yaml_bracket_open',
    sentence: 'this bracket is never closed',
    start: at,
    end: before.length,
  }
}

function lineFrom(start: number, text: string): string {
  return /^[^\r\n]*/.exec(text.slice(start))?.[0].trimEnd() ?? ''
}

function firstWord(start: number, text: string): number {
  const blank = /^\s*/.exec(text.slice(start))?.[0].length ?? 0
  return start + blank < text.length ? start + blank : start
}
