import { batchesOf, gasAtRisk, group } from './batch.ts'
import type { Account } from './account.ts'
import type { Fees, Sender } from './chain.ts'
import { bid, priceOfRevert } from './fees.ts'
import type { GasBalance } from './gas-balance.ts'
import { CHECK_ALONE_MS, CHECK_IN_BATCH_MS, type Multicall } from './multicall.ts'
import {
  FEES_TOO_HIGH,
  GAS_LOST,
  NO_GAS,
  SENDER_UNFUNDED,
  TOO_LATE,
  type Ready,
  type SendResult,
  type SignerBusy,
  type Waiting,
} from './transaction.ts'
import { SHORTEST_MS } from './unmined.ts'

/** How long a passed check stays valid. */
export const CHECKED_MS = 2_000
/** How long a simulation before the work counts as the check of a payment that is sent alone. */
const SIMULATED_MS = 500
/** Pause before a request asks again for its part of the budget of lost gas. */
const BUDGET_PAUSE_MS = 200

interface CheckSettings {
  readonly account: Account
  readonly multicall: Multicall
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** Whether the request can still be mined before its payment expires. */
export function isInTime({ request: { expires } }: Waiting, now: number): boolean {
  return expires - now >= SHORTEST_MS
}

/** Decides which requests of one account can be sent now, and which of them together. */
export class BatchCheck {
  readonly #settings: CheckSettings
  readonly #balance: GasBalance
  readonly #enqueue: (waiting: Waiting) => void
  /** Requests that wait for their part of the budget. */
  readonly #postponed: Waiting[] = []
  #checking = 0

  /** `enqueue` takes requests that have to be checked once more, with others. */
  constructor(settings: CheckSettings, balance: GasBalance, enqueue: (waiting: Waiting) => void) {
    this.#settings = settings
    this.#balance = balance
    this.#enqueue = enqueue
  }

  /** Number of requests that will be in the queue again, or answered. */
  get waiting(): number {
    return this.#checking + this.#postponed.length
  }

  /** The requests that can be sent, by transaction; the others are answered. `promised`: wei that others will cost. */
  async prepare(
    present: readonly Waiting[],
    fees: Fees,
    promised: bigint,
  ): Promise<readonly (readonly Ready[])[]> {
    const { account, multicall } = this.#settings
    const affordable = await this.#price(present, fees, promised)
    const { together, alone } = await group(affordable, multicall, account.address)
    const checked = await Promise.all(alone.map((each) => this.#check(each)))
    const ready = alone.filter((_, place) => checked[place] === 'passed')
    const groups = [...batchesOf(together), ...ready.map((each) => [each])]
    const reserved = await Promise.all(groups.map((members) => this.#reserve(members, fees)))
    return reserved.filter(({ length }) => length > 0)
  }

  /** A slow check delays no other request: it continues alone, and its request returns to the queue. */
  async #check(ready: Ready): Promise<'passed' | 'done'> {
    const { request, price, checkedAt = -Infinity, resolve } = ready
    const { simulatedAt = -Infinity } = request
    const now = this.#settings.now()
    if (now - checkedAt < CHECKED_MS || now - simulatedAt < SIMULATED_MS) return 'passed'
    const sender = { from: this.#settings.account.address, gas: request.gas, ...price }
    const refusal = await request.check(sender, CHECK_IN_BATCH_MS)
    if (refusal === undefined) return 'passed'
    if (refusal === SENDER_UNFUNDED) {
      this.#balance.declareEmpty()
      resolve(NO_GAS)
    } else if (refusal.code === 'chain_unavailable') void this.#checkAlone(ready, sender)
    else resolve({ kind: 'refused', refusal })
    return 'done'
  }

  async #checkAlone(waiting: Waiting, sender: Sender): Promise<void> {
    this.#checking += 1
    const refusal = await waiting.request.check(sender, CHECK_ALONE_MS)
    this.#checking -= 1
    if (refusal === undefined) this.#enqueue({ ...waiting, checkedAt: this.#settings.now() })
    else waiting.resolve({ kind: 'refused', refusal })
  }

  /** The requests that the account can pay for in time. */
  async #price(present: readonly Waiting[], fees: Fees, others: bigint): Promise<readonly Ready[]> {
    const ready: Ready[] = []
    let promised = others
    for (const waiting of present) {
      const { gas, maxFeePerGas } = waiting.request
      const price = bid(fees, maxFeePerGas)
      const cost = gas * (price?.maxFeePerGas ?? 0n)
      if (price === undefined) void this.#decline(waiting, FEES_TOO_HIGH)
      else if (!(await this.#balance.covers(promised + cost, fees))) void this.#decline(waiting, NO_GAS)
      else if (!isInTime(waiting, this.#settings.now())) waiting.resolve(TOO_LATE)
      else {
        promised += cost
        ready.push({ ...waiting, price })
      }
    }
    return ready
  }

  /** The members whose possible loss is within the budget; the others wait for it without delaying anybody. */
  async #reserve(members: readonly Ready[], fees: Fees): Promise<readonly Ready[]> {
    const price = priceOfRevert(fees)
    const reserve = async (each: Ready, size: number): Promise<boolean> => {
      const held = await each.request.reserve(gasAtRisk(each, size) * price)
      if (held === 'lost') each.resolve(GAS_LOST)
      else if (held === 'in flight') this.#retryLater(each)
      return held === 'held'
    }
    const held = await Promise.all(members.map((each) => reserve(each, members.length)))
    const left = members.filter((_, place) => held[place])
    const [only] = left
    if (only === undefined || left.length > 1 || members.length === 1) return left
    return (await reserve(only, 1)) ? left : []
  }

  #retryLater({ price: _price, ...waiting }: Ready): void {
    this.#postponed.push(waiting)
    if (this.#postponed.length > 1) return
    void this.#settings.sleep(BUDGET_PAUSE_MS).then(() => {
      for (const each of this.#postponed.splice(0)) this.#enqueue(each)
    })
  }

  /** Checks whether somebody else has settled the payment, before the buyer is told that nothing was charged. */
  async #decline({ request, resolve }: Waiting, result: SendResult | SignerBusy): Promise<void> {
    const refusal = await request.check({ from: this.#settings.account.address }, CHECK_ALONE_MS)
    const isKnown = refusal !== undefined && refusal.code !== 'chain_unavailable'
    resolve(isKnown ? { kind: 'refused', refusal } : result)
  }
}
