const LARGE = 20_000
const SMALL = LARGE / 8
/** Milliseconds below which a measurement is noise. */
const NOISE = 25

/** Eight times the text takes eight times the work when that is linear, and 64 times when it is quadratic. */
export const MOST_GROWTH = 40

/**
 * CPU time for a text of the greatest length as a multiple of that for an eighth of it. A result that is too high is
 * measured twice more, and the least counts.
 */
export function growthOf(work: (length: number) => unknown): number {
  let [small, large, growth] = [Infinity, Infinity, Infinity]
  for (let tries = 0; tries < 3 && growth >= MOST_GROWTH; tries += 1) {
    small = Math.min(
      small,
      processorMs(() => work(SMALL)),
    )
    large = Math.min(
      large,
      processorMs(() => work(LARGE)),
    )
    growth = large / Math.max(NOISE, small)
  }
  return growth
}

function processorMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
