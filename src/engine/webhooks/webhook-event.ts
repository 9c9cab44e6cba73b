import { hash } from 'node:crypto'
import type { WebhookEventType } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../base/json.ts'
import { amountOf } from '../base/networks.ts'
import { asChange, type Addition, type Change } from '../ledger/ledger.ts'
import { NEVER } from '../ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'

/** Something that an operator wants to be told. */
export interface WebhookEvent {
  readonly type: WebhookEventType
  /** Events with the same subject are sent in the order of `place`: a payment, a network, a listing. */
  readonly subject: string
  readonly place: number
  readonly data: JsonObject
}

/** An event as it waits in the ledger. */
export interface QueuedEvent {
  readonly type: WebhookEventType
  readonly data: JsonObject
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number
  /** How often it was sent without success, and when it is sent next. */
  readonly attempts: number
  readonly next: number
}

/** The body of a request, as Standard Webhooks has it. */
export function bodyOf({ type, data, at }: Pick<QueuedEvent, 'type' | 'data' | 'at'> | TestEvent): string {
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
}

/** What `ratecard webhooks test` sends. */
export interface TestEvent {
  readonly type: 'test'
  readonly data: JsonObject
  readonly at: number
}

/** What a change of a payment is to its operator. */
export function eventsOf(change: Change | Addition): readonly WebhookEvent[] {
  const { previous, next } = asChange(change)
  if (next === undefined) return []
  const events: WebhookEvent[] = []
  const { id: subject, version: place } = next
  // A payment that is settled again after a reorganization was sold before.
  const isSold = previous.receipt === undefined && next.receipt !== undefined && previous.undone === undefined
  if (isSold) events.push({ type: 'sale', subject, place, data: saleOf(next) })
  if (!isRefundDue(previous) && isRefundDue(next))
    events.push({ type: 'refund_due', subject, place, data: refundOf(next) })
  return events
}

function isRefundDue({ refund, due }: PaymentRecord): boolean {
  return refund === undefined ? due === NEVER : refund.kind === 'due'
}

function saleOf(record: PaymentRecord): JsonObject {
  const { receipt, settledAt } = record
  return compact({
    ...paymentOf(record),
    transaction: receipt?.transaction ?? '',
    settled_at: settledAt === undefined ? undefined : new Date(settledAt).toISOString(),
  })
}

function refundOf(record: PaymentRecord): JsonObject {
  const reason = record.refund?.kind === 'due' ? record.refund.reason : 'the work has not succeeded in time'
  return { ...paymentOf(record), reason }
}

function paymentOf({
  id,
  operation,
  network,
  asset,
  payer,
  receipt,
  amount,
  protocol,
  scheme,
}: PaymentRecord): JsonObject {
  const atomic = BigInt(receipt?.amount ?? amount)
  return {
    payment: id,
    operation,
    ...amountOf(atomic, network, asset),
    amount_atomic: atomic.toString(),
    network,
    protocol,
    scheme,
    payer,
  }
}

/** The identifier of a request: the same whenever the event is sent again, so that a receiver can tell copies. */
export function eventId(name: string): string {
  return `evt_${hash('sha256', name, 'base64url').slice(0, 22)}`
}
