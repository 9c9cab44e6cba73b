import type { Catalog } from '../catalog/catalog.ts'
import { canonicalJson } from '../json.ts'
import type { Desk } from '../ledger/claim.ts'
import { toMicros } from '../money.ts'
import type { OfferTerms } from '../protocols/protocol.ts'

/** How often a process says that it still makes its offers: what it offered until it was killed is known this exactly. */
export const OFFERING_MS = 20_000

/** Where the processes of a ledger tell each other what they offer. */
const OFFERS = 'offers'

/** However many payments do not fit, the ledger is asked once in this time. */
const MEMO_MS = 1_000

interface Fact {
  readonly prices: Readonly<Record<string, string | undefined>>
  readonly timeoutSeconds?: number
}

/**
 * Offers that buyers may have signed a moment ago. Every process writes its offers down for the others and for the one
 * that comes after it, so that a change of price or timeout, a restart or an older process beside a newer one fails
 * nobody’s payment.
 */
export class RecentOffers {
  readonly #deps: Pick<Desk, 'ledger' | 'owner' | 'now'>
  #memo: { readonly until: number; readonly facts: Promise<readonly Fact[]> } | undefined

  constructor(deps: Pick<Desk, 'ledger' | 'owner' | 'now'>) {
    this.#deps = deps
  }

  /** This is offered now; to be said again before `OFFERING_MS` have passed. */
  offer(catalog: Catalog): Promise<void> {
    return this.#remember(catalog, OFFERING_MS + catalog.payments.repriceGrace)
  }

  /** This is offered no more; `grace` is how long it is honoured, in milliseconds. */
  withdraw(catalog: Catalog, grace: number): Promise<void> {
    return this.#remember(catalog, grace)
  }

  /** How an operation was offered lately, by one process or another. */
  async of(operation: string): Promise<readonly OfferTerms[]> {
    const facts = await this.#recall()
    return facts.flatMap(({ prices, timeoutSeconds }) => {
      const price = prices[operation]
      if (price === undefined) return []
      return { price: toMicros(BigInt(price)), ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }) }
    })
  }

  #recall(): Promise<readonly Fact[]> {
    const { ledger, now } = this.#deps
    const time = now()
    if (this.#memo === undefined || this.#memo.until <= time) {
      const facts = ledger.recall(OFFERS, time).then((texts) => texts.map((text): Fact => JSON.parse(text)))
      this.#memo = { until: time + MEMO_MS, facts }
      facts.catch(() => (this.#memo = undefined))
    }
    return this.#memo.facts
  }

  async #remember({ operations, payments: { x402 } }: Catalog, ms: number): Promise<void> {
    const { ledger, owner, now } = this.#deps
    const prices = operations.flatMap(({ id, price }): [string, string][] =>
      price === undefined ? [] : [[id, price.toString()]],
    )
    // By process: one that stops offering a price must not take it back for another that still does.
    const fact = canonicalJson({
      by: owner,
      prices: Object.fromEntries(prices),
      ...(x402 === undefined ? {} : { timeoutSeconds: Math.floor(x402.timeout / 1000) }),
    })
    if (prices.length > 0) await ledger.remember(OFFERS, fact, now() + ms)
    this.#memo = undefined
  }
}
