import { hash } from 'node:crypto'
import type { Charged } from '../errors.ts'
import type {
  AnswerReference,
  FacilitatorRequest,
  OwnTransaction,
  PaymentRecord,
  Purchase,
  Receipt,
  Refund,
  SettlementAttempt,
} from './payment-record.ts'

/**
 * Who looks after a payment when its time has come: `money` where the chain or a handler has to be asked, `blocks` where
 * the block of a settled payment is not final yet, `cleanup` where something is only to be deleted. The last two are done
 * for many payments together.
 */
export type Queue = (typeof QUEUES)[number]
export const QUEUES = ['money', 'blocks', 'cleanup'] as const

/** A payment counts as unused only after a block beyond its expiry. */
const AFTER_END_MS = 30_000

/** Longest time for which an unpaid record is kept, whatever the expiry of the signed payment. */
const LONGEST_UNPAID_MS = 3_600_000

const FIRST_CHECK_MS = 5_000
const LONGEST_WAIT_MS = 300_000

/** When a signed payment is no longer awaited: payers choose `validBefore`, some the year 9999. */
export function payableUntil({
  createdAt,
  validBefore,
}: Pick<PaymentRecord, 'createdAt' | 'validBefore'>): number {
  return Math.min(validBefore, createdAt + LONGEST_UNPAID_MS)
}

/** How long a dead owner blocks others. */
export const LEASE_MS = 10_000
/** A lease that ends later than a new one by more than this was written with a wrong clock. */
const CLOCK_TOLERANCE_MS = 2_000

export function isLeased({ leaseUntil }: PaymentRecord, now: number): boolean {
  return leaseUntil > now && leaseUntil <= now + LEASE_MS + CLOCK_TOLERANCE_MS
}

/** When a record must be processed next, by its state; undefined: never again. */
export function nextCheckAt(entry: Omit<PaymentRecord, 'due'>): number | undefined {
  const { state, receipt, pendingWrite, leaseUntil, updatedAt } = entry
  if (receipt !== undefined || state === 'settled' || state === 'sent') return afterSettlement(entry)
  switch (state) {
    case 'reserved':
    case 'settling':
      return leaseUntil
    case 'fulfilled': {
      // The work is done and nothing was sent: the payment may arrive again until it expires.
      const end = payableUntil(entry) + AFTER_END_MS
      return updatedAt < end ? Math.max(leaseUntil, end) : updatedAt + backoff(entry)
    }
    case 'voided':
      if (pendingWrite !== undefined) return nextAttempt(entry)
      // Answered and not charged any more: the operator has to see it.
      if (entry.undone !== undefined) return undefined
      return Math.max(leaseUntil, payableUntil(entry) + AFTER_END_MS)
    case 'unknown':
      return updatedAt + backoff(entry)
  }
}

/** Increasing pauses: a failure may last. */
function backoff({ attempts }: Pick<PaymentRecord, 'attempts'>): number {
  return Math.min(FIRST_CHECK_MS * 2 ** Math.min(attempts, 10), LONGEST_WAIT_MS)
}

/** The first attempt is due at the end of the lease, in case its process has died. */
function nextAttempt(entry: Pick<PaymentRecord, 'leaseUntil' | 'updatedAt' | 'attempts'>): number {
  const { leaseUntil, updatedAt, attempts } = entry
  return attempts <= 1 ? leaseUntil : Math.max(leaseUntil, updatedAt + backoff(entry))
}

function afterSettlement(entry: Omit<PaymentRecord, 'due'>): number | undefined {
  const { answer, pendingWrite, leaseUntil, settledAt, lookAt, redeliver } = entry
  if (pendingWrite !== undefined) return nextAttempt(entry)
  if (lookAt !== undefined) return Math.max(leaseUntil, lookAt)
  const times: number[] = []
  if (answer !== undefined || redeliver > 0) times.push((settledAt ?? 0) + redeliver)
  if (paymentOrderOf(entry.dispatch) !== undefined) times.push(payableUntil(entry) + AFTER_END_MS)
  if (times.length > 0) return Math.max(leaseUntil, Math.min(...times))
  return isRefundDue(entry, Infinity) ? NEVER : undefined
}

/** First look at the block of a settled payment. Most reorganisations are shorter. */
const FIRST_LOOK_MS = 15_000
const LONGEST_LOOK_MS = 600_000
/** A block that could not be looked at for so long counts as final. */
const GIVEN_UP_MS = 86_400_000

