import type { Address } from '../../base/address.ts'
import { type LeaseContext } from '../../ledger/lease.ts'
import { LOCK_PATIENCE_MS } from '../../base/money-times.ts'
import type { Network } from '../../base/networks.ts'
import { answer, batchOf } from './batch.ts'
import { BatchCheck, CHECKED_MS, isInTime } from './batch-check.ts'
import { persist } from './record-dispatch.ts'
import { forgetBatch } from './kept-batch.ts'
import { mostCalls, type Multicall } from './multicall.ts'
import { type Account } from './account.ts'
import { type FeeOracle } from './fees.ts'
import { NonceLease } from './nonces.ts'
import { GasBalance } from './gas-balance.ts'
import { UnminedTransactions } from './unmined.ts'
import { fillGaps } from './nonce-gaps.ts'
import { broadcast, BROADCAST_MS, type Broadcast } from './broadcast.ts'
import type { Chain } from './chain.ts'
import {
  IN_USE,
  NO_GAS,
  NOT_TAKEN,
  STUCK,
  TAKEN_OVER,
  UNREACHABLE,
  type Ready,
  type SendResult,
  type Signed,
  type Submission,
  type SignerBusy,
  type TransactionRequest,
  type WaitMode,
  type Waiting,
} from './transaction.ts'

/** Interval of the maintenance of unmined transactions. */
const MAINTENANCE_MS = 2_000
/** How long payments wait for the previous transaction in order to share the next one, and how often it is checked. */
const GATHER_MS = 100
const GATHER_LOOKS = 20
/** A request fails when other transactions hold this many of its nonces. */
const MOST_DISPLACED = 3

interface SignerSettings extends LeaseContext {
  readonly account: Account
  readonly chain: Chain
  readonly network: Network
  readonly fees: FeeOracle
  readonly multicall: Multicall
  readonly sleep: (ms: number) => Promise<void>
  /** Receives a line for the operator. */
  readonly report: (line: string) => void
}

/** Requests that may be sent now, by transaction. */
interface Prepared {
  readonly groups: readonly (readonly Ready[])[]
  /** When their checks began, in milliseconds since the epoch. */
  readonly at: number
}

/** Transactions with nonces that were counted under this fence of the account. */
interface Recorded {
  readonly signed: readonly Signed[]
  readonly fence: number | undefined
}

/**
 * Sends the waiting transactions of one account together, and those that can share one transaction in a batch.
 * Allocates nonces and broadcasts under one lease of the ledger, so that neither concurrent requests nor other
 * processes leave a gap or use a nonce twice. While one batch is broadcast, the next one is checked.
 */
export class Signer {
  readonly #settings: SignerSettings
  readonly #nonces: NonceLease
  readonly #checks: BatchCheck
  readonly balance: GasBalance
  readonly #unmined: UnminedTransactions
  #queue: Waiting[] = []
  #working = false
  #inBatch = 0
  /** Ends when `#beingSent` is broadcast. Never rejects. */
  #sending: Promise<void> | undefined
  #beingSent: readonly Signed[] = []
  #arrived: (() => void) | undefined
  #stop: (() => void) | undefined
  #maintenanceDue = false
  #sentAt = -Infinity

