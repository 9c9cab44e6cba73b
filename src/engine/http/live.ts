import type { LiveDocument } from '../documents/all.ts'
import { PAGE_TYPE } from '../documents/directory.ts'
import { PAGE_HEADERS } from '../documents/page.ts'
import { renderStatusPage } from '../documents/status-page.ts'
import type { RefusedReload } from '../documents/standing.ts'
import type { Daybook, Days } from '../tally/daybook.ts'
import { JSON_TYPE, type Reply } from './reply.ts'
import type { Revision } from './revision.ts'
import { stats } from './stats.ts'
import { standing, type AllFigures, type Sight } from './status.ts'

export interface LiveSettings {
  readonly now: () => number
  readonly daybook: Daybook
  /** How the outside sources have done. */
  readonly figures: AllFigures
  readonly refused: () => RefusedReload | undefined
  readonly report: (fault: unknown) => void
}

/** Readers of a live page share one that was rendered within this time. */
const SHARED_MS = 1_000

/** Pages that are rendered on request instead of once a revision, at most once a second each. */
export function livePages(
  settings: LiveSettings,
  revision: Revision,
): (name: LiveDocument) => Promise<Reply> {
  const shared = new Map<LiveDocument, { readonly until: number; readonly reply: Promise<Reply> }>()
  return (name) => {
    const now = settings.now()
    const known = shared.get(name)
    if (known !== undefined && now < known.until) return known.reply
    const reply = render(settings, revision, name)
    shared.set(name, { until: now + SHARED_MS, reply })
    return reply
  }
}

async function render(settings: LiveSettings, revision: Revision, name: LiveDocument): Promise<Reply> {
  switch (name) {
    case 'health':
      return jsonReply({ status: 'ok', revision: revision.catalog.revision })
    case 'stats': {
      const { days } = await look(settings)
      return jsonReply(stats(revision, days, settings.now()))
    }
    case 'status-json':
      return jsonReply(standing(revision, await see(settings)))
    case 'status':
      return pageReply(revision, await see(settings))
  }
}

async function see(settings: LiveSettings): Promise<Sight> {
  const { now, figures, refused } = settings
  return { ...(await look(settings)), now: now(), sources: figures(), refused: refused() }
}

/** When the store is away, this process still tells what it has seen itself. */
async function look({
  daybook,
  report,
}: LiveSettings): Promise<{ readonly days: Days; readonly ledger: Sight['ledger'] }> {
  try {
    return { days: await daybook.read(), ledger: 'reachable' }
  } catch (fault) {
    report(fault)
    return { days: daybook.own(), ledger: 'unreachable' }
  }
}

function pageReply(revision: Revision, sight: Sight): Reply {
  const { catalog, facts } = revision
  return {
    status: 200,
    headers: {
      'Content-Type': PAGE_TYPE,
      'Cache-Control': 'no-cache',
      ...PAGE_HEADERS,
    },
    body: renderStatusPage(catalog, facts, standing(revision, sight)),
  }
}

function jsonReply(value: unknown): Reply {
  return {
    status: 200,
    headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' },
    body: JSON.stringify(value),
  }
}
