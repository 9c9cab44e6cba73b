import { LedgerError } from '../../base/errors.ts'
import { type RedisConnection, RedisRefusal } from './redis-connection.ts'

/** Required settings of Redis, with the consequence for payments otherwise. */
const NEEDED = {
  appendonly: { value: 'yes', otherwise: 'a restart loses payments' },
  'maxmemory-policy': { value: 'noeviction', otherwise: 'payments are dropped when memory runs out' },
} as const

/** Throws `LedgerError` when a setting is wrong or cannot be read. */
export async function checkSettings({ ask, place }: RedisConnection): Promise<void> {
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
