import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { isJsonObject } from '../base/json.ts'
import type { RedisAddress } from '../base/redis-address.ts'
import type { CacheStore, Fetched, CacheLock } from './cache.ts'

interface RedisCacheSettings {
  readonly address: RedisAddress
  readonly random: (bytes: number) => Uint8Array
  /** Takes a line for the operator: once when Redis fails, once when it is back. */
  readonly report: (line: string) => void
}

/** Longest wait for Redis; after that the source is asked instead. */
const TIMEOUT_MS = 1_000
/** Pause after a timeout, so that not every request waits for an unavailable Redis. */
const REST_MS = 2_000
/** How long the lock of a dead process blocks the others. */
const LOCK_MS = 3_000
const RENEWAL_MS = 1_000
const LOOK_MS = 50
/** Characters of one value; a larger one is fetched each time. */
const LARGEST_VALUE = 4 * 1024 * 1024

/** Takes a free lock or extends its own; returns the present holder. */
const TAKE = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]`
/** The algorithm of `RateLimiter`, by the clock of Redis. */
const SPEND = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local burst, interval = tonumber(ARGV[1]), tonumber(ARGV[2])
local whole = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + interval
local wait = whole - now - burst * interval
if wait > 0 then return wait end
redis.call('SET', KEYS[1], string.format('%d', whole), 'PX', whole - now)
return 0`
const END = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`

/**
 * Stores values for all processes that share a Redis, and locks the fetch of a key for one of them. Every call
 * rejects while Redis is unavailable, also from the start.
 */
export async function openRedisCache({ address, random, report }: RedisCacheSettings): Promise<CacheStore> {
  const { ask, close } = await connect(address, report)
  const take = (lock: string, token: string): Promise<unknown> =>
    ask((redis) => redis.eval(TAKE, 1, lock, token, LOCK_MS))

  const ours = (lock: string, token: string): CacheLock => {
    const renewal = setInterval(() => void take(lock, token).catch(() => undefined), RENEWAL_MS).unref()
    return {
      kind: 'ours',
      end: async () => {
        clearInterval(renewal)
        await ask((redis) => redis.eval(END, 1, lock, token))
      },
    }
  }
  const theirs = (lock: string, holder: unknown): CacheLock => ({
    kind: 'theirs',
    over: async () => {
      const look = (): Promise<unknown> => ask((redis) => redis.get(lock)).catch(() => undefined)
      while ((await look()) === holder) await delay(LOOK_MS)
    },
  })
  return {
    name: 'redis',
    get: async (key) => fetchedOf(await ask((redis) => redis.get(KEYS.value(key)))),
    set: async (key, fetched, keepMs) => {
      const json = JSON.stringify(fetched)
      await ask<unknown>((redis) =>
        json.length > LARGEST_VALUE
          ? redis.del(KEYS.value(key))
          : redis.set(KEYS.value(key), json, 'PX', Math.ceil(keepMs)),
      )
    },
    lock: async (key) => {
      const lock = KEYS.lock(key)
      const token = Buffer.from(random(12)).toString('base64url')
      const holder = await take(lock, token)
      return holder === token ? ours(lock, token) : theirs(lock, holder)
    },
    spend: async (client, { burst, interval }) =>
      Number(await ask((redis) => redis.eval(SPEND, 1, KEYS.rateLimit(client), burst, interval))),
    close,
  }
}

/** Key prefixes beside those of the ledger, so that one access rule for a Redis user covers both. */
const KEYS = {
  value: (key: string): string => `{ratecard}:cache:${key}`,
  rateLimit: (client: string): string => `{ratecard}:rate-limit:${client}`,
  lock: (key: string): string => `{ratecard}:lock:${key}`,
}

function fetchedOf(json: string | null): Fetched<unknown> | undefined {
  const kept: unknown = json === null ? undefined : JSON.parse(json)
  if (!isJsonObject(kept)) return undefined
  const { at, value, freshFor } = kept
  if (typeof at !== 'number') return undefined
  return typeof freshFor === 'number' ? { at, value, freshFor } : { at, value }
}

interface Connection {
  readonly ask: <T>(command: (redis: Redis) => Promise<T>) => Promise<T>
  readonly close: () => Promise<void>
}

/** Waits for the first attempt, which may fail, so that the operator learns of a wrong address at once. */
async function connect(
  { place, options }: RedisAddress,
  report: RedisCacheSettings['report'],
): Promise<Connection> {
  const { Redis } = await import('ioredis')
  const redis = new Redis({
    ...options,
    lazyConnect: true,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    disconnectTimeout: 200,
    connectionName: 'ratecard-cache',
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // The check would print warnings for users without permission for its commands.
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: (times) => Math.min(50 * times, REST_MS),
  })
  let trouble: string | undefined
  const note = (next: string | undefined): void => {
    if (next === trouble) return
    trouble = next
    report(
      next === undefined
        ? `cache: Redis at ${place} is back`
        : `cache: Redis at ${place} ${next}: answers are fetched instead`,
    )
  }
  let resting = false
  const rest = (): void => {
    resting = true
    setTimeout(() => (resting = false), REST_MS).unref()
  }
  // Without its credentials or its database the library would continue in the wrong place.
  let misplaced = false
  redis.on('connect', () => (misplaced = false))
  redis.on('error', (fault: unknown) => {
    const refusal = refusalOf(fault)
    misplaced ||= refusal !== undefined
    note(refusal ?? `cannot be reached${codeOf(fault)}`)
  })
  await redis.connect().catch(() => undefined)
  return {
    ask: async (command) => {
      if (resting || misplaced || redis.status !== 'ready') throw new Error('Redis is away')
      try {
        const answer = await command(redis)
        note(undefined)
        return answer
      } catch (fault) {
        const refusal = refusalOf(fault)
        if (refusal === undefined) rest()
        note(refusal ?? 'does not answer')
        throw fault
      }
    },
    close: async () => redis.disconnect(),
  }
}

/** The library's errors contain the command with its arguments; only the error word of Redis is taken from them. */
function refusalOf(fault: unknown): string | undefined {
  if (!(fault instanceof Error) || fault.name !== 'ReplyError') return undefined
  return `refuses what it is asked (${/^[A-Z]+/.exec(fault.message)?.[0] ?? 'ERR'})`
}

function codeOf(fault: unknown): string {
  return fault instanceof Error && 'code' in fault ? ` (${String(fault.code)})` : ''
}
