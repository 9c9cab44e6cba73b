import { openService } from './embedded-service.ts'
import { readPayments } from './options.ts'
import { openRatecard, type Ratecard } from './ratecard.ts'
import type { RatecardOptions } from './ratecard-options.ts'
import { OPTIONS } from './option-names.ts'

/**
 * Serves a catalog: reads and checks it, opens the ledger and the cache, and returns a Koa application that answers its
 * routes, documents and MCP tools, and takes payments for them. Nothing is sent to a network before the first payment.
 *
 * @param options See {@link RatecardOptions}.
 * @returns Resolves once requests can be answered.
 * @throws {OptionError} An option is missing or wrong; the message names it.
 * @throws {CatalogError} The catalog cannot be served; the message lists every issue with its position.
 * @throws {LedgerError} The ledger cannot be opened, or does not keep what it stores.
 *
 * @example
 * import { createServer } from 'node:http'
 * import { createRatecard } from 'ratecard'
 *
 * const app = await createRatecard({
 *   catalog: 'catalog.yaml',
 *   baseUrl: 'https://api.example.com',
 *   handlers: { hello: async () => ({ source: [], body: { text: 'Hello' } }) },
 *   payments: {
 *     x402: {
 *       payTo: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
 *       facilitators: [{ url: 'https://facilitator.example.com' }],
 *     },
 *   },
 * })
 * createServer({ maxHeaderSize: 65_536 }, app.callback()).listen(4021)
 */
export async function createRatecard(options: RatecardOptions): Promise<Ratecard> {
  readPayments(options)
  const service = await openService(options, 'real')
  try {
    const given = { ...options, ...service.options }
    const app = await openRatecard(given, { names: OPTIONS, prepare: service.prepare })
    return {
      ...app,
      close: async () => {
        await app.close()
        await service.close()
      },
    }
  } catch (fault) {
    await service.close()
    throw fault
  }
}
