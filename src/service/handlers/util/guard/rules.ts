import { openTable } from '../../../data/table.ts'
import { parsePhrase, vocabularyOf, type Phrase } from './phrase.ts'

/** One thing to look for in the words of a text. */
export interface Rule {
  readonly id: string
  readonly category: string
  /** A rule has the one or the other. */
  readonly phrase: Phrase | undefined
  readonly pattern: RegExp | undefined
}

/** One kind of personal data or secret. */
export interface Kind {
  readonly type: string
  readonly group: 'secrets' | 'sensitive_data' | 'contact_data'
  readonly check: 'iban' | 'card' | 'ipv6' | 'no_placeholder' | undefined
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
    readonly pattern?: string | null
  }[]
  readonly patterns: readonly {
    readonly type: string
    readonly group: Kind['group']
    readonly check?: NonNullable<Kind['check']> | null
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
            pattern: { ...TEXT, nullable: true },
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
            check: { type: 'string', enum: ['iban', 'card', 'ipv6', 'no_placeholder', null], nullable: true },
            pattern: TEXT,
          },
        },
      },
    },
  },
  readRules,
)

function readRules({ version, weights, rules, patterns }: Table) {
  const read = rules.map(({ id, category, words, unless_after: after, pattern }): Rule => ({
    id,
    category,
    phrase: words ? parsePhrase(words, after ?? '') : undefined,
    pattern: pattern ? compileBounded(pattern, 'giu') : undefined,
  }))
  const kinds = patterns.map(({ type, group, check, pattern }): Kind => ({
    type,
    group,
    check: check ?? undefined,
    // Only what is said by name, such as a password, is said in any case.
    pattern: compileBounded(pattern, type === 'password' || type === 'evm_private_key' ? 'gi' : 'g'),
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
