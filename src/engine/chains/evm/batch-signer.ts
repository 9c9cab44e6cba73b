import { signRecoverable } from 'tiny-secp256k1'
import { privateKeyToAddress } from 'viem/accounts'
import { bytesToHex, hexToBytes, keccak256, serializeTransaction } from 'viem/utils'
import type { Address } from '../../address.ts'
import { type LeaseContext, ACQUIRE_TIMEOUT_MS } from '../../ledger/lease.ts'
import type { Network } from '../../networks.ts'
import { bid, GasBalance, type FeeOracle } from './fees.ts'
import { allocate, fillerOf, NonceLease, SHORTEST_MS, UnminedTransactions } from './nonce.ts'
import { broadcast, BROADCAST_MS, type Broadcast, type Chain, type Fees, type Sender } from './rpc.ts'
import {
  FEES_TOO_HIGH,
  IN_USE,
  NO_GAS,
  NOT_TAKEN,
  SENDER_UNFUNDED,
  STUCK,
  TAKEN_OVER,
  TOO_LATE,
  UNREACHABLE,
  type Account,
  type Ready,
  type SendResult,
  type Signed,
  type SignerBusy,
  type TransactionRequest,
  type WaitMode,
  type Waiting,
} from './transaction.ts'

/** An account whose private key is in this process. */
export function openAccount(key: `0x${string}`): Account {
  const secret = hexToBytes(key)
  return {
    address: privateKeyToAddress(key),
    sign: (unsigned) => {
      const transaction = { type: 'eip1559', ...unsigned } as const
      const digest = keccak256(serializeTransaction(transaction), 'bytes')
      // Compiled code: a fifth of the time, which every payment of a batch waits for.
      const { signature, recoveryId } = signRecoverable(digest, secret)
      const [r, s] = [bytesToHex(signature.subarray(0, 32)), bytesToHex(signature.subarray(32))]
      const raw = serializeTransaction(transaction, { r, s, yParity: recoveryId })
      return { raw, hash: keccak256(raw) }
    },
  }
}

/** Requests of one batch: few enough that signing them holds nobody up, and that every pool takes them. */
const BATCH = 32
/** How often transactions that are not mined are maintained. */
const MAINTENANCE_MS = 2_000
/** How long a check may delay a batch, how long one may take by itself, and how long a passed one is good for. */
const CHECK_IN_BATCH_MS = 400
const CHECK_ALONE_MS = 5_000
const CHECKED_MS = 2_000
/** A request gives up when other transactions hold this many of its nonces. */
const MOST_DISPLACED = 3

interface SignerSettings extends LeaseContext {
  readonly account: Account
  readonly chain: Chain
  readonly network: Network
  readonly fees: FeeOracle
  readonly sleep: (ms: number) => Promise<void>
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * Sends transactions from one account in batches, each of all that wait: allocating the account nonces and broadcasting
 * happen under one lease of the ledger, so that neither concurrent requests nor other processes leave a gap or use a
 * nonce twice.
 */
export class Signer {
  readonly #settings: SignerSettings
  readonly #nonces: NonceLease
  readonly balance: GasBalance
  readonly #unmined: UnminedTransactions
  #queue: Waiting[] = []
  #working = false
  #inBatch = 0
  #checking = 0
  #timer: NodeJS.Timeout | undefined
  #maintenanceDue = false

