/** What a work is, in the words of CSL 1.0.2. */
export type Kind =
  | 'article-journal'
  | 'paper-conference'
  | 'chapter'
  | 'book'
  | 'article'
  | 'report'
  | 'thesis'
  | 'dataset'
  | 'software'
  | 'document'

export type Contributor = {
  /** The whole name of an organisation, or of a person whose names are not told apart; null for other persons. */
  readonly name: string | null
  readonly given: string | null
  readonly family: string | null
  readonly suffix: string | null
  readonly orcid: string | null
}

/** A published work as its agency describes it. Texts are plain: one line, no markup. A type, so that it counts as JSON. */
export type Work = {
  /** Lower case: DOIs do not tell cases apart. */
  readonly doi: string
  readonly kind: Kind
  /** As the agency calls it. */
  readonly type: string
  readonly title: string | null
  /** At most `MOST_CONTRIBUTORS`, the last of which is the last of all. */
  readonly authors: readonly Contributor[]
  readonly authorCount: number
  readonly editors: readonly Contributor[]
  readonly container: string | null
  readonly containerShort: string | null
  readonly publisher: string | null
  /** Year, month and day, as many of them as are known. */
  readonly date: readonly number[]
  readonly volume: string | null
  readonly issue: string | null
  /** `436–444`, or one page. */
  readonly pages: string | null
  /** In journals that number articles instead of pages. */
  readonly articleNumber: string | null
  readonly edition: string | null
  readonly version: string | null
  readonly issn: readonly string[]
  readonly isbn: readonly string[]
  /** BCP 47. */
  readonly language: string | null
  readonly citedBy: number | null
  /** Null when the agency does not say. */
  readonly isRetracted: boolean | null
  readonly retraction: { readonly notice: string | null; readonly date: readonly number[] } | null
}

/** Papers of whole laboratories have thousands of authors: nine styles of them would be more than an answer holds. */
const MOST_CONTRIBUTORS = 200

export function fewest(all: readonly Contributor[]): readonly Contributor[] {
  const last = all.at(-1)
  return last === undefined || all.length <= MOST_CONTRIBUTORS
    ? all
    : [...all.slice(0, MOST_CONTRIBUTORS - 1), last]
}

export function isWork(value: unknown): value is Work {
  return (
    typeof value === 'object' &&
    value !== null &&
    'doi' in value &&
    typeof value.doi === 'string' &&
    'authorCount' in value &&
    'isRetracted' in value &&
    'retraction' in value
  )
}
