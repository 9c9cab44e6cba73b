import { parentPort } from 'node:worker_threads'
import { setImmediate as breathe } from 'node:timers/promises'
import { ListFault } from './entry.ts'
import { loadStored, store, storeWallets } from './files.ts'
import { LISTS, type ListId, type ListTerms } from './lists.ts'
import { readName, surnamesOf } from './name.ts'
import type { ListFile } from './list-reader.ts'
import type { Hit } from './name-index.ts'
import { isTelling } from './name-similarity.ts'
import { GENERIC } from './spelling.ts'
import { buildIndex, type ListFacts, type IndexedList } from './build-index.ts'

/** What the thread is asked; it answers with the number. */
export type Task =
  /** Reads a list from disk. */
  | { readonly kind: 'load'; readonly list: ListTerms; readonly directory: string }
  /** Takes a list that was fetched, and keeps it on disk where there is a directory. */
  | {
      readonly kind: 'take'
      readonly list: ListTerms
      readonly file: ListFile
      readonly fetchedAt: number
      readonly directory: string | undefined
    }
  | { readonly kind: 'search'; readonly name: string; readonly threshold: Threshold; readonly limit: number }

export interface Threshold {
  readonly usual: number
  /** For a single short word, which resembles too many others. */
  readonly shortWord: number
}

export type Outcome =
  /** `storeError`: in use, but not on disk, and why. */
  | { readonly kind: 'indexed'; readonly facts: ListFacts; readonly storeError?: string }
  | { readonly kind: 'absent' }
  /** What was in use still is. `reason` goes on after the list's name. */
  | { readonly kind: 'refused'; readonly reason: string }
  | {
      readonly kind: 'found'
      readonly searched: readonly ListId[]
      readonly normalized: string
      readonly words: number
      /** What was asked of the score. */
      readonly threshold: number
      readonly count: number
      readonly hits: readonly ListHit[]
    }

export type ListHit = Hit & {
  readonly list: ListId
  /** One word was asked for, a person's surname or part of an organisation's name: the score is below the threshold. */
  readonly surnameOnly: boolean
}

const lists = new Map<ListId, IndexedList>()
const SHORT = 5
/** No exact surname of a longer name scores less. */
const LEAST_SURNAME = 0.65

async function perform(task: Task): Promise<Outcome> {
  if (task.kind === 'search') return search(task)
  const { list, directory } = task
  const given = task.kind === 'take' ? task : await loadStored(task.directory, list.id)
  if (given === undefined) return { kind: 'absent' }
  const indexed = await buildIndex(list, given.file, given.fetchedAt, lists.get(list.id), () => breathe())
  lists.set(list.id, indexed)
  if (directory === undefined) return { kind: 'indexed', facts: indexed.facts }
  try {
    await storeWallets(directory, list.id, indexed.wallets, given.fetchedAt)
    if (task.kind === 'take') await store(directory, list.id, task)
    return { kind: 'indexed', facts: indexed.facts }
  } catch (fault) {
    if (!isSystemFault(fault)) throw fault
    return { kind: 'indexed', facts: indexed.facts, storeError: `could not be kept on disk (${fault.code})` }
  }
}

function search({ name, threshold, limit }: Task & { readonly kind: 'search' }): Outcome {
  const read = readName(name)
  // Of "Ayatollah Khamenei" one word is a name.
  const isOneName = read.person.length === 1 || read.organisation.length === 1
  const words = isOneName || read.organisation.length === 0 ? read.person : read.organisation
  const isShort = words.length === 1 && (words[0]?.length ?? 0) < SHORT
  const least = isShort ? threshold.shortWord : threshold.usual
  // Al-Assad is a surname, too.
  const telling = words.filter(isTelling)
  const asksSurname = telling.length === 1 && (telling[0]?.length ?? 0) >= SHORT
  // Always in the same order: of hits that score the same, the list that comes first is shown first.
  const isHit = (hit: Hit): boolean => hit.score >= least || isBearer(hit)
  const hits = LISTS.flatMap(({ id }) =>
    (lists.get(id)?.index.search(read, asksSurname ? LEAST_SURNAME : least, isHit) ?? []).map(
      (hit): ListHit => ({ list: id, ...hit, surnameOnly: hit.score < least }),
    ),
  )
  const asked = read.person.join(' ')
  const rank = (hit: ListHit): number => {
    if (readName(hit.name.text).person.join(' ') === asked) return 0
    return hit.surnameOnly ? 1 : 2
  }
  // Of one word, the name that is spelled so comes before all that are only alike.
  hits.sort((a, b) => (asksSurname ? rank(a) - rank(b) : 0) || b.score - a.score || rank(a) - rank(b))
  return {
    kind: 'found',
    searched: [...lists.keys()],
    normalized: asked,
    words: Math.max(1, telling.length),
    threshold: least,
    count: hits.length,
    hits: hits.slice(0, limit),
  }
}

function isBearer({ entry, name, pairs }: Hit): boolean {
  const pair = pairs.find(({ listed }) => isTelling(listed))
  if (pair?.likeness !== 1) return false
  if (entry.kind === 'individual') return surnamesOf(name.text).includes(pair.listed)
  return entry.kind === 'entity' && pair.listed.length >= SHORT && !GENERIC.has(pair.listed)
}

parentPort?.on('message', ({ id, task }: { readonly id: number; readonly task: Task }) => {
  perform(task)
    .catch((fault: unknown): Outcome => {
      if (fault instanceof ListFault) return { kind: 'refused', reason: fault.message }
      if (isSystemFault(fault)) return { kind: 'refused', reason: `cannot be read from disk (${fault.code})` }
      throw fault
    })
    .then((outcome) => parentPort?.postMessage({ id, outcome }))
    // Ends the thread: what is not understood must not go on answering.
    .catch((fault: unknown) =>
      setTimeout(() => {
        throw fault
      }),
    )
})

function isSystemFault(fault: unknown): fault is NodeJS.ErrnoException {
  return fault instanceof Error && 'syscall' in fault
}