/** The members of a settled payment that say when its block is looked at: none when no node has shown the block. */
export function firstLook({ block }: Receipt, now: number): Pick<PaymentRecord, 'lookAt'> {
  return block === undefined ? {} : { lookAt: now + FIRST_LOOK_MS }
}

/**
 * When to look again at a block that is not final, so that the last look comes soon after it is. `progress`: how far it
 * is, 0 to 1; undefined when it could not be looked at. Resolves to undefined when nobody is to look again.
 */
export function nextLook(
  { settledAt = 0 }: Pick<PaymentRecord, 'settledAt'>,
  progress: number | undefined,
  now: number,
): number | undefined {
  const age = now - settledAt
  if (age >= GIVEN_UP_MS) return undefined
  if (progress === undefined) return now + FIRST_LOOK_MS
  const end = settledAt + (age / progress) * 1.1
  return Math.round(Math.max(now + FIRST_LOOK_MS, Math.min(end, now + Math.min(2 * age, LONGEST_LOOK_MS))))
}

/** The record of a settled payment whose block is final. */
export function finalized({ lookAt: _lookAt, receipt, ...entry }: PaymentRecord): PaymentRecord {
  if (receipt === undefined) return entry
  const { block: _block, ...rest } = receipt
  return { ...entry, receipt: rest }
}

/** Keeps due refunds in the index, but never due: the year 2286. */
export const NEVER = 10_000_000_000_000

export function queueOf({
  state,
  receipt,
  pendingWrite,
  lookAt,
  due,
}: Pick<PaymentRecord, 'state' | 'receipt' | 'pendingWrite' | 'lookAt' | 'due'>): Queue {
  if (pendingWrite !== undefined || due === NEVER) return 'money'
  if (lookAt !== undefined) return 'blocks'
  const over = state === 'reserved' || state === 'voided' || state === 'settled' || state === 'sent'
  return over || receipt !== undefined ? 'cleanup' : 'money'
}

/** Answered or possibly charged, without a confirmed delivery. */
export function isUndelivered({ state, receipt, redeliver }: PaymentRecord): boolean {
  if (receipt !== undefined) return state !== 'sent' && redeliver > 0
  return state === 'fulfilled' || state === 'settling' || state === 'unknown'
}

/** Charged before the work, which has not succeeded; remains so until a refund. */
export function isOwed({ flow, state, refund }: Pick<PaymentRecord, 'flow' | 'state' | 'refund'>): boolean {
  return flow === 'upfront' && state === 'settled' && refund?.kind !== 'sent'
}

/** Due when the work fails at every run, or the period to run it again is over; undefined: no refund is due. */
export function refundStateOf(entry: Omit<PaymentRecord, 'due'>, now: number): Refund['kind'] | undefined {
  const { receipt, settledAt = 0, redeliver, refund } = entry
  if (receipt === undefined || refund !== undefined) return refund?.kind
  return isOwed(entry) && settledAt + redeliver <= now ? 'due' : undefined
}

/** Only a refund can resolve it. */
export function isRefundDue(entry: Omit<PaymentRecord, 'due'>, now: number): boolean {
  const state = refundStateOf(entry, now)
  return state === 'due' || state === 'sending'
}

/** What was charged: a receipt proves it, and without one only an attempt that was sent is uncertain. */
export function chargeStatus({ state, receipt }: Pick<PaymentRecord, 'state' | 'receipt'>): Charged {
  if (receipt !== undefined) return 'yes'
  return state === 'settling' || state === 'unknown' ? 'unknown' : 'no'
}

/** What could move money if sent again: a signed transaction, or a facilitator's request. */
export function paymentOrderOf(dispatch: SettlementAttempt | undefined): string | undefined {
  return dispatch?.kind === 'facilitator' ? dispatch.request : dispatch?.raw
}

export function withPaymentOrder(dispatch: SettlementAttempt, order: string): SettlementAttempt {
  return dispatch.kind === 'facilitator' ? { ...dispatch, request: order } : { ...dispatch, raw: order }
}

/** Erases what could be used as a payment order. */
export function redact(dispatch: SettlementAttempt): SettlementAttempt {
  if (dispatch.kind === 'facilitator') {
    const { request: _request, ...rest } = dispatch
    return rest
  }
  const { raw: _raw, ...rest } = dispatch
  return rest
}

/**
 * The record of a sale, once its answer is not given again any more. A buyer who shows the payment learns that it was used,
 * for which its key is enough.
 */
