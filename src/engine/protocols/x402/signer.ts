import type { Address } from '../../address.ts'
import type { Desk } from '../../ledger/claim.ts'
import { PATIENCE_MS, Turn } from '../../ledger/turn.ts'
import type { Network } from '../../networks.ts'
import type { Chain, Fees } from '../evm/chain.ts'
import type { Account } from './account.ts'
import { broadcast, BROADCAST_MS, type Broadcast } from './broadcast.ts'
import {
  IN_USE,
  NO_GAS,
  TAKEN_OVER,
  TOO_DEAR,
  TOO_LATE,
  UNREACHABLE,
  type Effort,
  type Errand,
  type Sent,
  type Unable,
} from './errand.ts'
import { bid } from './gas.ts'
import { allot, carryOn, leave, meet, taken, type Count } from './nonce.ts'
import { Purse } from './purse.ts'
import { answer, gaps, sentOf, writeDown, type Ready, type Signed, type Waiting } from './round.ts'

const FEES_MS = 4_000
/** A transaction needs a block or two before its time is over. */
const SHORTEST_MS = 3_000
/** Errands of one round: few enough that signing them holds nobody up, and that every pool takes them. */
const ROUND = 32
/** What a transfer of nothing to oneself costs. */
const FILLER_GAS = 21_000n

export interface SignerSettings extends Desk {
  readonly account: Account
  readonly chain: Chain
  readonly network: Network
  readonly sleep: (ms: number) => Promise<void>
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * Sends transactions from one account in rounds, each for all who wait: allocating the account nonces and broadcasting
 * happen under one lease of the ledger, so that neither concurrent requests nor other processes leave a gap or use a
 * nonce twice.
 */
export class Signer {
  readonly #settings: SignerSettings
  readonly #turn: Turn
  readonly #purse: Purse
  readonly #queue: Waiting[] = []
  #serving = 0
  #fence: number | undefined
  #count: Count | undefined
  #fees: { readonly value: Fees; readonly at: number } | undefined

