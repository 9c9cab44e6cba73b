import { createHash } from 'node:crypto'
import { ListFault, type Oddity } from './entry.ts'
import type { ListTerms } from './lists.ts'
import { readList, type ListFile } from './list-reader.ts'
import { NameIndex } from './name-index.ts'

/** Of a list that is in use. */
export interface ListFacts {
  /** The day the list says it is of; null where it does not say. */
  readonly publishedAt: string | null
  /** When it was last known to be what its publisher offers, in milliseconds. */
  readonly fetchedAt: number
  readonly entries: number
  readonly sha256: string
  readonly oddities: readonly Oddity[]
}

export interface IndexedList {
  readonly facts: ListFacts
  readonly index: NameIndex
  /** Accounts on EVM chains of all entries. */
  readonly wallets: readonly string[]
}

/** A list that loses more than this at once was more likely cut than shortened. */
const LEAST_KEPT = 0.9
const ENTRIES_A_BREATH = 500

/**
 * Makes a file ready to be searched, or throws `ListFault`: when it is not all of the list, holds too few entries, is
 * older than what is in use, or has lost a tenth of it. What is in use is not touched.
 */
export async function buildIndex(
  terms: Pick<ListTerms, 'format' | 'fewest'>,
  file: ListFile,
  fetchedAt: number,
  inUse: IndexedList | undefined,
  breathe: () => Promise<void>,
): Promise<IndexedList> {
  const sha256 = digest(file)
  if (inUse?.facts.sha256 === sha256) return { ...inUse, facts: { ...inUse.facts, fetchedAt } }
  const { publishedAt, entries, oddities } = await readList(terms.format, file, breathe)
  const facts = { publishedAt, fetchedAt, entries: entries.length, sha256, oddities }
  if (facts.entries < terms.fewest)
    throw new ListFault(`holds ${facts.entries} entries; the whole list has ${terms.fewest} or more`)
  if (inUse !== undefined) compare(facts, inUse.facts)
  const index = new NameIndex()
  for (const [place, entry] of entries.entries()) {
    index.add(entry)
    if (place % ENTRIES_A_BREATH === 0) await breathe()
  }
  return { facts, index, wallets: entries.flatMap(({ wallets = [] }) => wallets) }
}

function compare(next: ListFacts, inUse: ListFacts): void {
  if (next.publishedAt !== null && inUse.publishedAt !== null && next.publishedAt < inUse.publishedAt)
    throw new ListFault(`is of ${next.publishedAt}, older than the one in use (${inUse.publishedAt})`)
  if (next.entries < LEAST_KEPT * inUse.entries)
    throw new ListFault(`holds ${next.entries} entries where the one in use holds ${inUse.entries}`)
}

function digest({ main, aliases }: ListFile): string {
  const hash = createHash('sha256').update(main)
  return (aliases === undefined ? hash : hash.update(aliases)).digest('hex')
}
