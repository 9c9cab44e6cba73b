import { isAddress, type Address } from '../../base/address.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/** How long a process counts as running after it has last named its accounts. */
const RUNNING_MS = 20_000
const NAMING_MS = RUNNING_MS / 3

interface Settings {
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * The accounts with which the processes of a ledger settle on one network. What a buyer has signed may name one of them,
 * whose process alone can carry it out; any other one does the work and hands the settlement over to it.
 */
export class SharedAccounts {
  readonly #settings: Settings
  readonly #network: string
  readonly #own: readonly Address[]
  #namedAt = -Infinity
  readonly #missed = new Set<string>()

  /** `network`: CAIP-2; `own`: those of this process. */
  constructor(network: string, own: readonly Address[], settings: Settings) {
    this.#network = network
    this.#own = own
    this.#settings = settings
  }

  isOwn(account: string): boolean {
    return this.#own.some((own) => own === account)
  }

  /** Whether a process that settles with it is running. */
  async has(account: Address): Promise<boolean> {
    return this.isOwn(account) || (await this.#list('running')).includes(account)
  }

  /**
   * Names the accounts of this process to the others, and tells the operator of accounts that nobody has any more while
   * challenges that name them can be paid. To be called every few seconds. `payableMs`: how long a challenge can be paid.
   */
  async name(payableMs: number): Promise<void> {
    const { ledger } = this.#settings
    const now = ledger.now()
    if (now - this.#namedAt < NAMING_MS) return
    const isFirst = this.#namedAt === -Infinity
    this.#namedAt = now
    await Promise.all(
      this.#own.flatMap((account) => [
        ledger.addExpiring(this.#nameOf('running'), this.#factOf(account), now + RUNNING_MS),
        ledger.addExpiring(this.#nameOf('offered'), account, now + payableMs),
      ]),
    )
    // Another process may be about to start.
    if (!isFirst) await this.#miss()
  }

  /** This process settles nothing any more. */
  async leave(): Promise<void> {
    const { ledger } = this.#settings
    if (this.#namedAt === -Infinity) return
    await Promise.all(
      this.#own.map((account) =>
        ledger.addExpiring(this.#nameOf('running'), this.#factOf(account), ledger.now()),
      ),
    )
  }

  /** Several processes may have an account. */
  #factOf(account: Address): string {
    return `${account} ${this.#settings.owner}`
  }

  async #miss(): Promise<void> {
    const [running, offered] = await Promise.all([this.#list('running'), this.#list('offered')])
    for (const account of offered) {
      if (this.isOwn(account) || running.includes(account) || this.#missed.has(account)) continue
      this.#missed.add(account)
      this.#settings.report(
        `x402: challenges on ${this.#network} name ${account}, which no process settles with any more: what is paid to them by upto is refused, uncharged. Keep its key behind the new one until they are over`,
      )
    }
  }

  async #list(which: Which): Promise<readonly Address[]> {
    const { ledger } = this.#settings
    const facts = await ledger.listExpiring(this.#nameOf(which), ledger.now())
    return facts.flatMap((fact) => fact.split(' ').slice(0, 1)).filter(isAddress)
  }

  #nameOf(which: Which): string {
    return `accounts:${which}:${this.#network}`
  }
}

type Which = 'running' | 'offered'
