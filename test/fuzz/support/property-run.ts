import type { Test } from 'tap'
import { fc } from '../../support/fast-check.ts'
import { SEED } from '../../support/random.ts'

/** All cases of a run over all targets: a few in CI, many by `npm run fuzz`. */
const CASES = Number(process.env['FUZZ_CASES'] ?? 1_500)

/** A percentage of all cases. */
function casesOf(share: number): number {
  return Math.ceil((CASES * share) / 100)
}

/**
 * Tries one property on its share of cases; a failure is shrunk, and reported with what reproduces it. `holds` names what
 * it has met, so that a run shows its coverage.
 */
export async function attempt<T>(
  t: Test,
  share: number,
  values: fc.Arbitrary<T>,
  holds: (value: T) => Promise<readonly string[]> | readonly string[],
): Promise<void> {
  const numRuns = casesOf(share)
  const seen = new Map<string, number>()
  const property = fc.asyncProperty(values, async (value) => {
    for (const name of await holds(value)) seen.set(name, (seen.get(name) ?? 0) + 1)
  })
  const outcome = await fc.check(property, { numRuns })
  const bring = `FUZZ_SEED=${SEED} FUZZ_CASES=${CASES}`
  t.comment(`${outcome.numRuns} cases; ${bring} brings them back`)
  const often = [...seen].sort(([, one], [, other]) => other - one)
  for (const [name, times] of often) t.comment(`${String(times).padStart(7)}  ${name}`)
  if (!outcome.failed) {
    t.pass(`${numRuns} cases`)
    return
  }
  const cause = outcome.errorInstance instanceof Error ? outcome.errorInstance.message : 'no error'
  t.fail(`${bring} finds ${JSON.stringify(outcome.counterexample)?.slice(0, 2_000)}\n${cause}`)
}
