import type { Token } from './view-tokens.ts'

/** Words in this order, with others in between. */
export interface Phrase {
  readonly steps: readonly Step[]
  /** It is something else when one of these is right before it, or one word earlier. */
  readonly unlessAfter: Alternatives
  /** It is something else when one of these comes shortly before it in the same sentence. */
  readonly unlessInClause: Alternatives
}
interface Step {
  /** How many other words may come before it. */
  readonly gap: number
  readonly words: Alternatives
}
interface Alternatives {
  readonly whole: ReadonlySet<string>
  readonly beginnings: readonly string[]
}

/**
 * Reads a phrase as the table writes it.
 *
 * @example
 * parsePhrase('ignore|forget ..4 previous|prior ..2 instruction*', 'not|never')
 */
export function parsePhrase(text: string, unlessAfter: string, unlessInClause = ''): Phrase {
  const steps: Step[] = []
  let gap = 0
  for (const part of text.split(' ')) {
    const [, words] = /^\.\.(\d)$/.exec(part) ?? []
    if (words !== undefined) {
      gap = Number(words)
    } else {
      steps.push({ gap, words: alternatives(part) })
      gap = 0
    }
  }
  return {
    steps,
    unlessAfter: alternatives(unlessAfter),
    unlessInClause: alternatives(unlessInClause),
  }
}

function alternatives(text: string): Alternatives {
  const words = text.split('|')
  return {
    whole: new Set(words.filter((word) => !word.endsWith('*'))),
    beginnings: words.filter((word) => word.endsWith('*')).map((word) => word.slice(0, -1)),
  }
}

function matches({ whole, beginnings }: Alternatives, word: string): boolean {
  return whole.has(word) || beginnings.some((beginning) => word.startsWith(beginning))
}

/** The words of the phrases that are long enough to be found in text without spaces. */
export function vocabularyOf(phrases: readonly Phrase[]): ReadonlySet<string> {
  const words = phrases.flatMap(({ steps }) =>
    steps.flatMap((step) => [...step.words.whole, ...step.words.beginnings]),
  )
  return new Set(words.filter((word) => word.length > 1))
}

/** Whether a phrase begins with this word. */
export function beginsWith({ steps: [first] }: Phrase, word: string): boolean {
  return first !== undefined && matches(first.words, word)
}

/** Words before a phrase that may turn it into a warning or a promise. */
const CLAUSE = 8

/** The place of the last word of a phrase that begins at `at` in the words of `text`; `undefined` if it is not there. */
export function endOfPhrase(
  { steps, unlessAfter, unlessInClause }: Phrase,
  tokens: readonly Token[],
  at: number,
  text: string,
): number | undefined {
  const clause = tokens
    .slice(Math.max(0, at - CLAUSE), at)
    .filter(({ word }) => matches(unlessInClause, word))
  const begin = tokens[at]?.start ?? 0
  if (clause.some(({ end }) => !/[.!?;\n]/.test(text.slice(end, begin)))) return undefined
  if (tokens.slice(Math.max(0, at - 2), at).some(({ word }) => matches(unlessAfter, word))) return undefined
  return lastOf(steps, 0, tokens, at)
}

/** The place of the last word when the steps from `step` on begin at `at`; gaps are at most nine words, steps few. */
function lastOf(
  steps: readonly Step[],
  step: number,
  tokens: readonly Token[],
  at: number,
): number | undefined {
  const word = tokens[at]?.word
  const wanted = steps[step]
  if (word === undefined || wanted === undefined || !matches(wanted.words, word)) return undefined
  const next = steps[step + 1]
  if (next === undefined) return at
  for (let gap = 0; gap <= next.gap; gap++) {
    const last = lastOf(steps, step + 1, tokens, at + 1 + gap)
    if (last !== undefined) return last
  }
  return undefined
}
