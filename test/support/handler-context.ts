import { setMaxListeners } from 'node:events'
import { readFileSync } from 'node:fs'
import { Cache, createMemoryCache } from '../../src/engine/cache/cache.ts'
import { Failure } from '../../src/engine/base/errors.ts'
import type { Answer, Context, EnvelopedAnswer } from '../../src/engine/handler.ts'

/** A context in which nothing depends on the moment of the test. */
export function fixedContext(overrides: Partial<Context> = {}): Context {
  const { signal } = new AbortController()
  setMaxListeners(0, signal)
  return {
    signal,
    now: () => new Date('2026-11-20T20:00:00Z'),
    random: (bytes) => new Uint8Array(bytes).fill(7),
    payment: undefined,
    signer: undefined,
    ask: (handler) => Promise.reject(new Failure('not_implemented', `there is no ${handler} here`)),
    keep: async (_name, _keeping, _isValue, produce) => ({
      value: await produce(signal),
      at: new Date('2026-11-20T20:00:00Z'),
      stale: false,
    }),
    ...overrides,
  }
}

/** A context with a store for `keep`, and a clock that the test sets. */
export function keepingContext(clock: { readonly now: number }): Context {
  const cache = new Cache(createMemoryCache(), () => clock.now)
  const { signal } = fixedContext()
  return fixedContext({
    now: () => new Date(clock.now),
    keep: async (name, keeping, isValue, produce) => {
      const kept = await cache.through(name, keeping, isValue, async (previous) => ({
        value: await produce(signal, previous),
        at: clock.now,
      }))
      return { value: kept.value, at: new Date(kept.at), stale: kept.stale }
    },
  })
}

export function enveloped(answer: Answer): EnvelopedAnswer {
  if ('body' in answer) return answer
  throw new Error('expected an answer with a body')
}

/** The example that the documents show for a handler, by its path below `src/service/handlers`. */
export function publishedExample(path: string): unknown {
  return JSON.parse(
    readFileSync(new URL(`../../src/service/handlers/${path}.example.json`, import.meta.url), 'utf8'),
  )
}
