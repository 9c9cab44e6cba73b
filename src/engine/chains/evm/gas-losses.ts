import type { Address } from '../../base/address.ts'
import { formatCoin } from './gas-balance.ts'
import type { Refusal } from '../../base/errors.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Network } from '../../base/networks.ts'
import { countedWith, shareOf, STANDINGS, type ByStanding, type Standing } from './gas-shares.ts'

/** A payer with so many reverted transactions within the time is refused until the first of them is that old. */
const MOST_REVERTS = 2
const HOUR_MS = 3_600_000
/** How old the known losses of other processes may be. */
const LOSSES_FRESH_MS = 5_000
/** Part of the share of new payers that is open to one whose only transaction has reverted. */
const SECOND_TRY = 4n

interface GasLossSettings {
  readonly network: Network
  readonly ledger: Ledger
  readonly now: () => number
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** A transaction of ours that was mined and has moved nothing. */
export interface Revert {
  /** Undefined when no payer is responsible. */
  readonly payer: Address | undefined
  readonly hash: string
  /** Tells the payments of one transaction apart. */
  readonly nonce: string
  /** Wei. */
  readonly gasCost: bigint
  /** Standing of the payer; a loss that nobody is responsible for counts against the whole budget. */
  readonly standing: Standing
}

/**
 * What reverted transactions have cost on one network, over all processes of the ledger. A payer may make them happen
 * (a contract wallet decides while it is carried out, anybody may move the money away after the simulation), so they
 * are counted by payer, by the standing of the payer, and altogether against a budget for each hour. `GasBudget` keeps
 * what is in flight within it.
 */
export class GasLosses {
  readonly #settings: GasLossSettings
  #spent: { readonly at: number; readonly losses: Promise<readonly Loss[]> } | undefined
  #closed = false
  #reverts = 0
  #gasLost = 0n

  constructor(settings: GasLossSettings) {
    this.#settings = settings
  }

  /** Totals of this process since its start. */
  get totals(): { readonly reverts: number; readonly gasLost: bigint; readonly isClosed: boolean } {
    return { reverts: this.#reverts, gasLost: this.#gasLost, isClosed: this.#closed }
  }

  /** Wei, within the last hour, over all processes. */
  async lastHour(): Promise<bigint> {
    const since = this.#settings.now() - HOUR_MS
    return sumOf((await this.#losses()).filter(({ at }) => at > since))
  }

  async add({ payer, hash, nonce, gasCost, standing }: Revert, budget: bigint): Promise<void> {
    const { ledger, network, now } = this.#settings
    this.#reverts += 1
    this.#gasLost += gasCost
    const fact = `${now()} ${gasCost} ${hash} ${nonce} ${standing}`
    const until = now() + HOUR_MS
    const names = payer === undefined ? [['all']] : [['all'], ['payer', payer.toLowerCase()]]
    await Promise.all(names.map((name) => ledger.addExpiring(this.#nameOf(...name), fact, until)))
    this.#spent = undefined
    const lost = sumOf(await this.#losses())
    this.#report(
      `transaction ${hash} for ${payer === undefined ? 'several payers' : `payer ${payer}`} reverted and cost ${formatCoin(gasCost)} ${network.coin}; ${formatCoin(lost)} of at most ${formatCoin(budget)} ${network.coin} were lost in the last hour`,
    )
  }

  /** Wei lost within the last hour; what other processes have lost in the last seconds may be missing. */
  async recent(): Promise<ByStanding> {
    return byStanding(await this.#losses())
  }

  /** Wei lost within the last hour, as the ledger knows it now. */
  async read(): Promise<ByStanding> {
    this.#spent = undefined
    return byStanding(await this.#losses())
  }

  /** Whether nothing is sent for this payer now. */
  async refuse(payer: Address, standing: Standing, budget: bigint): Promise<Refusal | undefined> {
    const { ledger, now } = this.#settings
    const [own, all] = await Promise.all([
      ledger.listExpiring(this.#nameOf('payer', payer.toLowerCase()), now()).then(readLosses),
      this.#losses(),
    ])
    const spent = sumOf(all)
    this.#noteClosed(spent >= budget, budget)
    const share = shareOf(standing, budget)
    // A payer with one revert gets a second try while few others have reverted.
    const room = standing === 'new' && own.length > 0 ? share / SECOND_TRY : share
    if (countedWith(standing, byStanding(all)) >= larger(room, 1n)) {
      const detail = 'too many transactions have failed on this network lately; nothing was charged'
      return { code: 'chain_unavailable', detail, retryAfter: this.#secondsUntilOver(all[0]) }
    }
    if (own.length < MOST_REVERTS) return undefined
    const detail = 'transactions for this payer have failed on the chain; nothing was charged'
    return { code: 'payer_suspended', detail, retryAfter: this.#secondsUntilOver(own.at(-MOST_REVERTS)) }
  }

  #noteClosed(isClosed: boolean, budget: bigint): void {
    if (isClosed === this.#closed) return
    this.#closed = isClosed
    const { coin } = this.#settings.network
    this.#report(
      isClosed
        ? `CLOSED: reverted transactions have cost ${formatCoin(budget)} ${coin} within an hour; nothing is sold on this network until that is an hour ago. The limit is max_gas_loss in payments.x402.limits`
        : 'open again: the gas that reverted transactions cost is within its limit',
    )
  }

  /** At most an hour, although the clock of the process that has recorded the loss may be ahead of this one. */
  #secondsUntilOver(loss: Loss | undefined): number {
    const now = this.#settings.now()
    const start = Math.min(loss?.at ?? 0, now)
    return Math.max(1, Math.ceil((start + HOUR_MS - now) / 1000))
  }

  #losses(): Promise<readonly Loss[]> {
    const { ledger, now } = this.#settings
    if (this.#spent === undefined || now() - this.#spent.at >= LOSSES_FRESH_MS)
      this.#spent = { at: now(), losses: ledger.listExpiring(this.#nameOf('all'), now()).then(readLosses) }
    const spent = this.#spent
    return spent.losses.catch((fault: unknown) => {
      if (this.#spent === spent) this.#spent = undefined
      throw fault
    })
  }

  #nameOf(...parts: readonly string[]): string {
    return ['reverts', this.#settings.network.chainId, ...parts].join(':')
  }

  #report(line: string): void {
    const { network, report } = this.#settings
    report(`x402: ${network.title} (${network.id}): ${line}`)
  }
}

interface Loss {
  readonly at: number
  /** Wei. */
  readonly gasCost: bigint
  readonly standing: Standing
}

/** Oldest first. */
function readLosses(facts: readonly string[]): readonly Loss[] {
  return facts
    .map((fact) => {
      const [at = '0', gasCost = '0', , , standing] = fact.split(' ')
      return {
        at: Number(at),
        gasCost: BigInt(gasCost),
        standing: STANDINGS.find((each) => each === standing) ?? 'known',
      }
    })
    .toSorted((a, b) => a.at - b.at)
}

function byStanding(losses: readonly Loss[]): ByStanding {
  const of = (standing: Standing): bigint => sumOf(losses.filter((loss) => loss.standing === standing))
  return { known: of('known'), new: of('new'), code: of('code') }
}

function sumOf(losses: readonly Loss[]): bigint {
  return losses.reduce((sum, { gasCost }) => sum + gasCost, 0n)
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
