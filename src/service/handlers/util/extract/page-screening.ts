import {
  Failure,
  isJsonObject,
  type Context,
  type Json,
  type JsonObject,
  type Warning,
} from 'ratecard/handler'
import type { Reading } from './reading.ts'

/** What the guard takes. */
const SCREENED = 20_000

/** Findings of the guard of the same catalog in visible and hidden text; none without a guard. */
export async function screenPage(
  { text, hidden, comments }: Reading,
  { ask }: Context,
): Promise<{ readonly flags: readonly string[]; readonly warnings: readonly Warning[] }> {
  const own = hidden === '' ? [] : ['hidden_text']
  const unseen = `${hidden}\n${comments}`.slice(0, SCREENED / 2)
  const screened = `${unseen}\n${text}`
    .trim()
    .slice(0, SCREENED)
    .replace(/[\ud800-\udbff]$/, '')
  if (screened === '') return { flags: own, warnings: [] }
  try {
    const { answer } = await ask('util/guard', { text: screened })
    return { flags: [...new Set([...own, ...categoriesOf(answer.body)])], warnings: [] }
  } catch (fault) {
    if (!(fault instanceof Failure)) throw fault
    const message = 'the text was not screened for prompt injection'
    return { flags: own, warnings: [{ code: 'not_screened', message }] }
  }
}

function categoriesOf({ injection }: JsonObject): string[] {
  const findings = isJsonObject(injection) ? injection['findings'] : undefined
  if (!Array.isArray(findings)) return []
  return findings.flatMap((finding: Json) => {
    const category = isJsonObject(finding) ? finding['category'] : undefined
    return typeof category === 'string' ? [category] : []
  })
}
