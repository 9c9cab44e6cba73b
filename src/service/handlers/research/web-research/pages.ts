import { Failure, InvalidParameter, type Context, type Warning } from 'ratecard/handler'
import { beforeDeadline, DeadlinePassed } from '../../../sources/deadline.ts'
import type { Egress } from '../../../sources/egress.ts'
import type { SearchHit } from '../../../sources/search-engine.ts'
import { READABLE_TYPES, readReply } from '../../util/extract/page.ts'
import { screenPage } from '../../util/extract/page-screening.ts'
import { identityOf } from './candidates.ts'

export interface Page {
  readonly url: string
  /** Title from the page, otherwise from the search engine. */
  readonly title: string
  readonly publishedAt: string | null
  readonly text: string
  /** What the guard found in it, and whether it hides text from people. */
  readonly flags: readonly string[]
}

export interface Pile {
  /** In the order in which the engine gave them. */
  readonly pages: readonly Page[]
  /** Number of pages that could not be read, by reason. */
  readonly unread: Readonly<Record<string, number>>
  readonly warnings: readonly Warning[]
}

const MEASURE = { bytes: 512 * 1024, beyond: 'cut' } as const
/** For one page on its way; all are asked side by side. */
const FETCHING_MS = 4000
/** After this, nothing is begun instead of a page that could not be read. */
const BEGINNING_MS = 3000
/** Candidates, for each page that is wanted. */
const TRIED = 2
const WHOLE = { longest: 10_000, overlap: 0 } as const
const FEWEST_CHARACTERS = 80

/** Reads pages until there are as many as wanted: as many at a time, each instead of one that could not be read. */
export async function readPages(
  candidates: readonly SearchHit[],
  most: number,
  egress: Egress,
  context: Context,
): Promise<Pile> {
  const tried = candidates.slice(0, most * TRIED).map((hit, rank) => ({ hit, rank }))
  const found: { readonly rank: number; readonly page: Page }[] = []
  const unread: Record<string, number> = {}
  const warnings = new Map<string, Warning>()
  const known = new Set<string>()
  const started = context.now().getTime()
  const readNext = async (): Promise<void> => {
    for (let next = tried.shift(); next !== undefined; next = tried.shift()) {
      const outcome = await readPage(next.hit, egress, context)
      const reason = typeof outcome === 'string' ? outcome : 'repeated'
      if (typeof outcome !== 'string' && !known.has(outcome.identity)) {
        known.add(outcome.identity)
        found.push({ rank: next.rank, page: outcome.page })
        for (const warning of outcome.warnings) warnings.set(warning.code, warning)
        return
      }
      unread[reason] = (unread[reason] ?? 0) + 1
      if (context.now().getTime() - started > BEGINNING_MS) return
    }
  }
  await Promise.all(Array.from({ length: most }, readNext))
  const pages = found.sort((one, other) => one.rank - other.rank).map(({ page }) => page)
  return { pages, unread, warnings: Array.from(warnings.values()) }
}

interface Read {
  readonly page: Page
  readonly identity: string
  readonly warnings: readonly Warning[]
}

/** The page, or one word for the reason why there is none. */
async function readPage(hit: SearchHit, egress: Egress, context: Context): Promise<Read | string> {
  const request = { accept: READABLE_TYPES, measure: MEASURE, robots: 'honour' } as const
  try {
    const outcome = await beforeDeadline(context.signal, FETCHING_MS, (limit) =>
      egress.get(hit.url, request, limit),
    )
    if (outcome.kind === 'refused') return outcome.refusal
    if (outcome.kind === 'failed') return outcome.mishap
    const reading = await readReply(outcome.reply, WHOLE, context.signal)
    if (reading.text.length < FEWEST_CHARACTERS) return 'empty'
    const { flags, warnings } = await screenPage(reading, context)
    const { title, published_at: publishedAt } = reading.head
    const page = {
      url: outcome.reply.url.href,
      title: (title ?? hit.title.replaceAll(/<[^>]{0,100}>/g, '')).slice(0, 300),
      publishedAt,
      text: reading.text,
      flags,
    }
    return { page, identity: identityOf(outcome.reply.url), warnings }
  } catch (cause) {
    if (cause instanceof DeadlinePassed) return 'timeout'
    if (cause instanceof Failure || cause instanceof InvalidParameter) return 'unreadable'
    throw cause
  }
}
