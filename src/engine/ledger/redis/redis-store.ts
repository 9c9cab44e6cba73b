import type { Redis } from 'ioredis'
import { LedgerError, LedgerLostError } from '../../base/errors.ts'
import { FORMAT, refuseFormat } from '../record-codec.ts'
import { isReopened, newIdentity, type StoreIdentity } from '../store-identity.ts'
import { createClock } from './redis-clock.ts'
import { connectRedis, type RedisConnection, RedisRefusal } from './redis-connection.ts'
import { identify, KEYS, reidentify, type Script } from './redis-scripts.ts'
import { checkSettings } from './redis-settings.ts'

export interface RedisLedgerSettings {
  /** `redis://` or `rediss://`, with credentials and the number of a database. */
  readonly url: string
  /** `unchecked`: the operator ensures `appendonly yes` and `noeviction`. */
  readonly settings: 'checked' | 'unchecked'
  /** Replicas that must confirm a change before it counts as stored. */
  readonly replicas: number
}

type MakeScript = (identity: StoreIdentity) => Script

/** A Redis that holds a ledger: it is known again by its identity, and looked at while it is used. */
export interface RedisStore extends Pick<RedisConnection, 'ask' | 'close'> {
  /** Milliseconds since the epoch, by the clock of Redis. */
  readonly now: () => number
  /** Throws `LedgerError` when the settings of Redis are not safe for a ledger. */
  readonly check: () => Promise<void>
  /** Goes on with a store that an operator has reopened. Throws `LedgerLostError` while nobody has. */
  readonly checkIdentity: () => Promise<void>
  /** Runs a script that must run once. */
  readonly once: (make: MakeScript) => Promise<unknown>
  /** Runs a script that may run again: acquiring or releasing a lease again as the same owner has the same result. */
  readonly again: (make: MakeScript) => Promise<unknown>
  readonly reopen: () => Promise<void>
}

/** Records per request while all are listed: their answers together must fit into memory. */
export const PAGE = 32

/** Fields or keys of one step of a scan. */
export const SCANNED_AT_ONCE = 1_000

/** Throws `LedgerError` when Redis cannot be reached, is not set up for a ledger or holds one of another format. */
export async function openRedisStore({ url, settings, replicas }: RedisLedgerSettings): Promise<RedisStore> {
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
  const readIdentity = async (): Promise<StoreIdentity> => {
    const made = newIdentity('start', clock.now())
    const found = await ask((redis) => runIn(redis, identify(made)))
    const [format, identity]: unknown[] = Array.isArray(found) ? found : []
    if (format !== String(FORMAT)) throw new LedgerError(refuseFormat(store, Number(format)))
    return String(identity)
  }
  let known: StoreIdentity
  try {
    if (settings === 'checked') await checkSettings(connection)
    await clock.synchronize()
    known = await readIdentity()
  } catch (fault) {
    await close()
    throw fault
  }
  /** Stays until an operator has reopened the store: a restored backup has the identity, but not what came after it. */
  let lost: LedgerLostError | undefined
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
  return {
    ask,
    now: clock.now,
    check,
    checkIdentity,
    once: (make) => run(change, make),
    again: (make) => run(ask, make),
    reopen: async () => {
      const reopened = newIdentity('operator', clock.now())
      await change((redis) => runIn(redis, reidentify(reopened)))
      known = reopened
      lost = undefined
    },
    close,
  }
}

/** Interval of the checks of Redis's settings and clock during payments. */
const CHECK_MS = 60_000

async function faultOf(check: Promise<void>): Promise<LedgerError | undefined> {
  try {
    await check
    return undefined
  } catch (fault) {
    if (fault instanceof LedgerError) return fault
    throw fault
  }
}

function runIn(redis: Redis, { lua, keys, values }: Script): Promise<unknown> {
  return redis.eval(lua, keys.length, ...keys, ...values)
}
