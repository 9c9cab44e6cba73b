import { setImmediate } from 'node:timers/promises'
import { readPieces, STALE_MS, writePieces, type AnswerStore } from '../../src/engine/ledger/answers.ts'
import {
  factOf,
  type Addition,
  type Change,
  type Ledger,
  type LeaseState,
} from '../../src/engine/ledger/ledger.ts'
import { casToken, isUndelivered, paymentId, queueOf } from '../../src/engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../../src/engine/ledger/payment-record.ts'
import { decodeRecord, encodeRecord } from '../../src/engine/ledger/record-codec.ts'
import {
  nameText,
  totalChanges,
  TOTALS_AT_ONCE,
  type DailyTotal,
} from '../../src/engine/ledger/sales-totals.ts'
import { fitsSearch } from '../../src/engine/ledger/search-term.ts'
import type { SchemeStateChange } from '../../src/engine/ledger/scheme-state.ts'

interface Held {
  readonly owner: string
  readonly until: number
  /** Milliseconds. */
  readonly length: number
  readonly fence: number
  readonly left: LeaseState | undefined
}

interface Answer {
  readonly bytes: Uint8Array
  readonly at: number
}

/** How long a change can be taken back, in milliseconds. */
const LONGEST_FAILOVER_MS = 2_000

interface Undo {
  readonly at: number
  /** Of a record, or the name of a state. */
  readonly of: string
  readonly undo: () => void
}

/** What a store holds, shared by all processes. */
export class StoredData {
  #undos: Undo[] = []

  readonly records = new Map<string, PaymentRecord>()
  /** Id of the record, by identifier. */
  readonly identifiers = new Map<string, string>()
  readonly facts = new Map<string, Map<string, number>>()
  readonly leases = new Map<string, Held>()
  readonly states = new Map<string, { readonly text: string; readonly version: number }>()
  readonly answers = new Map<string, Answer>()
  readonly counts = new Map<string, Map<string, number>>()

  /** Changes a value, so that it can be taken back. */
  put<T>(at: number, map: Map<string, T>, key: string, value: T | undefined): void {
    const before = map.get(key)
    this.#undos.push({ at, of: key, undo: () => write(map, key, before) })
    if (this.#undos.length > 2_000)
      this.#undos = this.#undos.filter((each) => each.at > at - LONGEST_FAILOVER_MS)
    write(map, key, value)
  }

  /** A replica takes over that has not had the last changes; resolves to what they were made to. */
  rollBack(to: number): ReadonlySet<string> {
    const lost = this.#undos.filter(({ at }) => at > to)
    for (const { undo } of lost.toReversed()) undo()
    this.#undos = []
    return new Set(lost.map(({ of }) => of))
  }
}

function write<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}

const PIECE_BYTES = 16 * 1024

interface Made {
  readonly standing: PaymentRecord | undefined
  readonly next: PaymentRecord | undefined
}

