import type { Redis } from 'ioredis'
import * as scripts from './redis-scripts.ts'
import type { PaymentRecord } from '../payment-record.ts'
import type { SchemeState, SchemeStateChange } from '../scheme-state.ts'
import type { Change, Ledger, LeaseState } from '../ledger.ts'
import { paymentId, isUndelivered, queueOf, casToken } from '../payment-lifecycle.ts'
import { LedgerError, LedgerLostError } from '../../base/errors.ts'
import { decodeRecord, encodeRecord, FORMAT, refuseFormat } from '../record-codec.ts'
import { isReopened, newIdentity, type StoreIdentity } from '../store-identity.ts'
import { connectRedis, type RedisConnection, RedisRefusal } from './redis-connection.ts'
import { HALF, KEYS, type Script, type Stored } from './redis-scripts.ts'
import { readPieces, writePieces, type AnswerStore } from '../answers.ts'
import type { DayCounts } from '../daily-counts.ts'
import { type DailyTotal, datesBetween, readName, totalChanges, type TotalKind } from '../sales-totals.ts'
import { fitsSearch, searchName, searchNames } from '../search.ts'

export interface RedisLedgerSettings {
  /** `redis://` or `rediss://`, with credentials and the number of a database. */
  readonly url: string
  /** `unchecked`: the operator ensures `appendonly yes` and `noeviction`. */
  readonly settings: 'checked' | 'unchecked'
  /** Replicas that must confirm a change before it counts as stored. */
  readonly replicas: number
}

/**
 * The ledger of several machines, in one Redis with its append-only file. A change is one script, so that it happens as a
 * whole or not at all. Leases are measured by the clock of Redis.
 *
 * Throws `LedgerError` when Redis cannot be reached, is not set up for a ledger or holds one of another format. A
 * change that was under way when the connection was lost rejects too, and may have been made: the next change of the
 * record shows it.
 */
