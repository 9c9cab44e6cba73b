import type { LiveDocument } from '../documents/all.ts'
import { PAGE_TYPE } from '../documents/registry.ts'
import { PAGE_HEADERS } from '../documents/page.ts'
import { type RefusedReload, renderStatusPage } from '../documents/status-page.ts'
import { compact } from '../json.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { LedgerError, chargeStatus } from '../ledger/payment-lifecycle.ts'
import type { UsageStore, Days } from '../usage/usage.ts'
import type { NetworkHealth } from '../protocols/x402/networks.ts'
import { JSON_TYPE, problem, type Reply } from './reply.ts'
import type { Revision } from './revision.ts'
import { standing, stats, type AllFigures, type StatusSnapshot } from './status.ts'

export interface LiveSettings {
  readonly now: () => number
  readonly ledger: Ledger
  readonly usageStore: UsageStore
  /** How the outside sources have done. */
  readonly figures: AllFigures
  /** How settling goes on the networks that were paid on. */
  readonly networks: () => Promise<readonly NetworkHealth[]>
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
      return health(settings, revision)
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

/** 503 while payments cannot be recorded, so that a load balancer sends requests to another process. */
async function health({ ledger, now, report }: LiveSettings, { catalog }: Revision): Promise<Reply> {
  try {
    await ledger.listExpiring('health', now())
  } catch (fault) {
    report(fault)
    return problem('ledger_unavailable', LEDGER_AWAY, { charged: 'no', headers: { 'Retry-After': '2' } })
  }
  return jsonReply({ status: 'ok', revision: catalog.revision })
}

const LEDGER_AWAY = 'the record of payments cannot be reached now'

async function see(settings: LiveSettings): Promise<StatusSnapshot> {
  const { now, figures, networks, refused } = settings
  const [seen, settling] = await Promise.all([look(settings), networks().catch(() => [])])
  return { ...seen, now: now(), sources: figures(), networks: settling, refused: refused() }
}

/** When the store is away, this process still tells what it has seen itself. */
async function look({
  usageStore,
  report,
}: LiveSettings): Promise<{ readonly days: Days; readonly ledger: StatusSnapshot['ledger'] }> {
  try {
    return { days: await usageStore.read(), ledger: 'reachable' }
  } catch (fault) {
    report(fault)
    return { days: usageStore.own(), ledger: 'unreachable' }
  }
}

function pageReply(revision: Revision, sight: StatusSnapshot): Reply {
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

const PATH = /^\/payments\/(pay_[A-Za-z0-9_-]{22})$/

/** The public id in the path of a payment's state: where the Location of a 503 points. */
export function paymentIdOf(path: string): string | undefined {
  return PATH.exec(path)?.[1]
}

/** What is known of a payment, for a caller that has its id: the state only, never the answer or who paid. */
export async function paymentState(ledger: Ledger, id: string): Promise<Reply> {
  try {
    return stateOf(id, await ledger.find(id))
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    const headers = { 'Retry-After': '2' }
    return problem('ledger_unavailable', LEDGER_AWAY, { charged: 'unknown', headers })
  }
}

function stateOf(id: string, entry: PaymentRecord | undefined): Reply {
  if (entry === undefined) return problem('not_found', 'no payment has this id here', { charged: 'no' })
  const { state, network, receipt, refund } = entry
  const body = compact({
    payment: id,
    state,
    charged: chargeStatus(entry),
    network,
    transaction: receipt?.transaction,
    refund: refund?.kind,
    refund_transaction: refund?.kind === 'sent' ? refund.hash : undefined,
    next: nextStep(entry),
  })
  return {
    status: 200,
    headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' },
    body: JSON.stringify(body),
  }
}

function nextStep({ state, refund }: PaymentRecord): string {
  if (refund?.kind === 'sent') return 'the money was sent back: a new payment buys'
  if (refund !== undefined) return 'the operator sends the money back: a new payment buys'
  if (state === 'sent')
    return 'the answer was delivered; it is given again to the payment that carries its token'
  if (state === 'voided') return 'nothing was charged: the same payment may be sent again until it expires'
  return 'send the same payment to the same URL again: it is charged once and answered'
}
