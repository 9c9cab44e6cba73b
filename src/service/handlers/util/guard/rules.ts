import { openTable } from '../../../data/open-table.ts'
import { parsePhrase, vocabularyOf, type Phrase } from './phrase.ts'

/** One thing to look for in the words of a text. */
export interface Rule {
  readonly id: string
  readonly category: string
  /** A rule has the one or the other. */
  readonly phrase: Phrase | undefined
  readonly pattern: RegExp | undefined
  /** The kind of text it is for; undefined: every text. */
  readonly only: 'document' | undefined
}

/** `document`: a page, file, mail or result of a tool, which should ask a model for nothing. */
export type TextKind = 'any' | 'document'

/** What decides whether a match is what it looks like; `BR.cpf` is a number of the library stdnum. */
export type Check = (typeof CHECKS)[number] | `${string}.${string}`

const CHECKS = ['iban', 'card', 'ipv6', 'no_placeholder', 'seed_phrase', 'phone'] as const

/** One kind of personal data or secret. */
export interface Kind {
  readonly type: string
  readonly group: 'secrets' | 'sensitive_data' | 'contact_data'
  readonly check: Check | undefined
  readonly pattern: RegExp
}

interface Table {
  readonly version: string
  readonly weights: Readonly<Record<string, number>>
  readonly rules: readonly {
    readonly id: string
    readonly category: string
    readonly words?: string | null
    readonly unless_after?: string | null
    readonly unless_in_clause?: string | null
    readonly pattern?: string | null
    readonly in?: 'document' | null
  }[]
  readonly patterns: readonly {
    readonly type: string
    readonly group: Kind['group']
    readonly check?: Check | null
    readonly any_case?: boolean | null
    readonly pattern: string
  }[]
}

const NAME = { type: 'string', pattern: '^[a-z0-9_]+$' } as const
const TEXT = { type: 'string', minLength: 1 } as const

export const guardRules = openTable(
  'guard.yaml',
  {
    type: 'object',
    required: ['version', 'weights', 'rules', 'patterns'],
    additionalProperties: false,
    properties: {
      version: { type: 'string', pattern: '^20[0-9]{2}-[0-9]{2}-[0-9]{2}$' },
      weights: {
        type: 'object',
        required: [],
        additionalProperties: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
      },
      rules: {
        type: 'array',
        items: {
          type: 'object',
          required: ['id', 'category'],
          additionalProperties: false,
          properties: {
            id: { type: 'string', pattern: '^[A-Z]{2}-[0-9]{3}$' },
            category: NAME,
            words: { ...TEXT, nullable: true },
            unless_after: { ...TEXT, nullable: true },
            unless_in_clause: { ...TEXT, nullable: true },
            pattern: { ...TEXT, nullable: true },
            in: { type: 'string', enum: ['document'], nullable: true },
          },
        },
      },
      patterns: {
        type: 'array',
        items: {
          type: 'object',
          required: ['type', 'group', 'pattern'],
          additionalProperties: false,
          properties: {
            type: NAME,
            group: { type: 'string', enum: ['secrets', 'sensitive_data', 'contact_data'] },
            check: { type: 'string', pattern: `^(${CHECKS.join('|')}|[A-Z]{2}\\.[a-z]+)$`, nullable: true },
            any_case: { type: 'boolean', nullable: true },
            pattern: TEXT,
          },
        },
      },
    },
  },
  readRules,
)

function readRules({ version, weights, rules, patterns }: Table) {
  const read = rules.map(
    ({ id, category, words, unless_after: after, unless_in_clause: clause, pattern, in: only }): Rule => ({
      id,
      category,
      phrase: words ? parsePhrase(words, after ?? '', clause ?? '') : undefined,
      pattern: pattern ? compileBounded(pattern, 'giu') : undefined,
      only: only ?? undefined,
    }),
  )
  const kinds = patterns.map(({ type, group, check, any_case: anyCase, pattern }): Kind => ({
    type,
    group,
    check: check ?? undefined,
    pattern: compileBounded(pattern, anyCase === true ? 'gi' : 'g'),
  }))
  const phrases = read.flatMap(({ phrase, ...rule }) => (phrase === undefined ? [] : [{ ...rule, phrase }]))
  return {
    version,
    weights,
    rules: read,
    kinds,
    phrases,
    vocabulary: vocabularyOf(phrases.map(({ phrase }) => phrase)),
  }
}

/** No text may make a pattern slow: repetitions without an upper bound are refused. */
export function compileBounded(pattern: string, flags: string): RegExp {
  const bare = pattern.replace(/\\./g, '_').replace(/\[[^\]]*\]/g, '_')
  if (/[*+]|\{\d+,\}/.test(bare)) throw new Error(`a repetition without an upper bound: ${pattern}`)
  return new RegExp(pattern, flags)
}
