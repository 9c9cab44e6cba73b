import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { readRedisAddress } from '../../base/redis-address.ts'
import { LedgerError } from '../../base/errors.ts'

/** A connection to a Redis, which reconnects automatically. */
export interface RedisConnection {
  /** `host:port`, which may be logged. */
  readonly place: string
  /** For idempotent commands: sent again when the connection is lost. Throws `LedgerError`. */
  readonly ask: <T>(command: Send<T>) => Promise<T>
  /** For commands that must run once. Throws `RedisRefusal` when nothing has changed, otherwise `LedgerError`. */
  readonly change: <T>(command: Send<T>) => Promise<T>
  /** May be called repeatedly. */
  readonly close: () => Promise<void>
}

type Send<T> = (redis: Redis) => Promise<T>

/**
 * How long Redis may take for a connection, and for any answer. When the connection is lost, commands wait this long
 * for a new one, since a restart takes less; commands after that time fail at once.
 */
const TIMEOUT_MS = 3_000
/** How often a command is sent in `TIMEOUT_MS` to a Redis that is loading its data. */
const LOADING_TRIES = 30
/** Longest wait for replicas to confirm a change. */
const REPLICATION_MS = 1_000

/**
 * By itself the library would send commands again that were under way when a connection was lost, or later, when nobody
 * waits for them any more: the second copy of a command finds the change of the first and takes it for that of another
 * process.
 */
const ONCE = {
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
} as const

/** The check would print warnings for users without permission for its commands. */
const QUIET = { enableReadyCheck: false, disableClientInfo: true } as const

/**
 * `replicas`: number of replicas that must have a change before it counts as stored. Throws `LedgerError` when the URL
 * is wrong, or Redis cannot be reached or refuses the credentials.
 */
export async function connectRedis(url: string, replicas: number): Promise<RedisConnection> {
  const address = readRedisAddress(url, 'REDIS_URL')
  if ('fault' in address) throw new LedgerError(address.fault)
  const { place, options } = address
  const { Redis } = await import('ioredis')
  const redis = new Redis({
    ...options,
    ...ONCE,
    ...QUIET,
    lazyConnect: true,
    connectTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    disconnectTimeout: 200,
    connectionName: 'ratecard',
    retryStrategy: (times) => Math.min(50 * times, 1_000),
    // The primary has become a replica: its name may lead to the new one.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  })
  let fault: unknown
  redis.on('error', (latest: unknown) => (fault = latest))
  const unreachable = (): LedgerError => {
    const code = fault instanceof Error && 'code' in fault ? ` (${String(fault.code)})` : ''
    return (
      refusalOf(fault, place) ?? new LedgerError(`the ledger in Redis at ${place} cannot be reached${code}`)
    )
  }
  await redis.connect().catch(() => undefined)
  // A missing database is reported as an error only: the library continues in another one.
  if (redis.status !== 'ready' || fault !== undefined) {
    redis.disconnect()
    throw unreachable()
  }

  let back: Promise<void> | undefined
  redis.on('ready', () => (back = undefined))
  let closed: Promise<void> | undefined
  const send = async <T>(command: Send<T>, lost: () => Promise<T>): Promise<T> => {
    if (closed !== undefined) throw new LedgerError(`the ledger in Redis at ${place} is closed`)
    // A connection that ends still counts as ready for a moment.
    if (redis.status !== 'ready' || !redis.stream.writable)
      await (back ??= comesBack(redis)).catch(() => {
        throw unreachable()
      })
    for (let tries = 1; ; tries += 1) {
      const sent = await command(redis).then(
        (value) => ({ value }),
        (failure: unknown) => ({ failure }),
      )
      if ('value' in sent) return sent.value
      const refusal = refusalOf(sent.failure, place)
      if (refusal === undefined) return lost()
      // Redis accepts connections before it has read its files, and executes nothing until then.
      if (refusal.word !== 'LOADING' || tries === LOADING_TRIES) throw refusal
      await delay(TIMEOUT_MS / LOADING_TRIES)
    }
  }
  const silence = async (consequence: string): Promise<never> => {
    throw new LedgerError(`the ledger in Redis at ${place} has not answered${consequence}`)
  }
  return {
    place,
    ask: (command) => send(command, () => send(command, () => silence(''))),
    change: async (command) => {
      const unknown = (): Promise<never> => silence(': whether the change was stored cannot be known')
      // Sent at once, so that no other change comes in between and is waited for too.
      const [done, reached] = await send(
        (redis) =>
          Promise.all([command(redis), replicas > 0 ? redis.wait(replicas, REPLICATION_MS) : replicas]),
        unknown,
      )
      if (reached >= replicas) return done
      throw new LedgerError(
        `the ledger in Redis at ${place} has stored a change on ${reached} of ${replicas} replicas: a failover may lose it`,
      )
    },
    close: () =>
      (closed ??= redis.quit().then(
        () => undefined,
        () => redis.disconnect(),
      )),
  }
}

function comesBack(redis: Redis): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('not in time')), TIMEOUT_MS)
    redis.once('ready', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Redis has refused a command: nothing has changed. */
export class RedisRefusal extends LedgerError {
  /** The word of Redis, or of a script. */
  readonly word: string

  constructor(message: string, word: string) {
    super(message)
    this.word = word
  }
}

/**
 * Undefined when it was not Redis that refused. The library's errors hold the command with all it carries, credentials
 * and payments: only Redis's word for the error is taken from them.
 */
export function refusalOf(fault: unknown, place: string): RedisRefusal | undefined {
  if (!(fault instanceof Error) || fault.name !== 'ReplyError') return undefined
  const known = Object.entries(SENTENCES).find(([word]) => fault.message.includes(word))
  const [word, sentence] = known ?? [
    /^[A-Z]+/.exec(fault.message)?.[0] ?? 'ERR',
    'it cannot do what was asked',
  ]
  return new RedisRefusal(`the ledger in Redis at ${place} has refused: ${sentence} (${word})`, word)
}

/** By the words of Redis anywhere in the message: errors of scripts begin with other ones. */
const SENTENCES = {
  FORMAT: 'a newer version has migrated it; start the newer version',
  IDENTITY: 'it is not the store that was opened',
  OOM: 'it has no memory left; raise maxmemory',
  MISCONF: 'it cannot write to its disk',
  READONLY: 'it is a replica; REDIS_URL has to name the primary',
  LOADING: 'it is still loading its data',
  WRONGPASS: 'it does not accept the credentials in REDIS_URL',
  NOAUTH: 'it asks for credentials; put them into REDIS_URL',
  NOPERM:
    'its user may not do what is needed; allow @read, @write, @scripting, @connection and time for ~{ratecard}:*',
  MOVED: 'it is a node of a cluster that keeps the ledger on another one; REDIS_URL has to name that one',
  'DB index': 'it does not have the database that REDIS_URL names',
} as const
