import type { Dispatch, Entry, Receipt } from './entry.ts'
import { buyerName, paymentId } from './ledger.ts'

/** Changes when stored records change their shape: another format is refused, never misread. */
export const FORMAT = 3

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
  'identifier',
  'state',
  'owner',
  'leaseUntil',
  'due',
  'answer',
  'settledAt',
  'prepared',
  'attempts',
  'createdAt',
  'updatedAt',
  'version',
] as const satisfies readonly (keyof Entry)[]

/** What often follows from the fields, and is stored where it does not. */
interface Rest {
  readonly buyer?: string
  readonly receipt?: Partial<Receipt> & Pick<Receipt, 'transaction'>
  /** Without its hash: the receipt’s. */
  readonly dispatch?: Omit<Dispatch, 'hash'> & { readonly hash?: string }
}

export function encodeRecord(entry: Entry): string {
  const { payer, network, amount, operation, digest, buyer, receipt, dispatch } = entry
  const rest: Rest = {
    ...(buyer === buyerName(payer, operation, digest) ? {} : { buyer }),
    ...(receipt === undefined ? {} : { receipt: without(receipt, { payer, network, amount }) }),
    ...(dispatch === undefined ? {} : { dispatch: without(dispatch, { hash: receipt?.transaction }) }),
  }
  return JSON.stringify([rest, ...FIELDS.map((field) => entry[field])])
}

export function decodeRecord(text: string): Entry {
  const [{ buyer, receipt, dispatch }, ...values]: [Rest, ...unknown[]] = JSON.parse(text)
  const entry: Entry = Object.assign(
    {},
    ...FIELDS.map((field, place) => {
      const value = values[place]
      return value === null || value === undefined ? {} : { [field]: value }
    }),
  )
  const { key, payer, network, amount, operation, digest } = entry
  return Object.assign(entry, {
    id: paymentId(key),
    buyer: buyer ?? buyerName(payer, operation, digest),
    ...(receipt === undefined ? {} : { receipt: { network, payer, amount, ...receipt } }),
    ...(dispatch === undefined ? {} : { dispatch: { ...hashOf(dispatch, receipt), ...dispatch } }),
  })
}

function hashOf({ kind }: Pick<Dispatch, 'kind'>, receipt: Rest['receipt']): { readonly hash?: string } {
  return kind === 'facilitator' || receipt === undefined ? {} : { hash: receipt.transaction }
}

/** Leaves out members that are the same there. */
function without<T extends object>(value: T, known: Readonly<Record<string, unknown>>): T {
  const kept: T = Object.assign({}, value)
  for (const [name, member] of Object.entries(value))
    if (member === known[name]) Reflect.deleteProperty(kept, name)
  return kept
}
