import { decodedIn } from './decoded.ts'
import { beginsWith, endOfPhrase, type Phrase } from './phrase.ts'
import { guardRules, type Rule, type TextKind } from './rules.ts'
import { tokensOf } from './view-tokens.ts'
import { foldedView, hiddenIn, plainView, type View } from './plain-view.ts'

/** A place in the original text that a rule mentions. */
export interface Finding {
  readonly ruleId: string
  readonly category: string
  readonly start: number
  readonly end: number
  /** It shows only in another spelling of the text, or once it is decoded. */
  readonly normalized: boolean
}

/** The marks of an attempt to command the reader of a text, in the order of the text. */
export function findInjection(text: string, kind: TextKind): Finding[] {
  const found: Finding[] = scan(text, kind)
  const hidden = hiddenIn(text)
  if (hidden !== undefined)
    found.push({ ruleId: 'HT-001', category: 'hidden_text', ...hidden, normalized: false })
  for (const piece of decodedIn(text)) {
    // The same words are no finding twice: percent signs and references may have nothing to do with them.
    const fresh = scan(piece.text, kind).filter(({ ruleId }) => !found.some((each) => each.ruleId === ruleId))
    if (fresh.length === 0) continue
    const place = { start: piece.start, end: piece.end, normalized: true }
    found.push({ ruleId: 'EP-001', category: 'encoded_payload', ...place })
    for (const { ruleId, category } of fresh) found.push({ ruleId, category, ...place })
  }
  return apart(found.sort((one, other) => one.start - other.start || other.end - one.end))
}

/** Keeps the first of several findings of one category at one position. */
function apart(sorted: readonly Finding[]): Finding[] {
  const reach = new Map<string, number>()
  return sorted.filter(({ category, start, end }) => {
    if (start < (reach.get(category) ?? 0)) return false
    reach.set(category, end)
    return true
  })
}

function scan(text: string, kind: TextKind): Finding[] {
  const plain = plainView(text)
  const folded = foldedView(text)
  const found = new Map<string, Finding>()
  for (const view of plain.text === folded.text ? [plain] : [plain, folded]) {
    for (const finding of [...findPhrases(view, text), ...findPatterns(view, text, kind)]) {
      const key = `${finding.ruleId} ${finding.start}`
      if (!found.has(key)) found.set(key, finding)
    }
  }
  return [...found.values()]
}

function findPhrases(view: View, text: string): Finding[] {
  const { phrases, vocabulary } = guardRules()
  const tokens = tokensOf(view, vocabulary)
  const found: Finding[] = []
  const candidates = new Map<string, readonly (Rule & { readonly phrase: Phrase })[]>()
  for (const [at, { word, start }] of tokens.entries()) {
    const rules = candidates.get(word) ?? phrases.filter(({ phrase }) => beginsWith(phrase, word))
    candidates.set(word, rules)
    for (const rule of rules) {
      const end = tokens[endOfPhrase(rule.phrase, tokens, at, text) ?? -1]?.end
      if (end !== undefined) found.push(findingOf(rule, view, text, start, end))
    }
  }
  return found
}

function findPatterns(view: View, text: string, kind: TextKind): Finding[] {
  return guardRules().rules.flatMap((rule) => {
    if (rule.pattern === undefined || (rule.only ?? kind) !== kind) return []
    return Array.from(view.text.matchAll(rule.pattern), ({ 0: match, index }) =>
      findingOf(rule, view, text, view.origin[index] ?? 0, view.origin[index + match.length] ?? text.length),
    )
  })
}

function findingOf({ id, category }: Rule, view: View, text: string, start: number, end: number): Finding {
  const normalized = !view.text.includes(text.slice(start, end).toLowerCase())
  return { ruleId: id, category, start, end, normalized }
}