  constructor(settings: SignerSettings) {
    const { account, network } = settings
    this.#settings = settings
    this.balance = new GasBalance({ ...settings, address: account.address })
    this.#unmined = new UnminedTransactions(settings)
    this.#nonces = new NonceLease({
      ...settings,
      name: `signer:${network.chainId}:${account.address.toLowerCase()}`,
      foreign: (from, to) => this.#unmined.addForeign(from, to),
    })
  }

  get address(): Address {
    return this.#settings.account.address
  }

  /** Requests that are not done yet. */
  get waiting(): number {
    return this.#queue.length + this.#inBatch + this.#checking
  }

  get unmined(): Pick<UnminedTransactions, 'count' | 'age' | 'isStuck'> {
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
    void this.#work()
  }

  async #work(): Promise<void> {
    if (this.#working) return
    this.#working = true
    while (this.#queue.length > 0 || this.#maintenanceDue) {
      if (this.#maintenanceDue) await this.#maintain().catch(() => undefined)
      const batch = this.#queue.splice(0, BATCH)
      this.#inBatch = batch.length
      try {
        if (batch.length > 0) await this.#serve(batch)
      } catch (fault) {
        for (const { reject } of batch) reject(fault)
      }
      await (this.#queue.length === 0 ? this.#nonces.release() : this.#nonces.yieldIfContended())
      this.#inBatch = 0
    }
    this.#working = false
    this.#schedule()
  }

  /** Nobody has to come and pay for the transactions that are not mined to be replaced. */
  #schedule(): void {
    if (this.#unmined.isEmpty) {
      clearInterval(this.#timer)
      this.#timer = undefined
    } else if (this.#timer === undefined) {
      this.#timer = setInterval(() => {
        this.#maintenanceDue = true
        void this.#work()
      }, MAINTENANCE_MS)
      this.#timer.unref()
    }
  }

  async #maintain(): Promise<void> {
    this.#maintenanceDue = false
    if (!this.#unmined.isDue || !(await this.#nonces.acquire(BROADCAST_MS, 0))) return
    const fees = await this.#settings.fees.current()
    if (fees !== undefined && (await this.#unmined.maintain(fees)) === 'went back') this.#nonces.reset()
  }

  async #serve(batch: readonly Waiting[]): Promise<void> {
    const present = await this.#admit(batch)
    if (present.length === 0) return
    const [fees, nonces] = await Promise.all([this.#settings.fees.current(), this.#nonces.sync()])
    if (fees === undefined || nonces === undefined) {
      answer(present, UNREACHABLE)
      return
    }
    const affordable = await this.#price(present, fees)
    const checked = await Promise.all(affordable.map((each) => this.#check(each)))
    const ready = affordable.filter((_, place) => checked[place] === 'passed')
    const signed = await persist(ready, allocate(nonces, ready.length), (each, nonce) =>
      this.#sign(each, nonce),
    )
    if (signed.length > 0) await this.#broadcast(signed)
  }

  /** Takes the account for those who can wait for it, and sends the others to another signer. */
  async #admit(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    const hasty = batch.filter(({ mode }) => mode === 'at once')
    const patient = batch.filter(({ mode }) => mode === 'patiently')
    // Whatever is sent now would wait for the one that is not mined, and be carried out when its payment has expired.
    if (this.#unmined.isStuck) return answer(batch, STUCK)
    const willing = this.balance.isEmpty ? answer(hasty, NO_GAS) : hasty
    const both = [...willing, ...patient]
    if (both.length === 0 || (await this.#nonces.acquire(BROADCAST_MS, 0))) return both
    answer(willing, IN_USE)
    if (patient.length === 0 || (await this.#nonces.acquire(BROADCAST_MS, ACQUIRE_TIMEOUT_MS))) return patient
    return answer(patient, IN_USE)
  }

  /** A check that is slow holds up nobody: it goes on alone, and its request comes back to the queue. */
  async #check(ready: Ready): Promise<'passed' | 'done'> {
    const { request, price, checkedAt = -Infinity, resolve } = ready
    if (this.#settings.now() - checkedAt < CHECKED_MS) return 'passed'
    const sender = { from: this.address, gas: request.gas, ...price }
    const refusal = await request.check(sender, CHECK_IN_BATCH_MS)
    if (refusal === undefined) return 'passed'
    if (refusal === SENDER_UNFUNDED) {
      this.balance.declareEmpty()
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

  /** Those the account can pay for, in time. */
  async #price(present: readonly Waiting[], fees: Fees): Promise<readonly Ready[]> {
    const ready: Ready[] = []
    let promised = 0n
    for (const waiting of present) {
      const { gas, maxFeePerGas, expires } = waiting.request
      const price = bid(fees, maxFeePerGas)
      const cost = gas * (price?.maxFeePerGas ?? 0n)
      if (price === undefined) void this.#decline(waiting, FEES_TOO_HIGH)
      else if (!(await this.balance.covers(promised + cost, fees))) void this.#decline(waiting, NO_GAS)
      else if (expires - this.#settings.now() < SHORTEST_MS) waiting.resolve(TOO_LATE)
      else {
        promised += cost
        ready.push({ ...waiting, price, cost })
      }
    }
    return ready
  }

  /** Somebody else may have carried it out: that is seen before anybody says that nothing was charged. */
  async #decline({ request, resolve }: Waiting, result: SendResult | SignerBusy): Promise<void> {
    const refusal = await request.check({ from: this.address }, CHECK_ALONE_MS)
    const isKnown = refusal !== undefined && refusal.code !== 'chain_unavailable'
    resolve(isKnown ? { kind: 'refused', refusal } : result)
  }

  #sign(ready: Ready, nonce: number): Signed {
    const { account, network } = this.#settings
    const { to, data, gas } = ready.request
    const signed = account.sign({ chainId: network.chainId, nonce, to, data, gas, ...ready.price })
    return { ready, transaction: { kind: 'own', ...signed, signer: account.address, nonce } }
  }

  /** All at once: a node holds what comes too early until those below it are there. */
  async #broadcast(signed: readonly Signed[]): Promise<void> {
    if (!(await this.#nonces.extend(BROADCAST_MS))) {
      for (const { ready } of signed) ready.resolve(TAKEN_OVER)
      return
    }
    const outcomes = await Promise.all(
      signed.map(async (each) => {
        const outcome = await broadcast(this.#settings.chain, each.transaction, this.#settings)
        // Nobody waits for an answer that another one's transaction does not get.
        this.#conclude(each, outcome)
        return outcome
      }),
    )
    const held = signed.filter((_, place) => outcomes[place] === 'taken' || outcomes[place] === 'occupied')
    this.#nonces.markTaken(held.map(({ transaction }) => transaction.nonce))
    if (outcomes.includes('unfunded')) this.balance.declareEmpty()
    await this.#fillGaps(signed, outcomes)
  }

  #conclude(signed: Signed, outcome: Broadcast): void {
    const { ready, transaction } = signed
    switch (outcome) {
      case 'taken': {
        this.balance.spend(ready.cost)
        ready.resolve({ kind: 'sent', transaction, ...this.#unmined.add(signed) })
        return
      }
      case 'refused':
      case 'unfunded':
        ready.resolve(NOT_TAKEN)
        return
      case 'occupied':
        // Signed anew with another nonce. Should this one be in a pool all the same, the money moves once: both carry
        // the same authorization.
        if (ready.displaced < MOST_DISPLACED) this.#enqueue({ ...ready, displaced: ready.displaced + 1 })
        else ready.resolve({ kind: 'unknown', transaction })
        return
      case 'unknown':
        ready.resolve({ kind: 'unknown', transaction })
    }
  }

  /**
   * What the node has taken above a nonce it has refused would wait until the next payment comes: a transfer of nothing
   * takes the place. A nonce of which nothing is known stays: the next transaction takes it, unless the chain has
   * counted this one by then.
   */
  async #fillGaps(signed: readonly Signed[], outcomes: readonly Broadcast[]): Promise<void> {
    const { account, chain, network } = this.#settings
    const highest = outcomes.lastIndexOf('taken')
    for (const [place, { ready, transaction }] of signed.entries()) {
      const outcome = outcomes[place]
      if (place > highest || (outcome !== 'refused' && outcome !== 'unfunded')) continue
      const { nonce } = transaction
      const filler = { ...fillerOf(account), chainId: network.chainId, nonce, ...ready.price }
      const filled = await broadcast(chain, account.sign(filler), this.#settings)
      if (filled === 'taken') this.#nonces.markTaken([nonce])
    }
  }
}

/** Signs and records; the nonce of one that cannot be recorded would be a gap, so those after it are signed anew. */
async function persist(
  ready: readonly Ready[],
  nonces: readonly number[],
  sign: (ready: Ready, nonce: number) => Signed,
): Promise<readonly Signed[]> {
  const recorded: Signed[] = []
  let rest = ready
  while (rest.length > 0) {
    const free = nonces.slice(recorded.length)
    const signed = rest.flatMap((each, place) => {
      const nonce = free[place]
      return nonce === undefined ? [] : [sign(each, nonce)]
    })
    const written = await Promise.allSettled(
      signed.map(({ ready: { request }, transaction }) => request.journal.record(transaction)),
    )
    const gap = written.findIndex(({ status }) => status === 'rejected')
    const [end, fault] = [gap === -1 ? rest.length : gap, written[gap]]
    if (fault?.status === 'rejected') rest[gap]?.reject(fault.reason)
    recorded.push(...signed.slice(0, end))
    rest = rest.slice(end + 1)
  }
  return recorded
}

/** Nobody is left afterwards. */
function answer(waiting: readonly Waiting[], result: SendResult | SignerBusy): readonly [] {
  for (const { resolve } of waiting) resolve(result)
  return []
}

/** The accounts that pay the gas on one network. */
export class SignerPool {
  readonly #signers: readonly Signer[]
  #next = 0

  constructor(signers: readonly Signer[]) {
    this.#signers = signers
  }

  /** The accounts that may send now, if they can pay for the gas; empty when the chain includes nothing of theirs. */
  get ready(): readonly Address[] {
    return this.#signers.filter(({ unmined }) => !unmined.isStuck).map(({ address }) => address)
  }

  /** Wei by account, of those that are known. */
  get balances(): ReadonlyMap<Address, bigint> {
    return new Map(
      this.#signers.flatMap(({ address, balance: { known } }) =>
        known === undefined ? [] : [[address, known]],
      ),
    )
  }

  get unmined(): { readonly count: number; readonly age: number } {
    const all = this.#signers.map(({ unmined }) => unmined)
    return {
      count: all.reduce((sum, { count }) => sum + count, 0),
      age: Math.max(0, ...all.map(({ age }) => age)),
    }
  }

  /**
   * Has the signer with the shortest queue send it. One that cannot now, for want of gas or because another process has
   * the account, is passed over; when all are, they are waited for. Rejects when the transaction cannot be recorded.
   */
  async send(request: TransactionRequest): Promise<SendResult> {
    const signers = this.#byQueue()
    let detail = 'there is no signer'
    for (const mode of signers.length > 1 ? (['at once', 'patiently'] as const) : (['patiently'] as const))
      for (const signer of signers) {
        const result = await signer.send(request, mode)
        if (result.kind !== 'busy') return result
        detail = result.detail
      }
    return { kind: 'unsent', detail }
  }

  /** Shortest queue first; among equals, each in its turn. */
  #byQueue(): readonly Signer[] {
    const turned = [...this.#signers.slice(this.#next), ...this.#signers.slice(0, this.#next)]
    const ordered = turned.toSorted((a, b) => a.waiting - b.waiting)
    const [first] = ordered
    if (first !== undefined) this.#next = (this.#signers.indexOf(first) + 1) % this.#signers.length
    return ordered
  }
}
