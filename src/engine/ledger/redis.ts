import type { Redis } from 'ioredis'
import type { Entry } from './entry.ts'
import { FORMAT, refuseFormat } from './format.ts'
import { LedgerError, paymentId, type Ledger, type Left } from './ledger.ts'
import { connectRedis, type RedisConnection } from './redis-connection.ts'
import * as scripts from './redis-scripts.ts'
import { KEYS, type Script, type Stored } from './redis-scripts.ts'
import { checkSettings } from './redis-settings.ts'
import { stampOf } from './stamp.ts'

export interface RedisLedgerSettings {
  /** `redis://` or `rediss://`, with credentials and the number of a database. */
  readonly url: string
  /** `unchecked`: the operator answers for `appendonly yes` and `noeviction`. */
  readonly settings: 'checked' | 'unchecked'
}

/**
 * The ledger of several machines, in one Redis with its append-only file. A change is one script, so that it happens as a
 * whole or not at all; times come from those who ask, never from Redis.
 *
 * Throws `LedgerError` when Redis cannot be reached, is not set up for a ledger or holds one of another format. A change
 * that was under way when the connection was lost rejects too, and may have been made: the next one for the entry tells.
 */
export async function openRedisLedger({ url, settings }: RedisLedgerSettings): Promise<Ledger> {
  const connection = await connectRedis(url)
  const { ask, change, close } = connection
  try {
    if (settings === 'checked') await checkSettings(connection)
    await checkFormat(connection)
  } catch (fault) {
    await close()
    throw fault
  }
  const once = (script: Script): Promise<unknown> => change((redis) => runIn(redis, script))
  /** Of the same owner, a lease that is taken or given back once more is the same lease. */
  const again = (script: Script): Promise<unknown> => ask((redis) => runIn(redis, script))
  const find = async (id: string): Promise<Entry | undefined> => {
    const json = await ask((redis) => redis.hget(KEYS.payment(id), 'json'))
    return json === null ? undefined : entryOf(json)
  }
  const found = async (ids: readonly string[]): Promise<Entry[]> =>
    (await Promise.all(ids.map(find))).flatMap((entry) => entry ?? [])

  return {
    name: 'redis',
    get: (key) => find(paymentId(key)),
    find,
    insert: async (entry) => {
      const standing = await once(scripts.insert(storedOf(entry)))
      return typeof standing === 'string' ? entryOf(standing) : undefined
    },
    replace: async (previous, next) => (await once(scripts.replace(stampOf(previous), storedOf(next)))) === 1,
    remove: async (entry) => (await once(scripts.remove(storedOf(entry)))) === 1,
    entries: async function* () {
      let last = '-'
      for (;;) {
        const after = last
        const ages = await ask((redis) => redis.zrangebylex(KEYS.ages, after, '+', 'LIMIT', 0, PAGE))
        if (ages.length === 0) return
        yield* await found(ages.map(idOf))
        last = `(${ages.at(-1)}`
      }
    },
    due: async (now, limit) => {
      const ids = await ask((redis) => redis.zrangebyscore(KEYS.dues, '-inf', now, 'LIMIT', 0, limit))
      // Somebody may have looked after one of them since.
      return (await found(ids)).filter(({ due }) => due !== undefined && due <= now)
    },
    bought: async (buyer, since) => {
      const [oldest, newest] = [`[${buyer}:${timeOf(since)}`, `[${buyer}:~`]
      return found((await ask((redis) => redis.zrevrangebylex(KEYS.buyers, newest, oldest))).map(idOf))
    },
    remember: async (name, fact, until) => {
      await again(scripts.remember(name, fact, until))
    },
    recall: async (name, now) => {
      const facts = await again(scripts.recall(name, now))
      return Array.isArray(facts) ? facts.map(String) : []
    },
    lease: async (name, owner, now, until) => {
      const held = await again(scripts.lease(name, owner, now, until))
      if (!Array.isArray(held)) return undefined
      const [fence, left]: unknown[] = held
      return { name, owner, fence: Number(fence), left: leftOf(String(left)) }
    },
    release: async ({ name, fence }, left) => {
      await again(scripts.release(name, fence, left === undefined ? '' : JSON.stringify(left)))
    },
    close,
  }
}

/** How many entries are fetched at once while all are listed: their answers together have to fit into the memory. */
const PAGE = 32

async function checkFormat({ ask, place }: RedisConnection): Promise<void> {
  const found = Number(await ask((redis) => runIn(redis, scripts.settleFormat())))
  if (found !== FORMAT) throw new LedgerError(refuseFormat(`the ledger in Redis at ${place}`, found))
}

function runIn(redis: Redis, { lua, keys, values }: Script): Promise<unknown> {
  return redis.eval(lua, keys.length, ...keys, ...values)
}

function storedOf(entry: Entry): Stored {
  const { id, buyer, createdAt, due, identifier } = entry
  const age = `${timeOf(createdAt)}:${id}`
  return {
    id,
    stamp: stampOf(entry),
    json: JSON.stringify(entry),
    age,
    bought: `${buyer}:${age}`,
    due: due === undefined ? '' : String(due),
    identifier: identifier ?? '',
  }
}

/** Texts in the order of their times. */
function timeOf(time: number): string {
  return String(time).padStart(String(Number.MAX_SAFE_INTEGER).length, '0')
}

function idOf(member: string): string {
  return member.slice(member.lastIndexOf(':') + 1)
}

function entryOf(json: string): Entry {
  const entry: Entry = JSON.parse(json)
  return entry
}

function leftOf(json: string): Left | undefined {
  if (json === '') return undefined
  const left: Left = JSON.parse(json)
  return left
}
