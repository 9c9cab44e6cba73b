import { LedgerError } from './ledger.ts'

/** Redis has understood and not done what was asked: nothing has changed. */
export class RedisRefusal extends LedgerError {}

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
  return new RedisRefusal(`the ledger in Redis at ${place} has refused: ${sentence} (${word})`)
}

/** By Redis's words, wherever they stand: a script's error begins with other ones. */
const SENTENCES = {
  FORMAT: 'a newer version has migrated it, or it was emptied; start the newer version, or this one again',
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
