import { LineCounter, parseDocument } from 'yaml'
import { error, type Issue } from './issue.ts'
import { Reader, type Place, type SourceDocument } from './yaml-document.ts'
import { isMild, describeFault } from './yaml-errors.ts'

export interface Parsed {
  readonly document: SourceDocument
  readonly issues: readonly Issue[]
  /** Whether the text was parsed reliably, so that further checks make sense. */
  readonly readable: boolean
}

/** Characters that text files do not contain: control characters, and the replacement for bytes that are not UTF-8. */
// eslint-disable-next-line no-control-regex
const STRANGE = /[\0-\x08\x0e-\x1f\x7f\ufffd]/

/** Parses YAML 1.2 and reports every syntax error in our own words. */
export function parse(text: string): Parsed {
  const lines = new LineCounter()
  const strange = STRANGE.exec(text)
  const document = parseDocument(strange === null ? text : '', {
    lineCounter: lines,
    version: '1.2',
    // The parser compares each key with every other; our reader counts duplicates in linear time.
    uniqueKeys: false,
    prettyErrors: false,
  })
  const place: Place = (start, end) => {
    const { line, col } = lines.linePos(Math.max(0, Math.min(start, text.length)))
    return { line: Math.max(1, line), column: Math.max(1, col), width: Math.max(1, end - start) }
  }
  const reader = new Reader(document, text, place)
  const faults = [...document.errors, ...document.warnings]
  const issues = faults.map((fault) => {
    const { code, sentence, start, end } = describeFault(fault, text)
    return error(code, place(start, end), sentence)
  })
  const source = reader.read()
  const about = [...(strange === null ? [] : [binary(strange.index, text)]), ...directive(text, place)]
  const sound = faults.every(isMild)
  // Anchors of a broken structure are broken too: they are checked elsewhere only.
  const broken = new Set(issues.map(({ position }) => position.line))
  const read = reader.issues.filter(
    ({ code, position }) => sound || code !== 'yaml_alias' || broken.has(position.line),
  )
  return {
    document: source,
    issues: withoutEchoes([...about, ...issues, ...read]),
    readable: about.length === 0 && sound && reader.issues.every(({ code }) => code === 'yaml_duplicate_key'),
  }
}

function binary(index: number, text: string): Issue {
  const before = text.slice(0, index).split('\n')
  const position = { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, width: 1 }
  return error(
    'text_unreadable',
    position,
    'this character does not occur in a text file; is it YAML, saved as UTF-8?',
  )
}

function directive(text: string, place: Place): Issue[] {
  const found = /^%.*$/m.exec(text.slice(0, 1000))
  if (found?.index !== 0) return []
  return [
    error(
      'yaml_directive',
      place(0, found[0].length),
      'a catalog is YAML 1.2: remove this line and the "---"',
    ),
  ]
}

/** Removes follow-up errors: one mistake makes the parser report the same line and the indentation below it again. */
function withoutEchoes(issues: readonly Issue[]): Issue[] {
  const seen = new Set<number>()
  const reported = new Set<string>()
  return [...issues]
    .sort((a, b) => a.position.line - b.position.line || a.position.column - b.position.column)
    .filter(({ code, position }) => {
      const echo =
        seen.has(position.line) ||
        (ONCE.has(code) && reported.has(code)) ||
        (code === 'yaml_indentation' && reported.size > 0)
      seen.add(position.line)
      reported.add(code)
      return !echo
    })
}

const ONCE: ReadonlySet<string> = new Set(['yaml_tab', 'yaml_too_large'])
