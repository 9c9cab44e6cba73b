import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { startChains } from './chains.ts'
import { openHandlerController } from './handler-controller.ts'

export const HANDLERS = fileURLToPath(new URL('../handlers', import.meta.url))
const CATALOG = fileURLToPath(new URL('../catalog.yaml', import.meta.url))

/** Each run costs another amount, which its answer shows. */
const METERED = `  /paid/metered:
    handler: item
    price: { metered: [{ value_of: /run, price: 0.0001 }], ceiling: 1 }
    summary: An answer that costs its number
    timeout: 10s
    parameters: { n: { type: integer, default: 1, minimum: 1, maximum: 1000 } }
    example: { n: 1, run: 1 }
`

/** What a run of it costs, in atomic units. */
export const METERED_UNIT = 100n

/** What servers that are killed share; closed at the end of `t`. */
export async function openCrashFixture(t: Pick<Test, 'teardown'>) {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-guards-'))
  const catalog = join(directory, 'catalog.yaml')
  // Payments of x402 outlive the crashes of a whole scenario; those of MPP may not, and are made again then.
  writeFileSync(
    catalog,
    readFileSync(CATALOG, 'utf8')
      .replace('timeout: 60s', 'timeout: 30m\n    schemes: [exact, upto]')
      .replace('routes:\n', `routes:\n${METERED}`),
  )
  const absence = redisAbsence()
  const redis = absence === undefined ? await startRedis() : undefined
  const chains = await startChains()
  const controller = await openHandlerController(async () => undefined)
  t.teardown(async () => {
    await controller.close()
    await redis?.stop()
    await chains.close()
    rmSync(directory, { recursive: true, force: true })
  })
  return { directory, catalog, absence, redis, chains, controller }
}
