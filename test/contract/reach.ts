import t, { type Test } from 'tap'

/** Who can open one store at the same time: a store in memory is for its process alone. */
export type Reach = 'all processes' | 'one process'

/** Declares tests that other processes take part in. */
export function testsBetweenProcesses(reach: Reach): {
  readonly test: (name: string, work: (t: Test) => Promise<void>) => void
} {
  return {
    test: (name, work) => {
      if (reach === 'all processes') t.test(name, work)
    },
  }
}
