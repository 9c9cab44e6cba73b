import { once } from 'node:events'
import { statSync } from 'node:fs'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Catalog } from '../catalog/catalog.ts'
import type { CheckInputs } from '../catalog/check-context.ts'
import { deepFreeze } from '../catalog/compile.ts'
import { CatalogError, hasErrors, type Issue } from '../catalog/issue.ts'
import { compileText, loadCatalog, readerIn, type Loaded, type Mark } from '../catalog/load-catalog.ts'
import { documentNames } from '../documents/all.ts'
import type { Facts } from '../documents/registry.ts'
import { readerOfKept, type KeptCatalog } from './kept-revisions.ts'
import type { Page, Pages } from '../http/rendered-pages.ts'
import { checkHeaderBudget } from '../x402/x402-challenge.ts'
import type { NetworkOffer } from '../x402/requirements.ts'

/** A catalog to be served: its file, or its text, whose files are read from the working directory. */
export type CatalogPlace = string | { readonly text: string }

/** What a revision is read from. */
type RevisionPlace = CatalogPlace | KeptCatalog

/** The names of all handlers; for a reload, also the routes and tools that are `served` now. */
export type LoadedHandlers = Pick<CheckInputs, 'handlers' | 'served'>

/**
 * Loads a catalog for serving, and also checks what depends on its public URL: the size of its headers. Adds every
 * file it reads to `files`. Throws `CatalogError`.
 */
export function loadServed(
  place: RevisionPlace,
  loaded: LoadedHandlers,
  baseUrl: string,
  files?: Map<string, Mark>,
): Loaded {
  const known = { ...loaded, documents: documentNames }
  const file = fileOf(place)
  const read =
    typeof place === 'string'
      ? loadCatalog(file, known, files)
      : compileText(file, place.text, {
          ...known,
          read: 'files' in place ? readerOfKept(place) : readerIn('.', files),
        })
  const { catalog, text, at } = read
  const issues = checkHeaderBudget(catalog, { baseUrl, at })
  if (hasErrors(issues)) throw new CatalogError(file, text, [...read.warnings, ...issues])
  return { ...read, warnings: [...read.warnings, ...issues] }
}

function fileOf(place: RevisionPlace): string {
  if (typeof place === 'string') return place
  return 'file' in place ? place.file : 'catalog.yaml'
}

export type ReadCatalog = Pick<Loaded, 'catalog' | 'warnings' | 'text'>

/** Reads a catalog for serving. Adds every file it reads to `files`. Rejects with `CatalogError`. */
export type CatalogReader = (
  place: RevisionPlace,
  loaded: LoadedHandlers,
  baseUrl: string,
  files: Map<string, Mark>,
) => Promise<ReadCatalog>

/** A part of a catalog that is sent between threads at once; requests are answered between two parts. */
export type Slice = Pick<Catalog, 'operations' | 'routes'>

type Head = Omit<Catalog, keyof Slice>

/** Render facts without functions. */
export interface SentFacts extends Omit<Facts, 'available' | 'paymentRequired'> {
  /** Ids of the operations that can be called. */
  readonly ready: ReadonlySet<string>
  readonly offers: readonly NetworkOffer[]
}

export type Question =
  | {
      readonly kind: 'read'
      readonly place: RevisionPlace
      readonly loaded: LoadedHandlers
      readonly baseUrl: string
    }
  /** Requests the next slice of the catalog. */
  | { readonly kind: 'next' }
  /** Sends a slice of the catalog for rendering. */
  | { readonly kind: 'take'; readonly slice: Slice }
  | { readonly kind: 'render'; readonly head: Head; readonly facts: SentFacts }

export type Answer =
  | {
      readonly kind: 'read'
      readonly head: Head
      readonly warnings: readonly Issue[]
      readonly text: string
      readonly files: ReadonlyMap<string, Mark>
    }
  | {
      readonly kind: 'refused'
      readonly file: string
      readonly text: string
      readonly issues: readonly Issue[]
      readonly files: ReadonlyMap<string, Mark>
    }
  | { readonly kind: 'slice'; readonly slice: Slice | undefined }
  | { readonly kind: 'taken' }
  | { readonly kind: 'rendered'; readonly pages: Pages }

