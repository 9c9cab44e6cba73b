import type { EnvelopedAnswer, JsonObject } from 'ratecard/handler'
import { findInjection, type Finding } from './injection.ts'
import { findPrivateData, masked, type Exposure } from './private-data.ts'
import { guardRules, type TextKind } from './rules.ts'

const REVIEW_FROM = 0.35
/** Requests to a model: people write them to each other, too. */
const ONLY_TO_LOOK = 'model_request'
const BLOCK_FROM = 0.7
/** Most findings in each list; the counts include all. */
const MOST_FINDINGS = 100
const LONGEST_MATCH = 120

const LIMITATIONS =
  'Pattern-based: it knows forms, not meanings. New wordings pass, and texts that speak about attacks may be flagged; ' +
  'names of people are not looked for.'

export interface Screened {
  readonly text: string
  readonly kind: TextKind
}

/** What the rules find in a text, and the text without what is personal or secret. */
export function screen({ text, kind }: Screened): EnvelopedAnswer {
  const injection = findInjection(text, kind)
  const exposures = findPrivateData(text)
  const personal = exposures.filter(({ group }) => group !== 'secrets')
  const secrets = exposures.filter(({ group }) => group === 'secrets')
  const names = namesOf(text, exposures)
  const categories = injection.map(({ category }) => category)
  const risk = riskOf([...categories, ...exposures.map(({ group }) => group)])
  return {
    source: [{ name: 'computed', version: guardRules().version }],
    body: {
      verdict: risk >= BLOCK_FROM ? 'block' : risk >= REVIEW_FROM ? 'review' : 'allow',
      risk_score: risk,
      injection: {
        detected: injection.length > 0,
        score: riskOf(categories),
        count: injection.length,
        findings: injection.slice(0, MOST_FINDINGS).map((finding) => shownFinding(finding, text, names)),
      },
      pii: exposed(personal, text),
      secrets: exposed(secrets, text),
      redacted_text: redact(text, 0, text.length, names),
      stats: {
        chars: Array.from(text).length,
        rules_version: guardRules().version,
        rules: guardRules().rules.length + guardRules().kinds.length,
      },
      limitations: LIMITATIONS,
    },
  }
}

/** 1 - (1-a)(1-b)…: every category counts once, and what is a reason to look alone adds nothing to others. */
function riskOf(categories: readonly string[]): number {
  const { weights } = guardRules()
  const left = [...new Set(categories)]
    .filter((category) => category !== ONLY_TO_LOOK)
    .reduce((rest, category) => rest * (1 - (weights[category] ?? 0)), 1)
  const least = categories.includes(ONLY_TO_LOOK) ? (weights[ONLY_TO_LOOK] ?? 0) : 0
  return Math.max(least, Math.round((1 - left) * 100) / 100)
}

function severityOf(category: string): 'high' | 'medium' | 'low' {
  const weight = guardRules().weights[category] ?? 0
  if (weight >= 0.8) return 'high'
  return weight >= 0.5 ? 'medium' : 'low'
}

function shownFinding(finding: Finding, text: string, names: Names): JsonObject {
  const { ruleId, category, start, end, normalized } = finding
  const match = Array.from(redact(text, start, end, names))
    .slice(0, LONGEST_MATCH)
    .join('')
  return { category, rule_id: ruleId, severity: severityOf(category), start, end, match, normalized }
}

function exposed(exposures: readonly Exposure[], text: string): JsonObject {
  const counts: Record<string, number> = {}
  for (const { type } of exposures) counts[type] = (counts[type] ?? 0) + 1
  return {
    detected: exposures.length > 0,
    count: exposures.length,
    counts,
    findings: exposures.slice(0, MOST_FINDINGS).map((exposure) => ({
      type: exposure.type,
      start: exposure.start,
      end: exposure.end,
      masked: masked(exposure, text.slice(exposure.start, exposure.end)),
    })),
  }
}

/** Placeholders in the redacted text: equal values have the same one. */
type Names = readonly (Exposure & { readonly name: string })[]

function namesOf(text: string, exposures: readonly Exposure[]): Names {
  const known = new Map<string, string>()
  const counts = new Map<string, number>()
  return exposures.map((exposure) => {
    const key = `${exposure.type} ${text.slice(exposure.start, exposure.end)}`
    const count = (counts.get(exposure.type) ?? 0) + 1
    const name = known.get(key) ?? `[${exposure.type.toUpperCase()}_${count}]`
    if (!known.has(key)) counts.set(exposure.type, count)
    known.set(key, name)
    return { ...exposure, name }
  })
}

/** A part of the text with its personal data and secrets replaced, those that are cut by its ends included. */
function redact(text: string, from: number, to: number, names: Names): string {
  const pieces: string[] = []
  let at = from
  for (const { start, end, name } of names) {
    if (end <= from || start >= to) continue
    pieces.push(text.slice(at, Math.max(at, start)), name)
    at = end
  }
  return pieces.join('') + (at < to ? text.slice(at, to) : '')
}
