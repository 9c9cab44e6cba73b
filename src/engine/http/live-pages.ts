import type { LiveDocument } from '../documents/all.ts'
import { PAGE_TYPE } from '../documents/registry.ts'
import { PAGE_HEADERS } from '../documents/page-frame.ts'
import { type RefusedReload, renderStatusPage } from '../documents/status-page.ts'
import { compact } from '../base/json.ts'
import { readAnswer } from '../ledger/answers.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { chargeStatus, isRefundDue, refundStateOf } from '../ledger/payment-lifecycle.ts'
import { LedgerError, LedgerLostError } from '../base/errors.ts'
import type { ReceiptSigner } from '../receipts/receipt-signer.ts'
import { isRedeliverable } from '../purchase/redelivery.ts'
import type { UsageStore, Days } from '../usage/usage-store.ts'
import type { ListingReport } from '../payment/listing-report.ts'
import type { NetworkHealth } from '../payment/network-health.ts'
import { JSON_TYPE, ok, problem, type Reply } from './reply.ts'
import { STOPPING, type Phase } from './stopping.ts'
import type { Revision } from './revision.ts'
import { statusModel, stats, type AllFigures, type StatusSnapshot } from './status.ts'

export interface LiveSettings {
  readonly now: () => number
  readonly ledger: Ledger
  readonly usageStore: UsageStore
  /** Figures of the outside sources. */
  readonly figures: AllFigures
  /** State of settlement on the networks of past payments. */
  readonly networks: () => Promise<readonly NetworkHealth[]>
  /** Reports of facilitators about listings. */
  readonly listings: () => Promise<readonly ListingReport[]>
  readonly refused: () => RefusedReload | undefined
  readonly phase: () => Phase
  readonly report: (fault: unknown) => void
}

/** Requests share a page that was rendered within this time. */
const SHARED_MS = 1_000

/** Pages that are rendered on request, at most once per second each. */
export function livePages(
  settings: LiveSettings,
  revision: Revision,
): (name: LiveDocument) => Promise<Reply> {
  const shared = new Map<LiveDocument, { readonly until: number; readonly reply: Promise<Reply> }>()
  return async (name) => {
    if (name === 'health' && settings.phase() !== 'serving') return STOPPING
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
    case 'stats':
      return jsonReply(stats(revision, await readDays(settings), settings.now()))
    case 'status-json':
      return jsonReply(statusModel(revision, await see(settings)))
    case 'status':
      return pageReply(revision, await see(settings))
  }
}

/** Answers 503 while payments cannot be recorded, so that a load balancer uses another process. */
async function health(settings: LiveSettings, { catalog }: Revision): Promise<Reply> {
  switch (await ledgerState(settings)) {
    case 'lost':
      return problem('ledger_lost', LEDGER_LOST, { charged: 'no', headers: { 'Retry-After': '30' } })
    case 'unreachable':
      return problem('ledger_unavailable', LEDGER_AWAY, { charged: 'no', headers: { 'Retry-After': '2' } })
    case 'reachable': {
      const { revision } = catalog
      const refused = settings.refused() === undefined ? {} : { detail: REFUSED }
      return jsonReply({ status: 'ok', revision, ...refused })
    }
  }
}

async function ledgerState({ ledger, now, report }: LiveSettings): Promise<StatusSnapshot['ledger']> {
  try {
    await ledger.listExpiring('health', now())
    return 'reachable'
  } catch (fault) {
    report(fault)
    return fault instanceof LedgerLostError ? 'lost' : 'unreachable'
  }
}

const REFUSED = 'the catalog file cannot be served: an earlier revision of it is'

const LEDGER_AWAY = 'the record of payments cannot be reached now'
const LEDGER_LOST =
  'the record of payments was emptied or replaced; the operator compares it with the chain and opens it again with "ratecard ledger reopen"'

async function see(settings: LiveSettings): Promise<StatusSnapshot> {
  const { now, figures, networks, listings, refused } = settings
  const [days, ledger, settling, listed] = await Promise.all([
    readDays(settings),
    ledgerState(settings),
    networks().catch(() => []),
    listings().catch(() => []),
  ])
  const sources = figures()
  return { now: now(), days, ledger, sources, networks: settling, listings: listed, refused: refused() }
}