export async function openRedisLedger({ url, settings, replicas }: RedisLedgerSettings): Promise<Ledger> {
  const connection = await connectRedis(url, replicas)
  const { ask, change, close } = connection
  const clock = createClock(connection)
  let checkedAt = performance.now()
  let unsafe: LedgerError | undefined
  let checking: Promise<void> | undefined
  /** A check without an answer is repeated by the next payment. */
  const recheck = async (): Promise<void> => {
    await clock.synchronize()
    unsafe = settings === 'checked' ? await faultOf(checkSettings(connection)) : undefined
    checkedAt = performance.now()
  }
  const check = async (): Promise<void> => {
    if (performance.now() - checkedAt >= CHECK_MS)
      await (checking ??= recheck().finally(() => (checking = undefined)))
    if (unsafe !== undefined) throw unsafe
  }
  const store = `the ledger in Redis at ${connection.place}`
  const identify = async (): Promise<StoreIdentity> => {
    const made = newIdentity('start', clock.now())
    const found = await ask((redis) => runIn(redis, scripts.identify(made)))
    const [format, identity]: unknown[] = Array.isArray(found) ? found : []
    if (format !== String(FORMAT)) throw new LedgerError(refuseFormat(store, Number(format)))
    return String(identity)
  }
  let known: StoreIdentity
  try {
    if (settings === 'checked') await checkSettings(connection)
    await clock.synchronize()
    known = await identify()
  } catch (fault) {
    await close()
    throw fault
  }
  /** Stays until an operator has reopened the store: a restored backup has the identity, but not what came after it. */
  let lost: LedgerLostError | undefined
  /** Goes on with a store that an operator has reopened. Throws `LedgerLostError` while nobody has. */
  const checkIdentity = async (): Promise<void> => {
    const found = await ask((redis) => redis.get(KEYS.identity))
    if (lost === undefined && found === known) return
    if (found === null || !isReopened(known, found)) {
      const what = found === null ? 'it was emptied' : 'another one has taken its place'
      throw (lost ??= new LedgerLostError(store, `has lost its data: ${what}`))
    }
    known = found
    lost = undefined
  }
  type MakeScript = (identity: StoreIdentity) => Script
  const run = async (send: RedisConnection['ask'], make: MakeScript): Promise<unknown> => {
    const attempt = (): Promise<unknown> => send((redis) => runIn(redis, make(known)))
    try {
      if (lost === undefined) return await attempt()
    } catch (fault) {
      if (!(fault instanceof RedisRefusal && fault.word === 'IDENTITY')) throw fault
    }
    await checkIdentity()
    return attempt()
  }
  const once = (make: MakeScript): Promise<unknown> => run(change, make)
  /** Acquiring or releasing a lease again as the same owner has the same result. */
  const again = (make: MakeScript): Promise<unknown> => run(ask, make)
  const find = async (id: string): Promise<PaymentRecord | undefined> => {
    const value = await ask((redis) => redis.get(KEYS.payment(id)))
    return value === null ? undefined : entryOf(value)
  }
  const found = async (ids: readonly string[]): Promise<PaymentRecord[]> => {
    if (ids.length === 0) return []
    const values = await ask((redis) => redis.mget(ids.map(KEYS.payment)))
    return values.flatMap((value) => (value === null ? [] : [entryOf(value)]))
  }
  const commit = async (
    changes: readonly Change[],
    states: readonly SchemeStateChange[] = [],
  ): Promise<boolean> => {
    const made = changes.map(({ previous, next }) => ({
      previous: namesOf(previous),
      next: next === undefined ? undefined : storedOf(next),
    }))
    const totals = changes.flatMap(({ previous, next }) => storedTotals(previous, next))
    return (await once((identity) => scripts.commit(identity, made, states, totals))) === 1
  }
  /** The totals of one day, in pieces, so that Redis serves others in between. */
  const readTotals = async function* (kind: TotalKind, date: string): AsyncGenerator<DailyTotal> {
    const set = (await ask((redis) => redis.hget(KEYS.totalSets, 'current'))) ?? '0'
    const sums = new Map<string, { n: bigint; h: bigint; l: bigint }>()
    let cursor = '0'
    do {
      const at = cursor
      const [next, fields] = await ask((redis) =>
        redis.hscan(KEYS.totals(set, kind, date), at, 'COUNT', SCANNED_AT_ONCE),
      )
      for (let place = 0; place < fields.length; place += 2) {
        const field = fields[place] ?? ''
        const name = field.slice(0, -2)
        const sum = sums.get(name) ?? { n: 0n, h: 0n, l: 0n }
        sums.set(name, { ...sum, [field.slice(-1)]: BigInt(fields[place + 1] ?? 0) })
      }
      cursor = next
    } while (cursor !== '0')
    for (const [name, { n, h, l }] of sums)
      yield { date, of: readName(kind, name), payments: Number(n), amount: h * HALF + l }
  }
  const rebuildTotals = async (): Promise<number> => {
    const begin = async (): Promise<number> => Number(await again(scripts.beginTotals))
    let [records, from] = [0, await begin()]
    for (;;) {
      const start = `[${timeOf(from + 1)}`
      const first = await ask((redis) => redis.zrangebylex(KEYS.ages, start, '+', 'LIMIT', 0, PAGE))
      const last = first.at(-1)
      if (last === undefined) break
      // All records of one time are counted together.
      const until = Number(last.slice(0, last.indexOf(':')))
      const span = [start, `(${timeOf(until + 1)}`] as const
      const ids = (await ask((redis) => redis.zrangebylex(KEYS.ages, ...span))).map(idOf)
      const page = await found(ids)
      const totals = page.flatMap((record) => totalChanges(undefined, record))
      const place = { from, until, span }
      const counted = await once((identity) =>
        scripts.countTotals(identity, page.map(namesOf), place, totals),
      )
      if (counted === 1) [records, from] = [records + page.length, until]
      else from = await begin()
    }
    const current = await again((identity) => scripts.finishTotals(identity, from))
    await deleteEarlierTotals(Number(current))
    return records
  }
  const deleteEarlierTotals = async (current: number): Promise<void> => {
    const prefix = `${KEYS.totalSets}:`
    let cursor = '0'
    do {
      const at = cursor
      const [next, keys] = await ask((redis) =>
        redis.scan(at, 'MATCH', `${prefix}*`, 'COUNT', SCANNED_AT_ONCE),
      )
      const old = keys.filter((key) => Number(key.slice(prefix.length).split(':')[0]) < current)
      if (old.length > 0) await ask((redis) => redis.unlink(old))
      cursor = next
    } while (cursor !== '0')
  }

  return {
    name: 'redis',
    answers: openRedisAnswers(connection),
    now: clock.now,
    check: async () => {
      await check()
      await checkIdentity()
    },
    get: (key) => find(paymentId(key)),
    find,
    insert: async (record) => {
      await check()
      const standing = await once((identity) =>
        scripts.insert(identity, storedOf(record), storedTotals(undefined, record)),
      )
      return typeof standing === 'string' ? entryOf(standing) : undefined
    },
    states: {
      get: async (name) => stateOf(name, await ask((redis) => redis.hget(KEYS.states, name))),
      list: async function* (prefix) {
        const pattern = `${prefix.replace(/[*?[\]\\]/g, '\\$&')}*`
        // A scan may return a name again while others are added or removed.
        const names = new Set<string>()
        let cursor = '0'
        do {
          const at = cursor
          const [next, found] = await ask((redis) =>
            redis.hscan(KEYS.states, at, 'MATCH', pattern, 'COUNT', 1_000),
          )
          for (let place = 0; place < found.length; place += 2) {
            const name = found[place] ?? ''
            if (names.has(name)) continue
            names.add(name)
            yield stateOf(name, found[place + 1] ?? null)
          }
          cursor = next
        } while (cursor !== '0')
      },
    },
    commit,
    replace: (previous, next) => commit([{ previous, next }]),
    remove: (record) => commit([{ previous: record, next: undefined }]),
    records: async function* () {
      let last = '-'
      for (;;) {
        const after = last
        const ages = await ask((redis) => redis.zrangebylex(KEYS.ages, after, '+', 'LIMIT', 0, PAGE))
        if (ages.length === 0) return
        yield* await found(ages.map(idOf))
        last = `(${ages.at(-1)}`
      }
    },
    search: async (term, limit, before) => {
      const name = term === undefined ? '' : `${searchName(term)}:`
      const newest = before === undefined ? `(${name}~` : `(${name}${timeOf(before.createdAt)}:${before.id}`
      const key = term === undefined ? KEYS.ages : KEYS.found
      const oldest = term === undefined ? '-' : `[${name}`
      const ids = (await ask((redis) => redis.zrevrangebylex(key, newest, oldest, 'LIMIT', 0, limit))).map(
        idOf,
      )
      return (await found(ids)).filter((record) => fitsSearch(record, term))
    },
    totals: {
      read: async function* (kind, from, to) {
        for (const date of datesBetween(from, to)) yield* readTotals(kind, date)
      },
      rebuild: rebuildTotals,
    },
    counts: {
      add: async (date, counts) => {
        await once((identity) => scripts.addCounts(identity, date, counts))
      },
      read: (from, to) =>
        Promise.all(
          datesBetween(from, to).map(async (date): Promise<DayCounts> => {
            const fields = await ask((redis) => redis.hgetall(KEYS.counts(date)))
            return {
              date,
              counts: new Map(Object.entries(fields).map(([field, count]) => [field, Number(count)])),
            }
          }),
        ),
    },
    due: async (queue, now, limit) => {
      const ids = await ask((redis) => redis.zrangebyscore(KEYS.dues(queue), '-inf', now, 'LIMIT', 0, limit))
      // Another process may have processed one of them since.
      return (await found(ids)).filter(
        (record) => record.due !== undefined && record.due <= now && queueOf(record) === queue,
      )
    },
    undelivered: async (buyer, since, limit) => {
      const [oldest, newest] = [`[${buyer}:${timeOf(since)}`, `[${buyer}:~`]
      return found(
        (await ask((redis) => redis.zrevrangebylex(KEYS.undelivered, newest, oldest, 'LIMIT', 0, limit))).map(
          idOf,
        ),
      )
    },
    addExpiring: async (name, fact, until) => {
      await check()
      return Number(await again((identity) => scripts.addExpiring(identity, name, fact, until)))
    },
    addWithinLimit: async (name, amount, limit, now) => {
      await check()
      const fits = await again((identity) => scripts.addWithinLimit(identity, name, amount, limit, now))
      return fits === null ? undefined : Number(fits)
    },
    listExpiring: async (name, now) => {
      await check()
      const facts = await again((identity) => scripts.listExpiring(identity, name, now))
      return Array.isArray(facts) ? facts.map(String) : []
    },
    lease: async (name, owner, now, until) => {
      const held = await again((identity) => scripts.lease(identity, name, owner, until - now))
      if (!Array.isArray(held)) return undefined
      const [fence, left]: unknown[] = held
      return { name, owner, fencingToken: Number(fence), leaseState: leftOf(String(left)) }
    },
    release: async ({ name, fencingToken: fence }, left) => {
      const json = left === undefined ? '' : JSON.stringify(left)
      await again((identity) => scripts.release(identity, name, fence, json))
    },
    reopen: async () => {
      const reopened = newIdentity('operator', clock.now())
      await change((redis) => runIn(redis, scripts.reidentify(reopened)))
      known = reopened
      lost = undefined
    },
    close,
  }
}

