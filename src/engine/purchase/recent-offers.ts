import type { Catalog, Operation } from '../catalog/catalog.ts'
import type { PriceRule } from '../catalog/price/price.ts'
import { tryRule } from '../catalog/price/rule.ts'
import type { Arguments } from '../handler.ts'
import { canonicalJson, type Json } from '../base/json.ts'
import type { LedgerAccess } from '../ledger/lease.ts'
import { toMicros } from '../base/money.ts'
import type { OfferTerms } from '../payment/payment.ts'

/**
 * How often a process records that it still makes its offers: after a kill, the end of its offers is known to within
 * this time.
 */
export const OFFERING_MS = 20_000

/** Name of the facts by which the processes of a ledger tell each other what they offer. */
const OFFERS = 'offers'

/** The ledger is read once in this time, however many payments do not fit. */
const MEMO_MS = 1_000

interface Fact {
  /** Prices by the id of the operation: micro-dollars, or the rule. */
  readonly prices: Readonly<Record<string, string | PriceRule | undefined>>
  readonly timeoutSeconds?: number
}

/**
 * Offers that buyers may have signed a moment ago. Every process writes its offers down for the others and for the one
 * that comes after it, so that a change of price or timeout, a restart or an older process next to a newer one fails
 * nobody’s payment.
 */
export class RecentOffers {
  readonly #deps: Pick<LedgerAccess, 'ledger' | 'owner' | 'now'>
  #memo: { readonly until: number; readonly facts: Promise<readonly Fact[]> } | undefined

  constructor(deps: Pick<LedgerAccess, 'ledger' | 'owner' | 'now'>) {
    this.#deps = deps
  }

  /** Records that this is offered now; must be repeated before `OFFERING_MS` have passed. */
  offer(catalog: Catalog): Promise<void> {
    return this.#remember(catalog, OFFERING_MS + catalog.payments.repriceGrace)
  }

  /** Records that this is no longer offered; `grace`: how long it is still honoured, in milliseconds. */
  withdraw(catalog: Catalog, grace: number): Promise<void> {
    return this.#remember(catalog, grace)
  }

  /** How a call was offered lately, by one process or another. */
  async of(
    { id, parameters }: Pick<Operation, 'id' | 'parameters'>,
    args: Arguments,
  ): Promise<readonly OfferTerms[]> {
    const facts = await this.#recall()
    const known = new Set(['body', ...parameters.map(({ name }) => name)])
    return facts.flatMap(({ prices, timeoutSeconds }) => {
      const offered = prices[id]
      if (offered === undefined) return []
      const price =
        typeof offered === 'string'
          ? toMicros(BigInt(offered))
          : [...offered.per, ...offered.by].every(({ argument }) => known.has(argument))
            ? tryRule(offered, args)
            : undefined
      if (price === undefined) return []
      return { price, ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }) }
    })
  }

  #recall(): Promise<readonly Fact[]> {
    const { ledger, now } = this.#deps
    const time = now()
    if (this.#memo === undefined || this.#memo.until <= time) {
      const facts = ledger
        .listExpiring(OFFERS, time)
        .then((texts) => texts.map((text): Fact => JSON.parse(text)))
      this.#memo = { until: time + MEMO_MS, facts }
      facts.catch(() => (this.#memo = undefined))
    }
    return this.#memo.facts
  }

  async #remember({ operations, payments: { x402 } }: Catalog, ms: number): Promise<void> {
    const { ledger, owner, now } = this.#deps
    const prices = operations.flatMap(({ id, price }): [string, Json][] =>
      price === undefined ? [] : [[id, typeof price === 'object' ? price.rule : price.toString()]],
    )
    // By process: one that stops offering a price must not take it back for another that still does.
    const fact = canonicalJson({
      by: owner,
      prices: Object.fromEntries(prices),
      ...(x402 === undefined ? {} : { timeoutSeconds: Math.floor(x402.timeout / 1000) }),
    })
    if (prices.length > 0) await ledger.addExpiring(OFFERS, fact, now() + ms)
    this.#memo = undefined
  }
}
