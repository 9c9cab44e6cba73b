import { createHash } from 'node:crypto'
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
 * Who looks after a payment when its time has come: `money` where the chain or a handler has to be asked, `cleanup` where
 * something is only to be deleted, which is done in batches.
 */
export type Queue = 'money' | 'cleanup'

/** A block later than the end of a payment has to be there before anybody can say that it was never used. */
const AFTER_END_MS = 30_000

/** Longest time for which an unpaid record is kept, however late the signed payment expires. */
const LONGEST_UNPAID_MS = 3_600_000

const FIRST_CHECK_MS = 5_000
const LONGEST_WAIT_MS = 300_000

/** When a signed payment stops being waited for: payers choose `validBefore`, and some choose the year 9999. */
export function payableUntil({
  createdAt,
  validBefore,
}: Pick<PaymentRecord, 'createdAt' | 'validBefore'>): number {
  return Math.min(validBefore, createdAt + LONGEST_UNPAID_MS)
}

/** How long an owner that has died keeps others waiting. */
export const LEASE_MS = 10_000
/** A lease that ends later than one that begins now, and this, was written by a clock that was wrong. */
const CLOCK_TOLERANCE_MS = 2_000

export function isLeased({ leaseUntil }: PaymentRecord, now: number): boolean {
  return leaseUntil > now && leaseUntil <= now + LEASE_MS + CLOCK_TOLERANCE_MS
}

/** When somebody has to look after an entry, by what it is; undefined: never again. */
export function nextCheckAt(entry: Omit<PaymentRecord, 'due'>): number | undefined {
  const { state, receipt, pendingWrite, leaseUntil, updatedAt } = entry
  if (receipt !== undefined || state === 'settled' || state === 'sent') return afterSettlement(entry)
  switch (state) {
    case 'reserved':
    case 'settling':
      return leaseUntil
    case 'fulfilled': {
      // The work is done and nobody has asked for the money yet: the payment may come again until its end.
      const end = payableUntil(entry) + AFTER_END_MS
      return updatedAt < end ? Math.max(leaseUntil, end) : updatedAt + backoff(entry)
    }
    case 'voided':
      if (pendingWrite !== undefined) return nextAttempt(entry)
      return Math.max(leaseUntil, payableUntil(entry) + AFTER_END_MS)
    case 'unknown':
      return updatedAt + backoff(entry)
  }
}

/** Less and less often: what fails now may fail for long. */
function backoff({ attempts }: Pick<PaymentRecord, 'attempts'>): number {
  return Math.min(FIRST_CHECK_MS * 2 ** Math.min(attempts, 10), LONGEST_WAIT_MS)
}

/** The first attempt is due at the end of the lease, in case its process has died. */
function nextAttempt(entry: Pick<PaymentRecord, 'leaseUntil' | 'updatedAt' | 'attempts'>): number {
  const { leaseUntil, updatedAt, attempts } = entry
  return attempts <= 1 ? leaseUntil : Math.max(leaseUntil, updatedAt + backoff(entry))
}

function afterSettlement(entry: Omit<PaymentRecord, 'due'>): number | undefined {
  const { answer, pendingWrite, leaseUntil, settledAt, redeliver } = entry
  if (pendingWrite !== undefined) return nextAttempt(entry)
  const times: number[] = []
  if (answer !== undefined || redeliver > 0) times.push((settledAt ?? 0) + redeliver)
  if (paymentOrderOf(entry.dispatch) !== undefined) times.push(payableUntil(entry) + AFTER_END_MS)
  return times.length === 0 ? undefined : Math.max(leaseUntil, Math.min(...times))
}

export function queueOf({
  state,
  receipt,
  pendingWrite,
}: Pick<PaymentRecord, 'state' | 'receipt' | 'pendingWrite'>): Queue {
  if (pendingWrite !== undefined) return 'money'
  const over = state === 'reserved' || state === 'voided' || state === 'settled' || state === 'sent'
  return over || receipt !== undefined ? 'cleanup' : 'money'
}

/** Worked for, paid for, or perhaps, and not known to have arrived. */
export function isUndelivered({ state, receipt, redeliver }: PaymentRecord): boolean {
  if (receipt !== undefined) return state !== 'sent' && redeliver > 0
  return state === 'fulfilled' || state === 'settling' || state === 'unknown'
}

/** Charged before the work, and the work has not succeeded: stays so until it is refunded. */
export function isOwed({ flow, state, refund }: Pick<PaymentRecord, 'flow' | 'state' | 'refund'>): boolean {
  return flow === 'upfront' && state === 'settled' && refund?.kind !== 'sent'
}

/** Nothing but a refund settles it: the work fails whenever it is run, or the time to run it again is over. */
export function isRefundDue(entry: PaymentRecord, now: number): boolean {
  const { receipt, settledAt = 0, redeliver, refund } = entry
  if (receipt === undefined || refund?.kind === 'sent') return false
  return refund !== undefined || (isOwed(entry) && settledAt + redeliver <= now)
}

/** What an entry says of the money: a receipt is the proof, and without one only an order that was sent leaves a doubt. */
export function chargeStatus({ state, receipt }: Pick<PaymentRecord, 'state' | 'receipt'>): Charged {
  if (receipt !== undefined) return 'yes'
  return state === 'settling' || state === 'unknown' ? 'unknown' : 'no'
}

/** What would move the money if it were sent again: a signed transaction, or a facilitator's request. */
export function paymentOrderOf(dispatch: SettlementAttempt | undefined): string | undefined {
  return dispatch?.kind === 'facilitator' ? dispatch.request : dispatch?.raw
}

