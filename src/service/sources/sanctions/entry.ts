/** Someone or something on a list, in one form for all lists. */
export interface ListedEntry {
  /** The list's own number, by which it can be found there. */
  readonly uid: string
  readonly kind: Kind
  readonly names: readonly ListedName[]
  readonly programmes: readonly string[]
  /** `1962-11-23` or `1975` where that is what the list says, otherwise its own words: `circa 1960`. */
  readonly datesOfBirth: readonly string[]
  readonly nationalities: readonly string[]
  /** Numbers of ships and aircraft only: those of people are on the list's own page. */
  readonly identifiers: readonly string[]
  /** Accounts on EVM chains, in lower case; read from OFAC's XML only. */
  readonly wallets?: readonly string[]
  readonly title: string | null
  readonly remarks: string | null
  /** Where the list shows the entry. */
  readonly url: string | null
}

export type Kind = 'individual' | 'entity' | 'vessel' | 'aircraft'

export interface ListedName {
  readonly text: string
  readonly kind: 'primary' | 'alias' | 'former' | 'variation' | 'original_script'
  /** The list itself doubts that the alias tells the entry from others. */
  readonly weak: boolean
}

/** What a file of a list says. */
export interface ListContent {
  /** The day the list says it is of, `2026-11-18`; null where it does not say. */
  readonly publishedAt: string | null
  readonly entries: readonly ListedEntry[]
  /** Irregularities in a list that is used, with counts, for the operator. */
  readonly oddities: readonly Oddity[]
}

export interface Oddity {
  /** Names of fields or columns, never what was in them. */
  readonly where: string
  readonly count: number
}

/** A file that is not, or not all of, the list it should be. The message ends a sentence that begins with the list's name. */
export class ListFault extends Error {
  override readonly name = 'ListFault'
}

/** A few entries are odd in every list; more than this share of them means that we misread it. */
export const ODD_SHARE = 0.01

/** Joins the parts of a name that are there. */
export function joinName(parts: readonly (string | undefined)[]): string {
  return parts
    .map((part) => part?.trim() ?? '')
    .filter((part) => part !== '')
    .join(' ')
}

/** The value, or null where the list leaves it empty. */
export function orNull(text: string | undefined): string | null {
  const value = text?.trim() ?? ''
  return value === '' ? null : value
}

export function distinct(texts: readonly (string | undefined)[]): string[] {
  return [...new Set(texts.flatMap((text) => orNull(text) ?? []))]
}
