import { simulate, type History } from './simulation.ts'

/** Most runs that are spent on a shorter history. */
const MOST_RUNS = 150

/** Leaves out faults and purchases as long as an invariant still breaks: halves first, then single ones. */
export async function shrink(history: History): Promise<History> {
  let shortest = history
  let left = MOST_RUNS
  const breaks = async (candidate: History): Promise<boolean> => {
    left -= 1
    return (await simulate(candidate)).violations.length > 0
  }
  const without = async <T>(
    list: (of: History) => readonly T[],
    replace: (of: History, kept: readonly T[]) => History,
  ): Promise<void> => {
    for (
      let size = Math.ceil(list(shortest).length / 2);
      size >= 1;
      size = size === 1 ? 0 : Math.ceil(size / 2)
    )
      for (let place = 0; place < list(shortest).length && left > 0;) {
        const all = list(shortest)
        const candidate = replace(shortest, [...all.slice(0, place), ...all.slice(place + size)])
        if (await breaks(candidate)) shortest = candidate
        else place += size
      }
  }
  for (let before = Infinity; before > sizeOf(shortest) && left > 0;) {
    before = sizeOf(shortest)
    await without(
      ({ plans }) => plans,
      (of, plans) => ({ ...of, plans }),
    )
    await without(
      ({ faults }) => faults,
      (of, faults) => ({ ...of, faults }),
    )
  }
  return shortest
}

function sizeOf({ plans, faults }: History): number {
  return plans.length + faults.length
}