  constructor(settings: SignerSettings) {
    const { account, network } = settings
    this.#settings = settings
    this.balance = new GasBalance({ ...settings, address: account.address })
    this.#unmined = new UnminedTransactions(settings)
    this.#checks = new BatchCheck(settings, this.balance, (waiting) => this.#enqueue(waiting))
    this.#nonces = new NonceLease({
      ...settings,
      name: `signer:${network.chainId}:${account.address.toLowerCase()}`,
      foreign: (from, to) => this.#unmined.addForeign(from, to),
    })
  }

  get address(): Address {
    return this.#settings.account.address
  }

  /** Number of unfinished requests. */
  get waiting(): number {
    const { length: sending } = this.#beingSent.flatMap(({ members }) => members)
    return this.#queue.length + this.#inBatch + sending + this.#checks.waiting
  }

  get unmined(): Pick<UnminedTransactions, 'count' | 'age' | 'isStuck' | 'totals'> {
    return this.#unmined
  }

  /** Records the signed transaction in the journal, then broadcasts it. Rejects when it cannot be recorded. */
  send(request: TransactionRequest, mode: WaitMode): Promise<SendResult | SignerBusy> {
    return new Promise((resolve, reject) => {
      this.#enqueue({ request, mode, resolve, reject, displaced: 0 })
    })
  }

  #enqueue(waiting: Waiting): void {
    this.#queue.push(waiting)
    this.#arrived?.()
    void this.#work()
  }

  /** Asks the chain for what the next transaction needs, unless it is known. */
  prepare(): void {
    this.#nonces.prepare()
  }

  /** A transaction of a process that has died was sent again: should nonces below it be missing, they are filled. */
  markResent(nonce: number): void {
    this.#unmined.addForeign(nonce, nonce + 1)
    if (!this.#working) this.#schedule()
  }

  async #work(): Promise<void> {
    if (this.#working) return
    this.#working = true
    while (this.#queue.length > 0 || this.#maintenanceDue || this.#sending !== undefined) {
      if (this.#maintenanceDue) {
        await this.#sending
        await this.#maintain().catch(() => undefined)
      }
      if (this.#queue.length > 0) await this.#next()
      else await this.#arrivalOrSent()
      if (this.#queue.length > 0 && !this.#nonces.isTurnOver) continue
      // Nothing may be on its way when another process gets the account.
      if (this.#queue.length > 0) await this.#sending
      if (this.#sending !== undefined) continue
      await (this.#queue.length === 0 ? this.#nonces.release() : this.#nonces.yieldIfContended())
    }
    this.#working = false
    this.#schedule()
  }

  /** Checks a batch while the one before is broadcast, then records it and begins to broadcast it. */
  async #next(): Promise<void> {
    for (let looks = 0; looks < GATHER_LOOKS && this.#gathers(); looks += 1)
      await this.#settings.sleep(GATHER_MS / GATHER_LOOKS)
    const batch = this.#queue.splice(0, this.#most)
    this.#inBatch += batch.length
    try {
      const prepared = await this.#prepare(batch)
      await this.#sending
      const recorded = prepared && (await this.#record(prepared))
      if (recorded !== undefined) this.#begin(recorded)
    } catch (fault) {
      for (const { reject } of batch) reject(fault)
    }
    this.#inBatch -= batch.length
  }

  #begin({ signed, fence }: Recorded): void {
    this.#sentAt = this.#settings.now()
    this.#beingSent = signed
    const sending = this.#broadcast(signed, fence)
      .catch((fault: unknown) => {
        for (const { reject } of signed.flatMap(({ members }) => members)) reject(fault)
      })
      .then(() => {
        this.#beingSent = []
        this.#sending = undefined
      })
    this.#sending = sending
  }

  async #arrivalOrSent(): Promise<void> {
    if (this.#sending === undefined) return
    const arrival = new Promise<void>((resolve) => (this.#arrived = resolve))
    await Promise.race([this.#sending, arrival])
    this.#arrived = undefined
  }

  /** Requests of one transaction at most. */
  get #most(): number {
    return mostCalls(this.#settings.fees.last?.blockGas)
  }

  /** Whether requests wait for the previous transaction to be in a block, for a short time at most. */
  #gathers(): boolean {
    const isOnItsWay = this.#sending !== undefined || this.#unmined.count > 0
    if (!isOnItsWay || this.#settings.now() - this.#sentAt >= GATHER_MS) return false
    return this.#queue.length < this.#most && this.#settings.multicall.isAvailable
  }

  /** Replaces unmined transactions on a timer, so that this does not depend on another payment. */
  #schedule(): void {
    if (this.#unmined.isEmpty) {
      this.#stop?.()
      this.#stop = undefined
    } else
      this.#stop ??= this.#settings.every(MAINTENANCE_MS, () => {
        this.#maintenanceDue = true
        this.#arrived?.()
        void this.#work()
      })
  }

  async #maintain(): Promise<void> {
    this.#maintenanceDue = false
    if (!this.#unmined.isDue) return
    const progress = await this.#unmined.dropMined()
    if (!this.#unmined.isDue || !(await this.#nonces.acquire(BROADCAST_MS, 0))) return
    const fees = await this.#settings.fees.current()
    if (fees !== undefined && (await this.#unmined.maintain(fees, progress)) === 'went back')
      this.#nonces.reset()
  }

  /** Checks and prices the requests; those that cannot be sent are answered. */
  async #prepare(batch: readonly Waiting[]): Promise<Prepared | undefined> {
    const present = await this.#admit(batch)
    if (present.length === 0) return undefined
    const [fees, nonces] = await Promise.all([this.#settings.fees.current(), this.#nonces.current()])
    if (fees === undefined || nonces === undefined) {
      answer(present, UNREACHABLE)
      return undefined
    }
    const at = this.#settings.now()
    const promised = this.#beingSent.reduce((sum, { call, price }) => sum + call.gas * price.maxFeePerGas, 0n)
    return { groups: await this.#checks.prepare(present, fees, promised), at }
  }

  /** Signs and records what is prepared, one transaction for each group. */
  async #record({ groups, at }: Prepared): Promise<Recorded | undefined> {
    const { ledger, now } = this.#settings
    const all = groups.flat()
    if (all.length === 0) return undefined
    const isCurrent = now() - at < CHECKED_MS && all.every((each) => isInTime(each, now()))
    // What was checked while a slow node had the batch before is checked again.
    if (!isCurrent || !(await this.#nonces.acquire(BROADCAST_MS, 0))) {
      for (const { price: _price, ...each } of all) this.#enqueue(each)
      return undefined
    }
    const { fence } = this.#nonces
    const nonces = await this.#nonces.current()
    if (nonces === undefined) {
      answer(all, UNREACHABLE)
      return undefined
    }
    const signed = await persist(ledger, groups.flatMap(batchOf), nonces, (each, nonce) =>
      this.#sign(each, nonce),
    )
    return signed.length === 0 ? undefined : { signed, fence }
  }

  /** Acquires the account for requests that can wait for it, and returns the others for another signer. */
  async #admit(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    const hasty = batch.filter(({ mode }) => mode === 'at once')
    const patient = batch.filter(({ mode }) => mode === 'patiently')
    // Anything sent now would wait for the unmined transaction and be executed after its payment has expired.
    if (this.#unmined.isStuck) return answer(batch, STUCK)
    const willing = this.balance.isEmpty ? answer(hasty, NO_GAS) : hasty
    const both = [...willing, ...patient]
    if (both.length === 0 || (await this.#nonces.acquire(BROADCAST_MS, 0))) return both
    answer(willing, IN_USE)
    if (patient.length === 0 || (await this.#nonces.acquire(BROADCAST_MS, LOCK_PATIENCE_MS))) return patient
    return answer(patient, IN_USE)
  }

  #sign(submission: Submission, nonce: number): Signed {
    const { account, network } = this.#settings
    const { to, data, gas } = submission.call
    const signed = account.sign({ chainId: network.chainId, nonce, to, data, gas, ...submission.price })
    return { ...submission, transaction: { kind: 'own', ...signed, signer: account.address, nonce } }
  }

  /** Broadcasts all at once: a node holds a transaction until those with lower nonces have arrived. */
  async #broadcast(signed: readonly Signed[], fence: number | undefined): Promise<void> {
    if (!(await this.#nonces.extend(BROADCAST_MS, fence))) {
      await Promise.all(signed.map((each) => this.#conclude(each, 'taken over')))
      return
    }
    const outcomes = await Promise.all(
      signed.map(async (each) => {
        const outcome = await broadcast(this.#settings.chain, each.transaction, this.#settings)
        await this.#conclude(each, outcome)
        return outcome
      }),
    )
    const held = signed.filter((_, place) => outcomes[place] === 'taken' || outcomes[place] === 'occupied')
    if (outcomes.some((outcome) => outcome !== 'taken')) this.#nonces.doubt()
    this.#nonces.markTaken(held.map(({ transaction }) => transaction.nonce))
    if (outcomes.includes('unfunded')) this.balance.declareEmpty()
    this.#nonces.markTaken(await fillGaps(this.#settings, signed, outcomes))
  }

  async #conclude(signed: Signed, outcome: Broadcast | 'taken over'): Promise<void> {
    const { members, call, price, transaction } = signed
    const isKept = outcome === 'taken' || outcome === 'unknown' || outcome === 'taken over'
    // Otherwise it could be sent again for one payment after the buyer of another was told "not charged".
    const isOver = isKept || (await forgetBatch(this.#settings.ledger, signed))
    switch (isOver ? outcome : 'unknown') {
      case 'taken':
        this.balance.spend(call.gas * price.maxFeePerGas)
        this.#sentAt = this.#settings.now()
        answer(members, { kind: 'sent', transaction, ...this.#unmined.add(signed) })
        return
      case 'refused':
        if (members.length === 1) answer(members, NOT_TAKEN)
        else {
          this.#settings.multicall.pause()
          for (const member of members) this.#enqueue(member)
        }
        return
      case 'unfunded':
        answer(members, NOT_TAKEN)
        return
      case 'taken over':
        // A batch may have been sent again for one of its payments by the process that has taken over.
        answer(members, members.length === 1 ? TAKEN_OVER : { kind: 'unknown', transaction })
        return
      case 'occupied':
        // Sign again with another nonce. The money moves once even if both are mined.
        for (const member of members)
          if (member.displaced < MOST_DISPLACED) this.#enqueue({ ...member, displaced: member.displaced + 1 })
          else member.resolve({ kind: 'unknown', transaction })
        return
      case 'unknown':
        answer(members, { kind: 'unknown', transaction })
    }
  }
}