/** Records per request while all are listed: their answers together must fit into memory. */
const PAGE = 32

/** Fields or keys of one step of a scan. */
const SCANNED_AT_ONCE = 1_000

function runIn(redis: Redis, { lua, keys, values }: Script): Promise<unknown> {
  return redis.eval(lua, keys.length, ...keys, ...values)
}

/** The keys under which a record is found. */
function namesOf(record: PaymentRecord): Pick<Stored, 'id' | 'token' | 'age' | 'undelivered' | 'found'> {
  const { id, buyerKey: buyer, createdAt } = record
  const age = `${timeOf(createdAt)}:${id}`
  return {
    id,
    token: casToken(record),
    age,
    undelivered: isUndelivered(record) ? `${buyer}:${age}` : '',
    found: searchNames(record)
      .map((name) => `${name}:${age}`)
      .join('\n'),
  }
}

function storedTotals(
  previous: PaymentRecord | undefined,
  next: PaymentRecord | undefined,
): scripts.StoredTotalChange[] {
  const createdAt = (next ?? previous)?.createdAt ?? 0
  return totalChanges(previous, next).map((change) => ({ createdAt, change }))
}

function storedOf(record: PaymentRecord): Stored {
  const { due, identifier } = record
  return {
    ...namesOf(record),
    record: encodeRecord(record),
    queue: queueOf(record),
    due: due === undefined ? '' : String(due),
    identifier: identifier ?? '',
  }
}