const SLICE = 50

/** Divides a catalog into slices: routes are in the order of their operations. */
export function* slicesOf({ operations, routes }: Slice): Generator<Slice, undefined> {
  let begin = 0
  for (let from = 0; from < operations.length; from += SLICE) {
    const part = operations.slice(from, from + SLICE)
    const own = new Set(part)
    const beyond = routes.findIndex(({ operation }, at) => at >= begin && !own.has(operation))
    const end = beyond === -1 ? routes.length : beyond
    yield { operations: part, routes: routes.slice(begin, end) }
    begin = end
  }
  return undefined
}

/** Size in bytes above which reading a catalog takes longer than starting a thread. */
const LARGE = 500_000

/** Number of routes whose rendering takes as long. */
export function isLarge({ routes }: Catalog): boolean {
  return routes.length > 500
}

/** Before the server answers requests, only large catalogs are read in a thread. */
export const readAtStart: CatalogReader = async (place, loaded, baseUrl, files) => {
  const size =
    typeof place === 'string' ? statSync(place, { throwIfNoEntry: false })?.size : place.text.length
  const isSmall = (size ?? 0) < LARGE
  return isSmall ? loadServed(place, loaded, baseUrl, files) : readInThread(place, loaded, baseUrl, files)
}

/** Reads a catalog in a thread of its own, so that requests are answered meanwhile. */
export const readInThread: CatalogReader = (place, loaded, baseUrl, files) =>
  inThread(async (ask) => {
    const read = await ask({ kind: 'read', place, loaded, baseUrl })
    if (read.kind !== 'read' && read.kind !== 'refused')
      throw new Error(`the thread has answered ${read.kind}`)
    for (const [path, mark] of read.files) files.set(path, mark)
    if (read.kind === 'refused') throw new CatalogError(read.file, read.text, read.issues)
    const slices: Slice[] = []
    for (;;) {
      const next = await ask({ kind: 'next' })
      if (next.kind !== 'slice' || next.slice === undefined) break
      slices.push(deepFreeze(next.slice))
    }
    const { head, warnings, text } = read
    const operations = slices.flatMap((slice) => slice.operations)
    const routes = slices.flatMap((slice) => slice.routes)
    return { catalog: { ...deepFreeze(head), operations, routes }, warnings, text }
  })

/** Renders the documents of a catalog in a thread of its own. */
export function renderInThread({ operations, routes, ...head }: Catalog, facts: SentFacts): Promise<Pages> {
  return inThread(async (ask) => {
    for (const slice of slicesOf({ operations, routes })) await ask({ kind: 'take', slice })
    const rendered = await ask({ kind: 'render', head, facts })
    if (rendered.kind !== 'rendered') throw new Error(`the thread has answered ${rendered.kind}`)
    return new Map(Array.from(rendered.pages, ([path, page]) => [path, withBuffers(page)]))
  })
}

/** Messages between threads make plain byte arrays of Buffers. */
function withBuffers({ body, shown, markdown, ...page }: Page): Page {
  return {
    ...page,
    body: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    ...(shown === undefined ? {} : { shown: withBuffers(shown) }),
    ...(markdown === undefined ? {} : { markdown: withBuffers(markdown) }),
  }
}

type Ask = (question: Question) => Promise<Answer>

/** Starts a thread and ends it after `work`: what reading a large catalog takes is freed before its documents are rendered. */
async function inThread<T>(work: (ask: Ask) => Promise<T>): Promise<T> {
  const worker = new Worker(new URL(`./catalog-worker${extname(import.meta.url)}`, import.meta.url))
  worker.unref()
  const ask: Ask = async (question) => {
    const answered = once(worker, 'message')
    worker.postMessage(question)
    const [answer]: Answer[] = await answered
    if (answer === undefined) throw new Error('the thread has not answered')
    return answer
  }
  try {
    return await work(ask)
  } finally {
    await worker.terminate()
  }
}