/** A ledger whose every call takes effect at once: ports put time and faults between it and its user. */
export function openSimulatedLedger(data: StoredData, now: () => number): Ledger {
  const { records, identifiers, facts, leases, states } = data
  const put = <T>(map: Map<string, T>, key: string, value: T | undefined): void =>
    data.put(now(), map, key, value)
  const putRecord = (previous: PaymentRecord | undefined, next: PaymentRecord | undefined): void => {
    const id = (next ?? previous)?.id ?? ''
    put(records, id, next === undefined ? undefined : decodeRecord(encodeRecord(next)))
    if (previous?.identifier === next?.identifier) return
    if (previous?.identifier !== undefined) put(identifiers, previous.identifier, undefined)
    if (next?.identifier !== undefined) put(identifiers, next.identifier, next.id)
  }
  const copyOf = (record: PaymentRecord | undefined): PaymentRecord | undefined => record && { ...record }
  const standingFor = ({ id, identifier }: PaymentRecord): PaymentRecord | undefined => {
    const named = identifier === undefined ? undefined : identifiers.get(identifier)
    return records.get(id) ?? (named === undefined ? undefined : records.get(named))
  }
  const commit = async (
    changes: readonly (Change | Addition)[],
    stateChanges: readonly SchemeStateChange[] = [],
  ): Promise<boolean> => {
    const made = changes.flatMap(({ previous, next }): Made[] => {
      if (previous === undefined) return standingFor(next) === undefined ? [{ standing: previous, next }] : []
      const standing = records.get(previous.id)
      return standing !== undefined && casToken(standing) === casToken(previous) ? [{ standing, next }] : []
    })
    if (made.length < changes.length) return false
    if (stateChanges.some(({ previous }) => (states.get(previous.name)?.version ?? 0) !== previous.version))
      return false
    for (const { standing, next } of made) putRecord(standing, next)
    for (const {
      previous: { name, version },
      next,
    } of stateChanges)
      put(states, name, next === undefined ? undefined : { text: next, version: version + 1 })
    return true
  }
  const oldestFirst = (): PaymentRecord[] =>
    [...records.values()].toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
  const factsUnder = (name: string): Map<string, number> => {
    const known = facts.get(name) ?? new Map<string, number>()
    facts.set(name, known)
    return known
  }
  const unexpired = (name: string, at: number): [string, number][] =>
    [...factsUnder(name)].filter(([, until]) => until > at)
  return {
    name: 'simulated',
    answers: openAnswers(data, now),
    now,
    check: async () => undefined,
    get: async (key) => copyOf(records.get(paymentId(key))),
    find: async (id) => copyOf(records.get(id)),
    insert: async (record) => {
      const standing = standingFor(record)
      if (standing === undefined) putRecord(undefined, record)
      return copyOf(standing)
    },
    states: {
      get: async (name) => ({ name, ...(states.get(name) ?? { text: '', version: 0 }) }),
      list: async function* (prefix) {
        for (const [name, state] of Array.from(states)) if (name.startsWith(prefix)) yield { name, ...state }
      },
    },
    commit,
    replace: (previous, next) => commit([{ previous, next }]),
    replaceSoon: (previous, next) => commit([{ previous, next }]),
    remove: (record) => commit([{ previous: record, next: undefined }]),
    records: async function* () {
      for (const { id } of oldestFirst()) {
        const record = records.get(id)
        if (record !== undefined) yield { ...record }
      }
    },
    search: async (term, limit, before) =>
      oldestFirst()
        .toReversed()
        .filter((record) => fitsSearch(record, term))
        .filter(
          ({ createdAt, id }) =>
            before === undefined ||
            createdAt < before.createdAt ||
            (createdAt === before.createdAt && id < before.id),
        )
        .slice(0, limit)
        .map((each) => ({ ...each })),
    totals: {
      read: async function* (kind, from, to) {
        const totals = new Map<string, DailyTotal>()
        for (const record of oldestFirst())
          for (const { date, of, payments, amount } of totalChanges(undefined, record)) {
            if (of.kind !== kind || date < from || date > to) continue
            const name = `${date} ${nameText(of)}`
            const before = totals.get(name) ?? { payments: 0, amount: 0n }
            totals.set(name, {
              date,
              of,
              payments: before.payments + payments,
              amount: before.amount + amount,
            })
          }
        const found = [...totals.values()]
        for (let first = 0; first < found.length; first += TOTALS_AT_ONCE) {
          yield found.slice(first, first + TOTALS_AT_ONCE)
          await setImmediate()
        }
      },
      rebuild: async () => records.size,
    },
    counts: {
      add: async (date, added) => {
        const day = data.counts.get(date) ?? new Map<string, number>()
        put(data.counts, date, day)
        for (const [name, count] of added) put(day, name, (day.get(name) ?? 0) + count)
      },
      read: async (from, to) =>
        Array.from(data.counts, ([date, counts]) => ({ date, counts })).filter(
          ({ date }) => date >= from && date <= to,
        ),
    },
    due: async (queue, at, limit) => {
      const found: PaymentRecord[] = []
      for (const record of records.values())
        if (record.due !== undefined && record.due <= at && queueOf(record) === queue) found.push(record)
      return found
        .toSorted((a, b) => (a.due ?? 0) - (b.due ?? 0))
        .slice(0, limit)
        .map((each) => ({ ...each }))
    },
    undelivered: async (buyer, since, limit) => {
      const found: PaymentRecord[] = []
      for (const record of records.values())
        if (record.buyerKey === buyer && record.createdAt >= since && isUndelivered(record))
          found.push(record)
      return found
        .toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
        .slice(0, limit)
        .map((each) => ({ ...each }))
    },
    addExpiring: async (name, fact, until) => {
      const under = factsUnder(name)
      put(under, fact, until)
      return under.size
    },
    addWithinLimit: async (name, amount, { count, sum }, at) => {
      const fact = factOf(amount)
      const kept = unexpired(name, at).toSorted((a, b) => a[1] - b[1])
      if (kept.some(([each]) => each === fact)) return undefined
      let total = kept.reduce((before, [each]) => before + valueOf(each), amount.value)
      let fits: number | undefined
      for (const [place, [each, until]] of kept.entries()) {
        if (kept.length - place < count && (sum === undefined || total <= sum)) break
        total -= valueOf(each)
        fits = until
      }
      if (fits === undefined) put(factsUnder(name), fact, amount.until)
      return fits
    },
    listExpiring: async (name, at) => {
      for (const [fact, until] of factsUnder(name)) if (until <= at) put(factsUnder(name), fact, undefined)
      return unexpired(name, at).map(([fact]) => fact)
    },
    lease: async (name, owner, at, until) => {
      const held = leases.get(name)
      if (held !== undefined && held.owner !== owner && held.until > at) {
        if (held.until - held.length > at) put(leases, name, { ...held, until: at + held.length })
        return undefined
      }
      const fence = held?.owner === owner ? held.fence : (held?.fence ?? 0) + 1
      const left = held?.left
      put(leases, name, { owner, until, length: until - at, fence, left })
      return { name, owner, fencingToken: fence, leaseState: left }
    },
    release: async ({ name, fencingToken: fence }, left) => {
      if (leases.get(name)?.fence === fence)
        put(leases, name, { owner: '', until: 0, length: 0, fence, left })
    },
    reopen: async () => undefined,
    close: async () => undefined,
  }
}