/** The record after the lines that scripts read: compare-and-set token and identifier. */
function entryOf(value: string): PaymentRecord {
  return decodeRecord(value.slice(value.indexOf('\n', value.indexOf('\n') + 1) + 1))
}

/** Interval of the checks of Redis's settings and clock during payments. */
const CHECK_MS = 60_000

/** The clock of Redis, advanced by a monotonic local clock. */
function createClock({ ask }: RedisConnection): {
  readonly now: () => number
  readonly synchronize: () => Promise<void>
} {
  let offset = 0
  return {
    now: () => Math.round(performance.now() + offset),
    synchronize: async () => {
      const before = performance.now()
      const [seconds, micros] = await ask((redis) => redis.time())
      offset = Number(seconds) * 1000 + Number(micros) / 1000 - (before + performance.now()) / 2
    },
  }
}

/** A stored state is its version, a line feed and its text. */
function stateOf(name: string, stored: string | null): SchemeState {
  if (stored === null) return { name, text: '', version: 0 }
  const end = stored.indexOf('\n')
  return { name, version: Number(stored.slice(0, end)), text: stored.slice(end + 1) }
}

async function faultOf(check: Promise<void>): Promise<LedgerError | undefined> {
  try {
    await check
    return undefined
  } catch (fault) {
    if (fault instanceof LedgerError) return fault
    throw fault
  }
}

