const LARGE = 20_000
const SMALL = LARGE / 8
/** Milliseconds below which work is not told from noise. */
const NOISE = 25

/** Eight times the text is eight times the work where that is linear, and 64 times where it is quadratic. */
export const MOST_GROWTH = 40

/**
 * How much more work a text of the greatest length is than one of an eighth of it: in time of the processor, which other
 * programs do not slow down, and the least of three runs each.
 */
export function growthOf(work: (length: number) => unknown): number {
  const [small, large] = [SMALL, LARGE].map((length) =>
    Math.min(...[1, 2, 3].map(() => processorMs(() => work(length)))),
  )
  return (large ?? 0) / Math.max(NOISE, small ?? 0)
}

function processorMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
