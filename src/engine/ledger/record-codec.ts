import { buyerKeyOf, paymentId } from './payment-lifecycle.ts'
import type {
  PaymentRecord,
  Receipt,
  OwnTransaction,
  FacilitatorRequest,
  AnswerReference,
  Dispatch,
  Refund,
} from './payment-record.ts'

/** Increased when the stored form of records changes: another format is refused, never misread. */
export const FORMAT = 7

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
  'settle',
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
  'scheme',
  'authorizedAmount',
  'failedIn',
  'resource',
  'answerDigest',
  'usage',
  'deliveredAt',
] as const satisfies readonly (keyof PaymentRecord)[]

type Keys<T> = readonly (keyof T)[]

const RECEIPT: Keys<Receipt> = ['transaction', 'network', 'payer', 'amount', 'gasCost', 'block', 'extra']

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

const ANSWER: Keys<AnswerReference> = ['digest', 'size', 'attempt', 'kind', 'mediaType', 'headers', 'status']

const REFUND = ['kind', 'hash', 'raw', 'nonce', 'reason', 'sender', 'validBefore', 'sentAt'] as const

const JSON_ANSWER = { kind: 'json', mediaType: 'application/json' } as const

/** A stored record: lists instead of objects, without derivable members. */
interface StoredRecord extends Omit<
  PaymentRecord,
  'id' | 'key' | 'buyerKey' | 'scheme' | 'authorizedAmount' | 'receipt' | 'dispatch' | 'answer' | 'refund'
> {
  /** In a list: only the part after the prefix that keys of authorizations have. */
  readonly key: string | readonly [string]
  readonly buyerKey?: string
  readonly scheme?: string
  readonly authorizedAmount?: string
  readonly receipt?: readonly unknown[]
  readonly dispatch?: readonly unknown[]
  readonly answer?: readonly unknown[]
  readonly refund?: readonly unknown[]
}

/** Encodes a record as a list without derivable members. */
export function encodeRecord(record: PaymentRecord): string {
  const { key, protocol, network, payer, amount, operation, digest, buyerKey } = record
  const { receipt, dispatch, answer, refund } = record
  const start = keyStart(record)
  return JSON.stringify(
    toList(
      FIELDS,
      {
        ...record,
        ...shiftTimes(record, -record.createdAt),
        key: key.startsWith(start) ? [pack(key.slice(start.length))] : key,
        buyerKey: buyerKey === buyerKeyOf(payer, operation, digest) ? undefined : buyerKey,
        receipt: receipt && toList(RECEIPT, receipt, { network, payer, amount }),
        dispatch: dispatch && toList(DISPATCH, dispatch, { hash: receipt?.transaction }),
        answer: answer && toList(ANSWER, answer, JSON_ANSWER),
        refund: refund && toList(REFUND, refund),
      },
      { scheme: USUAL_SCHEME[protocol], authorizedAmount: amount },
    ),
  )
}

export function decodeRecord(text: string): PaymentRecord {
  const stored = fromList<StoredRecord>(FIELDS, JSON.parse(text))
  const {
    key,
    protocol,
    network,
    payer,
    amount,
    operation,
    digest,
    buyerKey,
    scheme = USUAL_SCHEME[protocol] ?? '',
    authorizedAmount = amount,
    receipt,
    dispatch,
    answer,
    refund,
    ...rest
  } = stored
  const wholeKey = typeof key === 'string' ? key : keyStart({ ...stored, scheme }) + String(unpack(key[0]))
  const hash = receipt && { hash: unpack(receipt[0]) }
  return {
    ...rest,
    protocol,
    scheme,
    network,
    payer,
    authorizedAmount,
    amount,
    operation,
    digest,
    ...shiftTimes(stored, stored.createdAt),
    id: paymentId(wholeKey),
    key: wholeKey,
    buyerKey: buyerKey ?? buyerKeyOf(payer, operation, digest),
    ...(receipt && { receipt: fromList<Receipt>(RECEIPT, receipt, { network, payer, amount }) }),
    ...(dispatch && {
      dispatch: fromList<Dispatch>(DISPATCH, dispatch, hasHash(dispatch) ? hash : {}),
    }),
    ...(answer && { answer: fromList<AnswerReference>(ANSWER, answer, JSON_ANSWER) }),
    ...(refund && { refund: fromList<Refund>(REFUND, refund) }),
  }
}

/** Transactions have one, which is that of the receipt where there is one. */
function hasHash([kind]: readonly unknown[]): boolean {
  return kind === 'own' || kind === 'payer'
}

/** The scheme of most payments of a protocol, which is not stored. */
const USUAL_SCHEME: Readonly<Record<string, string>> = { x402: 'exact', mpp: 'charge' }

/** Prefix of the keys of authorizations. */
function keyStart(
  record: Pick<PaymentRecord, 'protocol' | 'scheme' | 'network' | 'asset' | 'payer'>,
): string {
  const { protocol, scheme, network, asset, payer } = record
  return `${protocol}:${scheme}:${network}:${asset}:${payer}:`
}

type Times = Pick<
  PaymentRecord,
  'validBefore' | 'leaseUntil' | 'due' | 'settledAt' | 'deliveredAt' | 'lookAt' | 'updatedAt'
>

/** Times are stored as milliseconds after `createdAt`. */
function shiftTimes(record: Times, by: number): Times {
  const { validBefore, leaseUntil, due, settledAt, deliveredAt, lookAt, updatedAt } = record
  return {
    validBefore: validBefore + by,
    leaseUntil: leaseUntil + by,
    due: due === undefined ? undefined : due + by,
    updatedAt: updatedAt + by,
    ...(settledAt !== undefined && { settledAt: settledAt + by }),
    ...(deliveredAt !== undefined && { deliveredAt: deliveredAt + by }),
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
