import type { Addition, Change, LeaseState, Ledger } from '../ledger.ts'
import { paymentId, queueOf } from '../payment-lifecycle.ts'
import type { PaymentRecord } from '../payment-record.ts'
import type { SchemeStateChange } from '../scheme-state.ts'
import { fitsSearch, searchName } from '../search-term.ts'
import { openRedisAnswers } from './redis-answers.ts'
import { openRedisCounts } from './redis-counts.ts'
import {
  entryOf,
  idOf,
  namesOf,
  nothingBefore,
  readRecords,
  storedOf,
  storedTotals,
  timeOf,
} from './redis-record.ts'
import * as scripts from './redis-scripts.ts'
import { KEYS } from './redis-scripts.ts'
import { openRedisStates } from './redis-states.ts'
import { openRedisStore, PAGE, type RedisLedgerSettings } from './redis-store.ts'
import { openRedisTotals } from './redis-totals.ts'

/**
 * The ledger of several machines, in one Redis with its append-only file. A change is one script, so that it happens as a
 * whole or not at all. Leases are measured by the clock of Redis.
 *
 * Throws `LedgerError` when Redis cannot be reached, is not set up for a ledger or holds one of another format. A
 * change that was under way when the connection was lost rejects too, and may have been made: the next change of the
 * record shows it.
 */
export async function openRedisLedger(settings: RedisLedgerSettings): Promise<Ledger> {
  const store = await openRedisStore(settings)
  const { ask, check, once, again } = store
  const find = async (id: string): Promise<PaymentRecord | undefined> => {
    const value = await ask((redis) => redis.get(KEYS.payment(id)))
    return value === null ? undefined : entryOf(value)
  }
  const found = (ids: readonly string[]): Promise<PaymentRecord[]> => readRecords(store, ids)
  const commit = async (
    changes: readonly (Change | Addition)[],
    states: readonly SchemeStateChange[] = [],
  ): Promise<boolean> => {
    if (changes.some(({ previous }) => previous === undefined)) await check()
    const made = changes.map(({ previous, next }) => ({
      previous: previous === undefined ? nothingBefore(next) : namesOf(previous),
      next: next === undefined ? undefined : storedOf(next),
    }))
    const totals = changes.flatMap(({ previous, next }) => storedTotals(previous, next))
    return (await once((identity) => scripts.commit(identity, made, states, totals))) === 1
  }

  return {
    name: 'redis',
    answers: openRedisAnswers(store),
    now: store.now,
    check: async () => {
      await check()
      await store.checkIdentity()
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
    states: openRedisStates(store),
    commit,
    replace: (previous, next) => commit([{ previous, next }]),
    replaceSoon: (previous, next) => commit([{ previous, next }]),
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
    totals: openRedisTotals(store),
    counts: openRedisCounts(store),
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
    reopen: store.reopen,
    close: store.close,
  }
}

function leftOf(json: string): LeaseState | undefined {
  if (json === '') return undefined
  const left: LeaseState = JSON.parse(json)
  return left
}
