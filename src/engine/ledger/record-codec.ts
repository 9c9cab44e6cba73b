import type { Entry, Receipt } from './entry.ts'
import { buyerName, paymentId } from './ledger.ts'

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
export function casToken({ version, createdAt, owner }: Entry): string {
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
  'seal',
  'amount',
  'validBefore',
  'operation',
  'digest',
  'revision',
  'token',
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
  'prepared',
  'buyer',
] as const satisfies readonly (keyof Entry)[]
/** Stored as milliseconds after `createdAt`. */
const TIMES = ['validBefore', 'leaseUntil', 'due', 'settledAt', 'updatedAt'] as const
const RECEIPT = ['transaction', 'network', 'payer', 'amount'] as const satisfies readonly (keyof Receipt)[]
const DISPATCH = ['kind', 'hash', 'signer', 'nonce', 'url', 'raw', 'request'] as const
const ANSWER = ['digest', 'size', 'attempt', 'kind', 'mediaType'] as const
const JSON_ANSWER = { kind: 'json', mediaType: 'application/json' } as const

/** A record as a list. What follows from other members is left out. */
export function encodeRecord(entry: Entry): string {
  const { key, network, payer, amount, operation, digest, buyer, receipt, dispatch, answer } = entry
  const start = keyStart(entry)
  return JSON.stringify(
    toList(FIELDS, {
      ...entry,
      ...shiftTimes(entry, -entry.createdAt),
      key: key.startsWith(start) ? [pack(key.slice(start.length))] : key,
      buyer: buyer === buyerName(payer, operation, digest) ? undefined : buyer,
      receipt: receipt && toList(RECEIPT, without(receipt, { network, payer, amount })),
      dispatch: dispatch && toList(DISPATCH, without(dispatch, { hash: receipt?.transaction })),
      answer: answer && toList(ANSWER, without(answer, JSON_ANSWER)),
    }),
  )
}

export function decodeRecord(text: string): Entry {
  const stored = fromList(FIELDS, JSON.parse(text))
  const { key, network, payer, amount, operation, digest, buyer, receipt, dispatch, answer } = stored
  const wholeKey = typeof key === 'string' ? key : keyStart(stored) + String(unpack(key[0]))
  const hash = receipt && { hash: unpack(receipt[0]) }
  return Object.assign(stored, shiftTimes(stored, stored.createdAt), {
    id: paymentId(wholeKey),
    key: wholeKey,
    buyer: buyer ?? buyerName(payer, operation, digest),
    ...(receipt && { receipt: { network, payer, amount, ...fromList(RECEIPT, receipt) } }),
    ...(dispatch && {
      dispatch: { ...(dispatch[0] === 'facilitator' ? {} : hash), ...fromList(DISPATCH, dispatch) },
    }),
    ...(answer && { answer: { ...JSON_ANSWER, ...fromList(ANSWER, answer) } }),
  })
}

/** What keys of x402 begin with. */
function keyStart({ protocol, network, asset, payer }: Entry): string {
  return `${protocol}:${network}:${asset}:${payer}:`.toLowerCase()
}

function shiftTimes(entry: Entry, by: number) {
  return Object.fromEntries(
    TIMES.flatMap((name) => (entry[name] === undefined ? [] : [[name, entry[name] + by]])),
  )
}

function toList(names: readonly string[], members: Readonly<Record<string, unknown>>): unknown[] {
  const list = names.map((name) => pack(members[name]))
  return list.slice(0, list.findLastIndex((member) => member !== undefined) + 1)
}

function fromList(names: readonly string[], list: readonly unknown[]) {
  return Object.assign(
    {},
    ...names.map((name, place) => {
      const member = unpack(list[place] ?? undefined)
      return member === undefined ? {} : { [name]: member }
    }),
  )
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
