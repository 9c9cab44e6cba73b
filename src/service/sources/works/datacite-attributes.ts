import { compileShape } from '../answer-shape.ts'

/** A work as DataCite describes it. */
export interface Attributes {
  readonly doi: string
  readonly creators?: readonly Person[] | null
  readonly contributors?: readonly (Person & { readonly contributorType?: string | null })[] | null
  readonly titles?: readonly { readonly title?: string | null; readonly titleType?: string | null }[] | null
  readonly publisher?: string | null
  readonly container?: Container | null
  readonly publicationYear?: number | null
  readonly dates?: readonly { readonly date?: string | null; readonly dateType?: string | null }[] | null
  readonly types?: { readonly resourceTypeGeneral?: string | null; readonly citeproc?: string | null } | null
  readonly version?: string | null
  readonly language?: string | null
  readonly citationCount?: number | null
}

/** `Doe, Jane` as a whole, and where it is known which is which, in parts. */
export interface Person {
  readonly name?: string | null
  readonly givenName?: string | null
  readonly familyName?: string | null
  readonly nameType?: string | null
  readonly nameIdentifiers?:
    | readonly { readonly nameIdentifier?: string | null; readonly nameIdentifierScheme?: string | null }[]
    | null
}

export interface Container {
  readonly title?: string | null
  readonly volume?: string | null
  readonly issue?: string | null
  readonly firstPage?: string | null
  readonly lastPage?: string | null
  readonly identifier?: string | null
  readonly identifierType?: string | null
}

const TEXT = { type: 'string', nullable: true } as const
const PERSON = {
  name: TEXT,
  givenName: TEXT,
  familyName: TEXT,
  nameType: TEXT,
  nameIdentifiers: {
    type: 'array',
    items: { type: 'object', properties: { nameIdentifier: TEXT, nameIdentifierScheme: TEXT } },
    nullable: true,
  },
} as const

export const DATACITE_WORK = compileShape<{ readonly data: { readonly attributes: Attributes } }>(
  {
    type: 'object',
    required: ['data'],
    properties: {
      data: {
        type: 'object',
        required: ['attributes'],
        properties: {
          attributes: {
            type: 'object',
            required: ['doi'],
            properties: {
              doi: { type: 'string' },
              creators: { type: 'array', items: { type: 'object', properties: PERSON }, nullable: true },
              contributors: {
                type: 'array',
                items: { type: 'object', properties: { ...PERSON, contributorType: TEXT } },
                nullable: true,
              },
              titles: {
                type: 'array',
                items: { type: 'object', properties: { title: TEXT, titleType: TEXT } },
                nullable: true,
              },
              publisher: TEXT,
              container: {
                type: 'object',
                properties: {
                  title: TEXT,
                  volume: TEXT,
                  issue: TEXT,
                  firstPage: TEXT,
                  lastPage: TEXT,
                  identifier: TEXT,
                  identifierType: TEXT,
                },
                nullable: true,
              },
              publicationYear: { type: 'integer', nullable: true },
              dates: {
                type: 'array',
                items: { type: 'object', properties: { date: TEXT, dateType: TEXT } },
                nullable: true,
              },
              types: {
                type: 'object',
                properties: { resourceTypeGeneral: TEXT, citeproc: TEXT },
                nullable: true,
              },
              version: TEXT,
              language: TEXT,
              citationCount: { type: 'integer', nullable: true },
            },
          },
        },
      },
    },
  },
  {
    vital: ['titles', 'creators', 'publicationYear', 'dates'].map((name) => `data/attributes/${name}`),
    expected: ['titles', 'creators', 'publicationYear', 'types'].map((name) => `data/attributes/${name}`),
  },
)