/** Texts that sort like their times. */
function timeOf(time: number): string {
  return String(time).padStart(String(Number.MAX_SAFE_INTEGER).length, '0')
}

function idOf(member: string): string {
  return member.slice(member.lastIndexOf(':') + 1)
}

function leftOf(json: string): LeaseState | undefined {
  if (json === '') return undefined
  const left: LeaseState = JSON.parse(json)
  return left
}

/** Small enough that no command blocks Redis. */
const PIECE_BYTES = 256 * 1024

/** Answers as keys of one piece each, which expire in Redis. */
function openRedisAnswers({ ask }: Pick<RedisConnection, 'ask'>): AnswerStore {
  const drop = async (id: string, attempt: number, pieces: number): Promise<void> => {
    const keys = Array.from({ length: pieces }, (_, place) => KEYS.answer(id, attempt, place))
    if (keys.length > 0) await ask((redis) => redis.unlink(keys))
  }
  return {
    write: (answer, body) => {
      const { id, attempt, expiresAt } = answer
      let pieces = 0
      return writePieces(answer, body, {
        pieceBytes: PIECE_BYTES,
        append: async (piece, place) => {
          pieces = place + 1
          const key = KEYS.answer(id, attempt, place)
          await ask((redis) => redis.set(key, Buffer.from(piece), 'PXAT', Math.round(expiresAt)))
        },
        finish: async () => undefined,
        abandon: () => drop(id, attempt, pieces),
      })
    },
    read: (id, reference) =>
      readPieces(
        id,
        reference,
        PIECE_BYTES,
        async (place) =>
          (await ask((redis) => redis.getBuffer(KEYS.answer(id, reference.attempt, place)))) ?? undefined,
      ),
    delete: (id, { attempt, size }) => drop(id, attempt, Math.ceil(size / PIECE_BYTES)),
    // Redis deletes expired keys itself.
    sweep: async () => 0,
  }
}

/** Required settings of Redis, with the consequence for payments otherwise. */
const NEEDED = {
  appendonly: { value: 'yes', otherwise: 'a restart loses payments' },
  'maxmemory-policy': { value: 'noeviction', otherwise: 'payments are dropped when memory runs out' },
} as const

/** Throws `LedgerError` when a setting is wrong or cannot be read. */
async function checkSettings({ ask, place }: RedisConnection): Promise<void> {
  const problems: string[] = []
  for (const [name, { value, otherwise }] of Object.entries(NEEDED)) {
    const found = await ask((redis) => redis.config('GET', name)).catch((fault: unknown) => {
      if (fault instanceof RedisRefusal) return undefined
      throw fault
    })
    const setting = Array.isArray(found) ? found[1] : undefined
    if (typeof setting !== 'string') throw new LedgerError(hidden(place))
    if (setting !== value)
      problems.push(`${name} is ${setting}: ${otherwise}; redis-cli CONFIG SET ${name} ${value}`)
  }
  if (problems.length > 0)
    throw new LedgerError(
      `Redis at ${place} is not safe for a ledger: ${problems.join(', ')}, then CONFIG REWRITE`,
    )
}

function hidden(place: string): string {
  const needed = Object.entries(NEEDED).map(([name, { value }]) => `${name} ${value}`)
  return `Redis at ${place} does not let its settings be read (CONFIG GET): see to it that it has ${needed.join(' and ')}, then set LEDGER_UNSAFE=1`
}
