import type { SchemeState, SchemeStates } from '../scheme-state.ts'
import { KEYS } from './redis-scripts.ts'
import { SCANNED_AT_ONCE, type RedisStore } from './redis-store.ts'

export function openRedisStates({ ask }: Pick<RedisStore, 'ask'>): SchemeStates {
  return {
    get: async (name) => stateOf(name, await ask((redis) => redis.hget(KEYS.states, name))),
    list: async function* (prefix) {
      const pattern = `${prefix.replace(/[*?[\]\\]/g, '\\$&')}*`
      // A scan may return a name again while others are added or removed.
      const names = new Set<string>()
      let cursor = '0'
      do {
        const at = cursor
        const [next, found] = await ask((redis) =>
          redis.hscan(KEYS.states, at, 'MATCH', pattern, 'COUNT', SCANNED_AT_ONCE),
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
  }
}

/** A stored state is its version, a line feed and its text. */
function stateOf(name: string, stored: string | null): SchemeState {
  if (stored === null) return { name, text: '', version: 0 }
  const end = stored.indexOf('\n')
  return { name, version: Number(stored.slice(0, end)), text: stored.slice(end + 1) }
}