export function closed({ answer: _answer, redeliveryToken: _token, ...entry }: PaymentRecord): PaymentRecord {
  return {
    ...entry,
    redeliveryToken: undefined,
    authorizationHash: '',
    owner: '',
    identifier: undefined,
    redeliver: 0,
  }
}

/**
 * What a compare-and-set compares. The version alone is not enough: it starts again when an entry is removed and the
 * payment comes again, and a process that had stopped in the meantime would write over somebody else's entry.
 */
export function casToken({ version, createdAt, owner }: PaymentRecord): string {
  return `${version}:${createdAt}:${owner}`
}

/** Public id of a payment, which discloses neither payer nor nonce. */
export function paymentId(key: string): string {
  return `pay_${hash('sha256', key, 'base64url').slice(0, 22)}`
}

export function newRecord(purchase: Purchase, owner: string, now: number, leaseMs: number): PaymentRecord {
  return {
    ...purchase,
    id: paymentId(purchase.key),
    state: 'reserved',
    owner,
    leaseUntil: now + leaseMs,
    due: now + leaseMs,
    attempts: 1,
    createdAt: now,
    updatedAt: now,
    version: 1,
  }
}

/** Key for equal purchases: the same payer, operation and arguments. */
export function buyerKeyOf(payer: string, operation: string, digest: string): string {
  return nameOf(['buyerKey', payer.toLowerCase(), operation, digest])
}

/** Key of a client's identifier, which is unique for its payer. */
export function identifierName(payer: string, identifier: string): string {
  return nameOf(['identifier', payer.toLowerCase(), identifier])
}

function nameOf(parts: readonly string[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 32)
}

/** Increased when the stored form of records changes: another format is refused, never misread. */
export const FORMAT = 5

/** For the operator: `store` names the store (`the ledger in …`), `found` is its format. */
export function refuseFormat(store: string, found: unknown): string {
  const format =
    typeof found === 'number' && Number.isSafeInteger(found) ? `format ${found}` : 'an unknown format'
  return `${store} has ${format}, this version works with format ${FORMAT}: start the version that has written it, or move the store aside and start with an empty one`
}

/** The order of stored members, so that their names need not be stored. */
const FIELDS = [
  'key',
  'protocol',
  'network',
  'asset',
  'payer',
  'payee',
  'authorizationHash',
  'amount',
  'validBefore',
  'operation',
  'digest',
  'revision',
  'redeliveryToken',
  'flow',
  'redeliver',
  'state',
  'owner',
  'leaseUntil',
  'due',
  'settledAt',
  'attempts',
  'createdAt',
  'updatedAt',
  'version',
  'receipt',
  'dispatch',
  'answer',
  'identifier',
  'pendingWrite',
  'buyerKey',
  'refund',
  'runs',
  'lookAt',
  'undone',
] as const satisfies readonly (keyof PaymentRecord)[]
type Keys<T> = readonly (keyof T)[]
const RECEIPT: Keys<Receipt> = ['transaction', 'network', 'payer', 'amount', 'gasCost', 'block']
const DISPATCH: Keys<OwnTransaction & Omit<FacilitatorRequest, 'kind'>> = [
  'kind',
  'hash',
  'signer',
  'nonce',
  'url',
  'raw',
  'request',
  'members',
]
const ANSWER: Keys<AnswerReference> = ['digest', 'size', 'attempt', 'kind', 'mediaType', 'headers']
const REFUND = ['kind', 'hash', 'raw', 'nonce', 'reason', 'sender', 'validBefore'] as const
const JSON_ANSWER = { kind: 'json', mediaType: 'application/json' } as const

/** A stored record: lists instead of objects, without derivable members. */
interface StoredRecord extends Omit<
  PaymentRecord,
  'id' | 'key' | 'buyerKey' | 'receipt' | 'dispatch' | 'answer' | 'refund'
> {
  /** In a list: only the part after the prefix that x402 uses. */
  readonly key: string | readonly [string]
  readonly buyerKey?: string
  readonly receipt?: readonly unknown[]
  readonly dispatch?: readonly unknown[]
  readonly answer?: readonly unknown[]
  readonly refund?: readonly unknown[]
}

