import { readFileSync } from 'node:fs'
import { Failure, type Answer, type Context, type EnvelopedAnswer } from '../../src/engine/index.ts'

/** A context in which nothing depends on the moment of the test. */
export function fixedContext(overrides: Partial<Context> = {}): Context {
  return {
    signal: new AbortController().signal,
    now: () => new Date('2026-11-20T20:00:00Z'),
    random: (bytes) => new Uint8Array(bytes).fill(7),
    payment: undefined,
    ask: (handler) => Promise.reject(new Failure('not_implemented', `there is no ${handler} here`)),
    keep: async (_name, _keeping, _isValue, produce) => ({
      value: await produce(new AbortController().signal, undefined),
      at: new Date('2026-11-20T20:00:00Z'),
      stale: false,
    }),
    ...overrides,
  }
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