/** The amount in a fact, which ends with it. */
function valueOf(fact: string): bigint {
  return BigInt(fact.slice(fact.lastIndexOf(' ') + 1))
}

function openAnswers(data: StoredData, now: () => number): AnswerStore {
  const { answers } = data
  const put = (map: Map<string, Answer>, key: string, value: Answer | undefined): void =>
    data.put(now(), map, key, value)
  const nameOf = (id: string, attempt: number): string => `${id}:${attempt}`
  return {
    write: (answer, body) => {
      const pieces: Uint8Array[] = []
      return writePieces(answer, body, {
        pieceBytes: PIECE_BYTES,
        append: async (piece) => {
          pieces.push(Uint8Array.from(piece))
        },
        finish: async () => {
          const at = now()
          put(answers, nameOf(answer.id, answer.attempt), { bytes: Buffer.concat(pieces), at })
        },
        abandon: async () => undefined,
      })
    },
    read: async (id, reference) => {
      const kept = answers.get(nameOf(id, reference.attempt))
      if (kept === undefined || kept.bytes.length !== reference.size) return undefined
      return readPieces(id, reference, PIECE_BYTES, async (place) =>
        kept.bytes.subarray(place * PIECE_BYTES, (place + 1) * PIECE_BYTES),
      )
    },
    delete: async (id, { attempt }) => put(answers, nameOf(id, attempt), undefined),
    sweep: async (at, isKept) => {
      let deleted = 0
      for (const [name, answer] of Array.from(answers)) {
        const end = name.lastIndexOf(':')
        if (at - answer.at < STALE_MS || (await isKept(name.slice(0, end), Number(name.slice(end + 1)))))
          continue
        put(answers, name, undefined)
        deleted += 1
      }
      return deleted
    },
  }
}