/** Encodes a record as a list without derivable members. */
export function encodeRecord(entry: PaymentRecord): string {
  const { key, network, payer, amount, operation, digest, buyerKey, receipt, dispatch, answer, refund } =
    entry
  const start = keyStart(entry)
  return JSON.stringify(
    toList(FIELDS, {
      ...entry,
      ...shiftTimes(entry, -entry.createdAt),
      key: key.startsWith(start) ? [pack(key.slice(start.length))] : key,
      buyerKey: buyerKey === buyerKeyOf(payer, operation, digest) ? undefined : buyerKey,
      receipt: receipt && toList(RECEIPT, receipt, { network, payer, amount }),
      dispatch: dispatch && toList(DISPATCH, dispatch, { hash: receipt?.transaction }),
      answer: answer && toList(ANSWER, answer, JSON_ANSWER),
      refund: refund && toList(REFUND, refund),
    }),
  )
}

export function decodeRecord(text: string): PaymentRecord {
  const stored = fromList<StoredRecord>(FIELDS, JSON.parse(text))
  const {
    key,
    network,
    payer,
    amount,
    operation,
    digest,
    buyerKey,
    receipt,
    dispatch,
    answer,
    refund,
    ...rest
  } = stored
  const wholeKey = typeof key === 'string' ? key : keyStart(stored) + String(unpack(key[0]))
  const hash = receipt && { hash: unpack(receipt[0]) }
  return {
    ...rest,
    network,
    payer,
    amount,
    operation,
    digest,
    ...shiftTimes(stored, stored.createdAt),
    id: paymentId(wholeKey),
    key: wholeKey,
    buyerKey: buyerKey ?? buyerKeyOf(payer, operation, digest),
    ...(receipt && { receipt: fromList<Receipt>(RECEIPT, receipt, { network, payer, amount }) }),
    ...(dispatch && {
      dispatch: fromList<SettlementAttempt>(DISPATCH, dispatch, dispatch[0] === 'facilitator' ? {} : hash),
    }),
    ...(answer && { answer: fromList<AnswerReference>(ANSWER, answer, JSON_ANSWER) }),
    ...(refund && { refund: fromList<Refund>(REFUND, refund) }),
  }
}

/** Prefix of x402 keys. */
function keyStart(record: Pick<PaymentRecord, 'protocol' | 'network' | 'asset' | 'payer'>): string {
  const { protocol, network, asset, payer } = record
  return `${protocol}:${network}:${asset}:${payer}:`.toLowerCase()
}

type Times = Pick<PaymentRecord, 'validBefore' | 'leaseUntil' | 'due' | 'settledAt' | 'lookAt' | 'updatedAt'>

/** Times are stored as milliseconds after `createdAt`. */
function shiftTimes(entry: Times, by: number): Times {
  const { validBefore, leaseUntil, due, settledAt, lookAt, updatedAt } = entry
  return {
    validBefore: validBefore + by,
    leaseUntil: leaseUntil + by,
    due: due === undefined ? undefined : due + by,
    updatedAt: updatedAt + by,
    ...(settledAt !== undefined && { settledAt: settledAt + by }),
    ...(lookAt !== undefined && { lookAt: lookAt + by }),
  }
}

/** Without the members that are the same in `known`. */
function toList(names: readonly string[], value: object, known: Members = {}): readonly unknown[] {
  const members: Members = { ...value }
  const list: unknown[] = []
  for (const name of names) {
    const member = members[name]
    list.push(member === known[name] ? undefined : pack(member))
  }
  while (list.length > 0 && list.at(-1) === undefined) list.pop()
  return list
}

type Members = Readonly<Record<string, unknown>>

/** `T` is what `toList` received, which the format number of the store ensures. */
function fromList<T extends object>(
  names: readonly string[],
  list: readonly unknown[],
  known: object = {},
): T {
  const members: Record<string, unknown> = {}
  for (const [place, stored] of list.entries()) {
    const name = names[place]
    if (name !== undefined && stored !== null) members[name] = unpack(stored)
  }
  return Object.assign({}, ...Array.of<object>(known, members))
}

/** Hashes as base64url after a tilde: two thirds of the length. */
function pack(member: unknown): unknown {
  if (typeof member !== 'string') return member
  if (/^0x(?:[0-9a-f]{2}){20,}$/.test(member))
    return `~${Buffer.from(member.slice(2), 'hex').toString('base64url')}`
  return member.startsWith('~') ? `~${member}` : member
}

function unpack(member: unknown): unknown {
  if (typeof member !== 'string' || !member.startsWith('~')) return member
  return member.startsWith('~~') ? member.slice(1) : `0x${Buffer.from(member, 'base64url').toString('hex')}`
}
