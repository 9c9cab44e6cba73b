import type { JSONSchemaType } from 'ajv/dist/2020.js'

/** A work as Crossref describes it: CSL-JSON with lists where that has single texts, and more. */
export interface Message {
  readonly DOI: string
  readonly type?: string | null
  readonly title?: readonly string[] | null
  readonly subtitle?: readonly string[] | null
  readonly author?: readonly Name[] | null
  readonly editor?: readonly Name[] | null
  readonly 'container-title'?: readonly string[] | null
  readonly 'short-container-title'?: readonly string[] | null
  readonly institution?: readonly { readonly name?: string | null }[] | null
  readonly publisher?: string | null
  readonly issued?: Dated | null
  readonly volume?: string | null
  readonly issue?: string | null
  readonly page?: string | null
  readonly 'article-number'?: string | null
  readonly 'edition-number'?: string | null
  readonly ISSN?: readonly string[] | null
  readonly ISBN?: readonly string[] | null
  readonly language?: string | null
  readonly 'is-referenced-by-count'?: number | null
  readonly 'updated-by'?: readonly Update[] | null
  /** In search results only: how well it fits. */
  readonly score?: number | null
}

export interface Name {
  readonly given?: string | null
  readonly family?: string | null
  readonly suffix?: string | null
  readonly name?: string | null
  readonly ORCID?: string | null
}

export interface Dated {
  /** `[[null]]` where nothing is known. */
  readonly 'date-parts'?: readonly (readonly (number | null)[])[] | null
}

export interface Update {
  readonly type?: string | null
  readonly DOI?: string | null
  readonly updated?: Dated | null
}

/** A citation that lacks a part of these is a wrong one. */
export const CITED = ['title', 'author', 'issued', 'container-title']

const TEXT = { type: 'string', nullable: true } as const
const TEXTS = { type: 'array', items: { type: 'string' }, nullable: true } as const
const DATED = {
  type: 'object',
  properties: {
    'date-parts': {
      type: 'array',
      items: { type: 'array', items: { type: 'integer', nullable: true } },
      nullable: true,
    },
  },
  nullable: true,
} as const
const NAMES = {
  type: 'array',
  items: {
    type: 'object',
    properties: { given: TEXT, family: TEXT, suffix: TEXT, name: TEXT, ORCID: TEXT },
  },
  nullable: true,
} as const

export const MESSAGE: JSONSchemaType<Message> = {
  type: 'object',
  required: ['DOI'],
  properties: {
    DOI: { type: 'string' },
    type: TEXT,
    title: TEXTS,
    subtitle: TEXTS,
    author: NAMES,
    editor: NAMES,
    'container-title': TEXTS,
    'short-container-title': TEXTS,
    institution: { type: 'array', items: { type: 'object', properties: { name: TEXT } }, nullable: true },
    publisher: TEXT,
    issued: DATED,
    volume: TEXT,
    issue: TEXT,
    page: TEXT,
    'article-number': TEXT,
    'edition-number': TEXT,
    ISSN: TEXTS,
    ISBN: TEXTS,
    language: TEXT,
    'is-referenced-by-count': { type: 'integer', nullable: true },
    score: { type: 'number', nullable: true },
    'updated-by': {
      type: 'array',
      items: { type: 'object', properties: { type: TEXT, DOI: TEXT, updated: DATED } },
      nullable: true,
    },
  },
}
