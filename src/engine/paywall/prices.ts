import type { Catalog } from '../catalog/catalog.ts'
import { canonicalJson } from '../json.ts'
import type { Desk } from '../ledger/claim.ts'
import { toMicros, type Micros } from '../money.ts'

/** How often a process says that it still makes its offers: what it offered until it was killed is known this exactly. */
export const OFFERING_MS = 20_000

/** Where the processes of a ledger tell each other what they offer. */
const OFFERS = 'offers'

type PriceSettings = Pick<Desk, 'ledger' | 'owner' | 'now'>

/**
 * Amounts that buyers may have signed a moment ago. Every process writes its offers down for the others and for the one
 * that comes after it, so that a price change, a restart or an older process beside a newer one fails nobody’s payment.
 */
export class Prices {
  readonly #settings: PriceSettings

  constructor(settings: PriceSettings) {
    this.#settings = settings
  }

  /** These prices are offered now; to be said again before `OFFERING_MS` have passed. */
  offer(catalog: Catalog): Promise<void> {
    return this.#remember(catalog, OFFERING_MS + catalog.payments.repriceGrace)
  }

  /** These prices are offered no more; `grace` is how long they are honoured, in milliseconds. */
  withdraw(catalog: Catalog, grace: number): Promise<void> {
    return this.#remember(catalog, grace)
  }

  /** What an operation has cost lately, for one process or another. */
  async lately(operation: string): Promise<readonly Micros[]> {
    const { ledger, now } = this.#settings
    const offers = await ledger.recall(OFFERS, now())
    return offers.flatMap((offer) => {
      const { prices }: { prices: Readonly<Record<string, string | undefined>> } = JSON.parse(offer)
      const price = prices[operation]
      return price !== undefined ? toMicros(BigInt(price)) : []
    })
  }

  async #remember({ operations }: Catalog, ms: number): Promise<void> {
    const { ledger, owner, now } = this.#settings
    const prices = operations.flatMap(({ id, price }): [string, string][] =>
      price === undefined ? [] : [[id, price.toString()]],
    )
    // By process: one that stops offering a price must not take it back for another that still does.
    const fact = canonicalJson({ by: owner, prices: Object.fromEntries(prices) })
    if (prices.length > 0) await ledger.remember(OFFERS, fact, now() + ms)
  }
}
