import { Failure, type Source } from 'ratecard/handler'
import type { Egress } from '../../sources/egress.ts'
import type { LanguageModel } from '../../sources/model.ts'
import type { SearchEngine } from '../../sources/search-engine.ts'
import type { ConfigurableHandler } from '../catalog.ts'
import { tidy } from './web-research/brief.ts'
import { candidatesOf } from './web-research/candidates.ts'
import { readPages, type Page } from './web-research/pages.ts'
import { quotePages, writeBrief } from './web-research/writing.ts'

export interface ResearchMeans {
  /** Undefined: not configured. */
  readonly engine: SearchEngine | undefined
  readonly egress: Egress
  /** Source of the pages, as named in answers. */
  readonly pages: Source
  /** Undefined: the brief consists of sentences of the pages. */
  readonly model: LanguageModel | undefined
}

/** What every page may have, and no injection needs. */
const HARMLESS = 'hidden_text'

/** Searches the web, reads the pages and summarises them, with a citation for each statement. */
export function webResearch({
  engine,
  egress,
  pages: named,
  model,
}: ResearchMeans): ConfigurableHandler<'research/web-research'> {
  return {
    configured: engine !== undefined,
    run: async ({ query, max_sources: most }, context) => {
      if (engine === undefined) throw new Failure('not_configured', 'no search engine is set up here')
      const hits = await engine.search(query, context.signal)
      const candidates = candidatesOf(hits)
      if (candidates.length === 0)
        throw new Failure('not_found', 'The search engine found no page for this query')
      const { pages, unread, warnings } = await readPages(candidates, most, egress, context)
      if (pages.length === 0)
        throw new Failure('source_error', 'None of the pages found could be read', { extra: { unread } })
      const { brief, claims } = await (model === undefined
        ? quotePages(query, pages, context)
        : writeBrief(model, query, pages, context))
      return {
        source: [engine.source, named, ...(model === undefined ? [] : [model.source])],
        warnings,
        body: {
          query,
          mode: model === undefined ? 'extractive' : 'llm',
          brief,
          claims: claims.map(({ text, source }) => ({ text, source })),
          sources: pages.map((page, index) => shown(page, index, pages)),
          pages: { found: hits.length, read: pages.length, unread },
          untrusted: true,
        },
      }
    },
  }
}

function shown({ url, title, publishedAt, flags }: Page, index: number, pages: readonly Page[]) {
  return {
    n: index + 1,
    url,
    title: tidy(title, pages),
    published_at: publishedAt,
    suspicious: flags.some((flag) => flag !== HARMLESS),
    injection_flags: [...flags],
  }
}
