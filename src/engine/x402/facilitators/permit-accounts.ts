import type { Address } from '../../base/address.ts'
import {
  takesPermits,
  type Facilitator,
  type ListedAccounts,
  type SupportedKind,
} from './facilitator-client.ts'

type Offered = Pick<ListedAccounts, 'account' | 'approvals'>

/**
 * The accounts of facilitators that carry out permits of scheme upto on one network. What a buyer has signed names one of
 * them, and nobody but its facilitator can settle it: an account is kept when it is listed no more.
 */
export class PermitAccounts {
  readonly #network: string
  readonly #facilitators = new Map<Address, Facilitator>()
  /** By URL. */
  readonly #distrusted = new Set<string>()
  #offered: Offered | undefined

  /** `network`: CAIP-2. */
  constructor(network: string) {
    this.#network = network
  }

  /** Undefined while no facilitator that is trusted lists an account. */
  get offered(): Offered | undefined {
    return this.#offered
  }

  get all(): readonly Address[] {
    return [...this.#facilitators.keys()]
  }

  /** Who settles what names this account; undefined when nobody does, or when it is not trusted any more. */
  settlerOf(account: Address): Facilitator | undefined {
    const facilitator = this.#facilitators.get(account)
    return facilitator === undefined || this.#distrusted.has(facilitator.url) ? undefined : facilitator
  }

  /** Takes what the facilitators list, in order of preference. `changed`: another account is offered from now on. */
  note(kinds: readonly (SupportedKind & { readonly by: Facilitator })[]): 'as before' | 'changed' {
    const listed = kinds.flatMap((kind) => {
      const { permits, by } = kind
      return permits !== undefined && takesPermits(kind, this.#network) ? [{ permits, by }] : []
    })
    for (const { permits, by } of listed)
      for (const account of permits.accounts) this.#facilitators.set(account, by)
    const trusted = listed.filter(({ by }) => !this.#distrusted.has(by.url))
    const before = this.#offered
    // A facilitator with several accounts names another one each time that it is asked.
    const same = trusted.find(({ permits }) => before && permits.accounts.includes(before.account))
    const { permits } = same ?? trusted[0] ?? {}
    const account = same === undefined ? permits?.account : before?.account
    this.#offered =
      permits === undefined || account === undefined ? undefined : { account, approvals: permits.approvals }
    return before?.account === account && before?.approvals === this.#offered?.approvals
      ? 'as before'
      : 'changed'
  }

  /** Has it settle nothing more, since it has moved another amount than it was asked for. */
  distrust({ url }: Facilitator): void {
    this.#distrusted.add(url)
  }
}
