import type { Chain, Block } from './chain.ts'
import { isOld } from './log-scanner.ts'

/** How many blocks earlier than the exact one the result may be. */
const CLOSE = 16n

const FIRST_STEP = 5_000n

/**
 * A block at or shortly before a time (seconds since the epoch); undefined when the chain cannot be read. Searches
 * back from the newest block with growing steps, since most searches are for recent times, then bisects.
 */
export async function blockAt(chain: Chain, time: bigint, newest: Block): Promise<bigint | undefined> {
  if (newest.timestamp <= time) return newest.number
  let late = newest.number
  let early = late
  for (let step = FIRST_STEP; early > 0n; step *= 4n) {
    early = newest.number > step ? newest.number - step : 0n
    const old = early === 0n ? true : await isOld(chain, early, time)
    if (old === undefined) return undefined
    if (old) break
    late = early
  }
  while (late - early > CLOSE) {
    const middle = (early + late) / 2n
    const old = await isOld(chain, middle, time)
    if (old === undefined) return undefined
    if (old) early = middle
    else late = middle
  }
  return early
}
