import type { Block, Chain } from './chain.ts'

/** How many blocks earlier than the exact one the answer may be. */
const CLOSE = 16n
const FIRST_STEP = 5_000n

/**
 * A block that is not younger than a time (seconds since the epoch), and hardly older than need be; undefined when the
 * chain cannot be asked. Growing steps back from the newest block, for most of what is looked for is recent; then halves.
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

async function isOld(chain: Chain, number: bigint, time: bigint): Promise<boolean | undefined> {
  const block = await chain.block(number)
  return block.kind === 'result' ? block.result.timestamp <= time : undefined
}