  constructor(settings: SignerSettings) {
    const { account, network } = settings
    this.#settings = settings
    this.#turn = new Turn({
      ...settings,
      name: `signer:${network.chainId}:${account.address.toLowerCase()}`,
    })
    this.#purse = new Purse({ ...settings, address: account.address })
  }

  get address(): Address {
    return this.#settings.account.address
  }

  /** Errands that are not done yet. */
  get waiting(): number {
    return this.#queue.length + this.#serving
  }

  /** Records the signed transaction in the journal, then broadcasts it. Rejects when it cannot be recorded. */
  send(errand: Errand, effort: Effort): Promise<Sent | Unable> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ errand, effort, resolve, reject })
      if (this.waiting === 1) void this.#work()
    })
  }

  async #work(): Promise<void> {
    while (this.#queue.length > 0) {
      const round = this.#queue.splice(0, ROUND)
      this.#serving = round.length
      try {
        await this.#serve(round)
      } catch (fault) {
        for (const { reject } of round) reject(fault)
      }
      if (this.#queue.length === 0) await this.#turn.giveBack(leave(this.#count))
      else await this.#turn.share(leave(this.#count))
      this.#serving = 0
    }
  }

  async #serve(round: readonly Waiting[]): Promise<void> {
    const present = await this.#admit(round)
    if (present.length === 0) return
    const [fees, count, ...refusals] = await Promise.all([
      this.#currentFees(),
      this.#currentCount(),
      ...present.map(({ errand }) => errand.check(this.address)),
    ])
    if (fees === undefined || count === undefined) {
      answer(present, UNREACHABLE)
      return
    }
    const accepted = present.filter(({ resolve }, place) => {
      const refusal = refusals[place]
      if (refusal !== undefined) resolve({ kind: 'refused', refusal })
      return refusal === undefined
    })
    const ready = await this.#price(accepted, fees)
    const signed = await writeDown(ready, allot(count, ready.length), (each, nonce) =>
      this.#sign(each, nonce),
    )
    if (signed.length > 0) await this.#broadcast(signed)
  }

  /** Takes the account for those who can wait for it, and tells the others to ask somebody else. */
  async #admit(round: readonly Waiting[]): Promise<readonly Waiting[]> {
    const [hasty, patient] = [
      round.filter(({ effort }) => effort === 'at once'),
      round.filter(({ effort }) => effort === 'patiently'),
    ]
    const willing = this.#purse.isEmpty ? answer(hasty, NO_GAS) : hasty
    if (willing.length + patient.length === 0) return []
    if (await this.#take(0)) return [...willing, ...patient]
    answer(willing, IN_USE)
    if (patient.length === 0 || (await this.#take(PATIENCE_MS))) return patient
    return answer(patient, IN_USE)
  }

  /** Whoever may still be broadcasting holds the lease. */
  async #take(patience: number): Promise<boolean> {
    if (await this.#turn.keep(BROADCAST_MS)) return true
    const lease = await this.#turn.take(patience)
    if (lease === undefined) return false
    if (lease.fence !== this.#fence) this.#count = carryOn(lease.left)
    this.#fence = lease.fence
    return true
  }

  /** Those the account can pay for, in time. */
  async #price(accepted: readonly Waiting[], fees: Fees): Promise<readonly Ready[]> {
    const ready: Ready[] = []
    let promised = 0n
    for (const waiting of accepted) {
      const { gas, maxFeePerGas, expires } = waiting.errand
      const price = bid(fees, maxFeePerGas)
      const cost = gas * (price?.maxFeePerGas ?? 0n)
      if (price === undefined) waiting.resolve(TOO_DEAR)
      else if (!(await this.#purse.holds(promised + cost, fees))) waiting.resolve(NO_GAS)
      else if (expires - this.#settings.now() < SHORTEST_MS) waiting.resolve(TOO_LATE)
      else {
        promised += cost
        ready.push({ ...waiting, price, cost })
      }
    }
    return ready
  }

  #sign(ready: Ready, nonce: number): Signed {
    const { account, network } = this.#settings
    const { to, data, gas } = ready.errand
    const { raw, hash } = account.sign({
      chainId: network.chainId,
      nonce,
      to,
      data,
      gas,
      ...ready.price,
    })
    return { ready, transaction: { kind: 'own', raw, hash, signer: account.address, nonce } }
  }

  /** All at once: a node holds what comes too early until those below it are there. */
  async #broadcast(signed: readonly Signed[]): Promise<void> {
    if (!(await this.#turn.keep(BROADCAST_MS))) {
      for (const { ready } of signed) ready.resolve(TAKEN_OVER)
      return
    }
    const { chain } = this.#settings
    const outcomes = await Promise.all(
      signed.map(async ({ ready, transaction }) => {
        const outcome = await broadcast(chain, transaction.raw, this.#settings)
        // Nobody waits for an answer that another one's transaction does not get.
        ready.resolve(sentOf(outcome, transaction))
        return outcome
      }),
    )
    const nonces = signed.filter((_, place) => outcomes[place] === 'taken')
    if (this.#count !== undefined)
      this.#count = taken(
        this.#count,
        nonces.map(({ transaction }) => transaction.nonce),
      )
    for (const { ready } of nonces) this.#purse.spend(ready.cost)
    if (outcomes.includes('unfunded')) this.#purse.declareEmpty()
    await this.#fillGaps(signed, outcomes)
  }

  /**
   * What the node has taken above a nonce it has refused would wait until the next payment comes: a transfer of nothing
   * takes the place. A nonce of which nothing is known stays: the next transaction takes it, unless the chain has
   * counted this one by then.
   */
  async #fillGaps(signed: readonly Signed[], outcomes: readonly Broadcast[]): Promise<void> {
    const { account, chain, network } = this.#settings
    for (const { ready, transaction } of gaps(signed, outcomes)) {
      const { nonce } = transaction
      const filler = { to: account.address, data: '0x', gas: FILLER_GAS, ...ready.price } as const
      const { raw } = account.sign({ chainId: network.chainId, nonce, ...filler })
      const filled = await broadcast(chain, raw, this.#settings)
      if (filled === 'taken' && this.#count !== undefined) this.#count = taken(this.#count, [nonce])
    }
  }

  async #currentCount(): Promise<Count | undefined> {
    const { chain, now } = this.#settings
    const answered = await chain.nextNonce(this.address)
    if (answered.kind !== 'result') return undefined
    this.#count = meet(this.#count, Number(answered.result), now())
    return this.#count
  }

  async #currentFees(): Promise<Fees | undefined> {
    const { chain, now } = this.#settings
    if (this.#fees !== undefined && now() - this.#fees.at < FEES_MS) return this.#fees.value
    const answered = await chain.fees()
    if (answered.kind !== 'result') return undefined
    this.#fees = { value: answered.result, at: now() }
    return answered.result
  }
}