/** Without the store, the figures are those of this process. */
async function readDays({ usageStore, report }: LiveSettings): Promise<Days> {
  try {
    return await usageStore.read()
  } catch (fault) {
    report(fault)
    return usageStore.own()
  }
}

function pageReply(revision: Revision, snapshot: StatusSnapshot): Reply {
  const { catalog, facts } = revision
  return {
    status: 200,
    headers: {
      'Content-Type': PAGE_TYPE,
      'Cache-Control': 'no-cache',
      ...PAGE_HEADERS,
    },
    body: renderStatusPage(catalog, facts, statusModel(revision, snapshot)),
  }
}

function jsonReply(value: unknown): Reply {
  return {
    status: 200,
    headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' },
    body: JSON.stringify(value),
  }
}

const PATH = /^\/payments\/(pay_[A-Za-z0-9_-]{22})(?:\/([A-Za-z0-9_-]{43})(\/receipts)?)?$/

interface PaymentPath {
  /** The public id, as in the Location of a 503. */
  readonly id: string
  /** Digest of the requested answer; undefined for the state. */
  readonly digest: string | undefined
  /** What is asked for with the digest, unless it is the answer. */
  readonly wanted?: 'receipts' | undefined
}

export function paymentPathOf(path: string): PaymentPath | undefined {
  const [, id, digest, receipts] = PATH.exec(path) ?? []
  const wanted = receipts === undefined ? undefined : 'receipts'
  return id === undefined ? undefined : { id, digest, wanted }
}

/**
 * What is known of a payment: its state for a caller that has its id, never who paid. The answer and the signed receipts
 * are for callers who know its digest, which only the buyer was told: nobody can compute it without the bytes.
 */
export async function readPayment(
  ledger: Ledger,
  { id, digest, wanted }: PaymentPath,
  receipts?: ReceiptSigner,
): Promise<Reply> {
  try {
    const record = await ledger.find(id)
    if (digest === undefined) return stateOf(id, record, ledger.now())
    return wanted === undefined
      ? await answerOf(ledger, record, digest)
      : receiptsOf(receipts, record, digest)
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    const headers = { 'Retry-After': '2' }
    return problem('ledger_unavailable', LEDGER_AWAY, { charged: 'unknown', headers })
  }
}

function stateOf(id: string, record: PaymentRecord | undefined, now: number): Reply {
  if (record === undefined) return problem('not_found', 'no payment has this id here', { charged: 'no' })
  const { state, network, receipt, refund } = record
  return jsonReply(
    compact({
      payment: id,
      state,
      charged: chargeStatus(record),
      network,
      transaction: receipt?.transaction,
      refund: refundStateOf(record, now),
      refund_transaction: refund?.kind === 'sent' ? refund.hash : undefined,
      next: nextStep(record, now),
    }),
  )
}

/** An answer that was too large for its protocol, during the redelivery period of its payment. */
async function answerOf(ledger: Ledger, record: PaymentRecord | undefined, digest: string): Promise<Reply> {
  const isKept = record?.answer?.digest === digest && isRedeliverable(record, ledger.now())
  const answer = isKept ? await readAnswer(ledger.answers, record) : undefined
  return answer === undefined
    ? problem('not_found', 'no answer of a payment is kept here', { charged: 'no' })
    : ok(answer, { 'Cache-Control': 'private, no-cache' })
}

/** As long as the record is kept, also of an answer that is not kept any more. */
function receiptsOf(
  receipts: ReceiptSigner | undefined,
  record: PaymentRecord | undefined,
  digest: string,
): Reply {
  const isKnown = record !== undefined && (record.answer?.digest ?? record.answerDigest) === digest
  const signed = isKnown && record.receipt !== undefined ? receipts?.sign(record, record.receipt) : undefined
  if (!isKnown || signed === undefined)
    return problem('not_found', 'no receipt of a payment is kept here', { charged: 'no' })
  return jsonReply({ payment: record.id, receipts: signed })
}

function nextStep(record: PaymentRecord, now: number): string {
  const { state, refund } = record
  if (refund?.kind === 'sent') return 'the money was sent back: a new payment buys'
  if (isRefundDue(record, now)) return 'the operator sends the money back: a new payment buys'
  if (state === 'sent')
    return 'the answer was delivered; it is given again to the payment that carries its token'
  if (state === 'voided') return 'nothing was charged: the same payment may be sent again until it expires'
  return 'send the same payment to the same URL again: it is charged once and answered'
}