export function withPaymentOrder(dispatch: SettlementAttempt, order: string): SettlementAttempt {
  return dispatch.kind === 'facilitator' ? { ...dispatch, request: order } : { ...dispatch, raw: order }
}

/** Erases what works as a payment order. */
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

/** Changes when stored records change their shape: another format is refused, never misread. */
export const FORMAT = 4

/** For the operator: `store` says what has the format (`the ledger in …`), `found` is what is written there. */
export function refuseFormat(store: string, found: unknown): string {
  const format =
    typeof found === 'number' && Number.isSafeInteger(found) ? `format ${found}` : 'an unknown format'
  return `${store} has ${format}, this version works with format ${FORMAT}: start the version that has written it, or move the store aside and start with an empty one`
}

/**
 * What a compare-and-set compares. The version alone is not enough: it begins anew when an entry is removed and the
 * payment comes again, and a process that had stopped in the meantime would write over somebody else's entry.
 */
export function casToken({ version, createdAt, owner }: PaymentRecord): string {
  return `${version}:${createdAt}:${owner}`
}

/** In this order, so that names need not be stored with every record. */
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
] as const satisfies readonly (keyof PaymentRecord)[]
const RECEIPT = ['transaction', 'network', 'payer', 'amount'] as const satisfies readonly (keyof Receipt)[]
const DISPATCH = ['kind', 'hash', 'signer', 'nonce', 'url', 'raw', 'request'] as const satisfies readonly (
  keyof OwnTransaction | keyof FacilitatorRequest
)[]
const ANSWER = [
  'digest',
  'size',
  'attempt',
  'kind',
  'mediaType',
  'headers',
] as const satisfies readonly (keyof AnswerReference)[]
const REFUND = ['kind', 'hash', 'raw', 'nonce', 'reason'] as const
const JSON_ANSWER = { kind: 'json', mediaType: 'application/json' } as const

/** A record as it is stored: lists in the place of objects, and without what follows from other members. */
interface StoredRecord extends Omit<
  PaymentRecord,
  'id' | 'key' | 'buyerKey' | 'receipt' | 'dispatch' | 'answer' | 'refund'
> {
  /** In a list: only what follows the start that x402 gives it. */
  readonly key: string | readonly [string]
  readonly buyerKey?: string
  readonly receipt?: readonly unknown[]
  readonly dispatch?: readonly unknown[]
  readonly answer?: readonly unknown[]
  readonly refund?: readonly unknown[]
}

/** A record as a list. What follows from other members is left out. */
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
      receipt: receipt && toList(RECEIPT, without(receipt, { network, payer, amount })),
      dispatch: dispatch && toList(DISPATCH, without(dispatch, { hash: receipt?.transaction })),
      answer: answer && toList(ANSWER, without(answer, JSON_ANSWER)),
      refund: refund && toList(REFUND, { ...refund }),
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

/** What keys of x402 begin with. */
function keyStart(record: Pick<PaymentRecord, 'protocol' | 'network' | 'asset' | 'payer'>): string {
  const { protocol, network, asset, payer } = record
  return `${protocol}:${network}:${asset}:${payer}:`.toLowerCase()
}

type Times = Pick<PaymentRecord, 'validBefore' | 'leaseUntil' | 'due' | 'settledAt' | 'updatedAt'>

/** They are stored as milliseconds after `createdAt`. */
function shiftTimes(entry: Times, by: number): Times {
  const { validBefore, leaseUntil, due, settledAt, updatedAt } = entry
  return {
    validBefore: validBefore + by,
    leaseUntil: leaseUntil + by,
    due: due === undefined ? undefined : due + by,
    updatedAt: updatedAt + by,
    ...(settledAt !== undefined && { settledAt: settledAt + by }),
  }
}

function toList(names: readonly string[], members: Readonly<Record<string, unknown>>): unknown[] {
  const list = names.map((name) => pack(members[name]))
  return list.slice(0, list.findLastIndex((member) => member !== undefined) + 1)
}

/** `T` is what `toList` was given: the format number of the store vouches for it. */
function fromList<T extends object>(
  names: readonly string[],
  list: readonly unknown[],
  known: object = {},
): T {
  const members = names.map((name, place) => {
    const member = unpack(list[place] ?? undefined)
    return member === undefined ? {} : { [name]: member }
  })
  return Object.assign({}, known, ...members)
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

/** Leaves out members that are the same there. */
function without<T extends object>(value: T, known: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(Object.entries(value).filter(([name, member]) => member !== known[name]))
}

/** Public name of a payment: says nothing about payer or nonce. */
export function paymentId(key: string): string {
  return `pay_${createHash('sha256').update(key).digest('base64url').slice(0, 22)}`
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

/** Names who buys what: the same payer, operation and arguments give the same name. */
export function buyerKeyOf(payer: string, operation: string, digest: string): string {
  return nameOf(['buyerKey', payer.toLowerCase(), operation, digest])
}

/** Names a client's identifier among those of its payer. */
export function identifierName(payer: string, identifier: string): string {
  return nameOf(['identifier', payer.toLowerCase(), identifier])
}

function nameOf(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32)
}

/**
 * The store cannot be used, or could not store a change and has not: the message is for the operator.
 *
 * @example
 * import { LedgerError } from 'ratecard'
 *
 * process.on('unhandledRejection', (fault) => {
 *   process.exitCode = fault instanceof LedgerError ? 75 : 70
 * })
 */
export class LedgerError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LedgerError'
  }
}
