import type { Address } from '../../address.ts'
import type { LeaseState } from '../../ledger/ledger.ts'
import { DistributedLock, type LockSettings } from '../../ledger/lease.ts'
import type { Network } from '../../networks.ts'
import { bid, raise, type Bid } from './fees.ts'
import { broadcast, type Chain, type Clock, type Fees, type TransactionReceipt } from './rpc.ts'
import type { Account, Signed, TransactionRequest, Tracked } from './transaction.ts'

/**
 * How long a node may take to count a transaction that it, or another node behind the same address, has accepted:
 * several blocks of every network of the table.
 */
export const CATCH_UP_MS = 30_000

/** Which nonces of an account come next. */
export interface NonceState {
  readonly next: number
  /** Nonces above the next one that the node has accepted: they wait for those below. */
  readonly ahead: readonly number[]
  /** When the chain last agreed, or was last seen to catch up: milliseconds since the epoch. */
  readonly at: number
  /** The chain's own count at its highest, as far as this process has seen it. */
  readonly seen: number | undefined
}

/**
 * The higher of what we and the chain have counted: we are ahead while a node does not show yet what it has accepted,
 * the chain is when the key was used elsewhere.
 *
 * A chain that stays behind us for `CATCH_UP_MS` without moving has lost a transaction (a recorded one never reached the
 * node, or a node forgot its pool), and everything above would wait for it for ever: from there on the chain's count
 * holds. That is safe when it is wrong, for then two transactions compete for one nonce: the node refuses the second,
 * or one of them is never carried out, and what becomes of each payment is read from the chain by its authorization,
 * which moves money once whichever transaction carries it.
 */
export function sync(state: NonceState | undefined, seen: number, now: number): NonceState {
  if (state === undefined) return { next: seen, ahead: [], at: now, seen }
  if (seen >= state.next) return { ...closeUp(seen, state.ahead), at: now, seen }
  if (state.seen !== undefined && seen > state.seen) return { ...state, at: now, seen }
  if (now - state.at > CATCH_UP_MS) return { next: seen, ahead: [], at: now, seen }
  return { ...state, seen: Math.max(seen, state.seen ?? seen) }
}

/** The nonces for so many transactions, lowest first. */
export function allocate({ next, ahead }: NonceState, amount: number): readonly number[] {
  const nonces: number[] = []
  for (let nonce = next; nonces.length < amount; nonce += 1) if (!ahead.includes(nonce)) nonces.push(nonce)
  return nonces
}

/** The node has transactions with these nonces; one below them that it has not is the next. */
export function markTaken(state: NonceState, nonces: readonly number[]): NonceState {
  return { ...state, ...closeUp(state.next, [...state.ahead, ...nonces]) }
}

/** Goes on where another process has stopped. */
export function restore(left: LeaseState | undefined): NonceState | undefined {
  return left === undefined ? undefined : { next: left.value, ahead: [], at: left.at, seen: undefined }
}

export function snapshot(state: NonceState | undefined): LeaseState | undefined {
  return state === undefined ? undefined : { value: state.next, at: state.at }
}

function closeUp(start: number, used: readonly number[]): Pick<NonceState, 'next' | 'ahead'> {
  let next = start
  while (used.includes(next)) next += 1
  return { next, ahead: used.filter((nonce) => nonce > next) }
}

interface NonceLeaseSettings extends LockSettings {
  readonly account: { readonly address: Address }
  readonly chain: Chain
  /** Called with nonces from the first up to the second that somebody else has left in the pool. */
  readonly foreign: (from: number, to: number) => void
}

/** The nonces of one account, for as long as this process holds its lease in the ledger. */
export class NonceLease {
  readonly #settings: NonceLeaseSettings
  readonly #lock: DistributedLock
  #fence: number | undefined
  #state: NonceState | undefined

  constructor(settings: NonceLeaseSettings) {
    this.#settings = settings
    this.#lock = new DistributedLock(settings)
  }

  /** Whether the account is this process’s for the next `ms` milliseconds; waits for it for `patience`. */
  async acquire(ms: number, patience: number): Promise<boolean> {
    if (await this.#lock.extend(ms)) return true
    const lease = await this.#lock.acquire(patience)
    if (lease === undefined) return false
    // What this process knows of the pool is still true when nobody has held the lease in between.
    const alone = this.#fence !== undefined && lease.fencingToken - this.#fence <= 1
    if (!alone || this.#state === undefined) this.#state = restore(lease.leaseState)
    this.#fence = lease.fencingToken
    return true
  }

  /** Whether the account is still this process’s, and will be for the next `ms` milliseconds. */
  extend(ms: number): Promise<boolean> {
    return this.#lock.extend(ms)
  }

  release(): Promise<void> {
    return this.#lock.release(snapshot(this.#state))
  }

  yieldIfContended(): Promise<void> {
    return this.#lock.yieldIfContended(snapshot(this.#state))
  }

  /** Asks the chain; undefined when it does not say. */
  async sync(): Promise<NonceState | undefined> {
    const { account, chain, now, foreign } = this.#settings
    const pending = await chain.nextNonce(account.address)
    if (pending.kind !== 'result') return undefined
    if (this.#state?.seen === undefined) {
      const head = await chain.blockNumber()
      const mined = head.kind === 'result' ? await chain.minedNonce(account.address, head.result) : head
      if (mined.kind === 'result') foreign(Number(mined.result), Number(pending.result))
    }
    this.#state = sync(this.#state, Number(pending.result), now())
    return this.#state
  }

  markTaken(nonces: readonly number[]): void {
    if (this.#state !== undefined) this.#state = markTaken(this.#state, nonces)
  }

  /** The chain has gone back: what it says next time holds. */
  reset(): void {
    this.#state = undefined
  }
}

/** A transaction is replaced at a higher fee when it has been the lowest one for so long: a block of every network. */
const SLOW_MS = 15_000
/** As `SLOW_MS`, for one that another process, or this one before a restart, has sent: what is in it is not known here. */
const FOREIGN_SLOW_MS = 45_000
/** New work is refused while the lowest transaction is older than this, whatever is tried. */
const STUCK_MS = 45_000
/** A mined transaction is looked at again for so long: a reorganization may take it back. */
const REORG_MS = 60_000
const REORG_LOOK_MS = 20_000
/** Younger transactions are left to those who wait for their block. */
const YOUNG_MS = 3_000
/** A transaction needs a block or two: one that is sent later than this before its end is of no use. */
export const SHORTEST_MS = 3_000
/** Most raises of one transaction in a row: more than from any floor to any limit. */
const RAISES = 60

/** A transfer of nothing to oneself: uses a nonce up. */
export function fillerOf({
  address,
}: Pick<Account, 'address'>): Pick<TransactionRequest, 'to' | 'data' | 'gas'> {
  return { to: address, data: '0x', gas: 21_000n }
}

interface Unmined {
  readonly nonce: number
  /** Undefined when it was not sent by this process. */
  readonly request: TransactionRequest | undefined
  readonly sentAt: number
  /** Bytes by hash, oldest first. */
  readonly versions: Map<string, `0x${string}`>
  bid: Bid | undefined
  raisedAt: number
  /** It stood in a block that was undone, and was answered for. */
  undone: boolean
}

interface Mined extends Unmined {
  readonly hash: string
  readonly block: bigint
  readonly blockHash: string
  readonly at: number
}

interface UnminedSettings extends Clock {
  readonly account: Account
  readonly chain: Chain
  readonly network: Network
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * The transactions of one account that were sent and are in no block yet, and those in blocks that may still be undone.
 * Everything waits for the lowest nonce: one that is not mined is replaced at a higher fee, up to its limit, with the
 * same effect, so that what was recorded for its payment stays true; one whose payment has expired is replaced by a
 * transfer of nothing.
 */
export class UnminedTransactions {
  readonly #settings: UnminedSettings
  readonly #unmined = new Map<number, Unmined>()
  readonly #mined = new Map<number, Mined>()
  #lookedAt: number
  #limit = 0n
  /** The lowest transaction cannot be mined at a fee within the limit. */
  #atLimit = false

  constructor(settings: UnminedSettings) {
    this.#settings = settings
    this.#lookedAt = settings.now()
  }

  get isEmpty(): boolean {
    return this.#unmined.size + this.#mined.size === 0
  }

  /** Whether `maintain` has anything to do now. */
  get isDue(): boolean {
    return this.age >= YOUNG_MS || (this.#mined.size > 0 && this.#sinceLook >= REORG_LOOK_MS)
  }

  get #sinceLook(): number {
    return this.#settings.now() - this.#lookedAt
  }

  get count(): number {
    return this.#unmined.size
  }

  /** Milliseconds since the lowest one was sent. */
  get age(): number {
    const lowest = this.#lowest()
    return lowest === undefined ? 0 : this.#settings.now() - lowest.sentAt
  }

  /** The chain includes nothing of this account, at any fee within the limit. */
  get isStuck(): boolean {
    return this.#unmined.size > 0 && (this.#atLimit || this.age >= STUCK_MS)
  }

  add({ ready: { request, price }, transaction: { nonce, hash, raw } }: Signed): Tracked {
    const at = this.#settings.now()
    const rest = { bid: price, raisedAt: at, undone: false }
    const entry: Unmined = { nonce, request, sentAt: at, versions: new Map([[hash, raw]]), ...rest }
    this.#limit = request.maxFeePerGas
    const previous = this.#unmined.get(nonce)
    if (previous?.undone === true) void this.#checkUndone(previous)
    this.#unmined.set(nonce, entry)
    return {
      hashes: () => [...entry.versions.keys()].toReversed(),
      mined: (receipt) => this.#markMined(entry, receipt),
    }
  }

  /** Nonces that are in the pool although this process has not sent them. */
  addForeign(from: number, to: number): void {
    const at = this.#settings.now()
    const rest = { request: undefined, sentAt: at, bid: undefined, raisedAt: at, undone: false }
    for (let nonce = from; nonce < to; nonce += 1)
      if (!this.#unmined.has(nonce)) this.#unmined.set(nonce, { ...rest, nonce, versions: new Map() })
  }

  #markMined(entry: Unmined, { hash, block, blockHash }: TransactionReceipt): void {
    this.#mined.set(entry.nonce, { ...entry, hash, block, blockHash, at: this.#settings.now() })
    if (this.#unmined.get(entry.nonce) === entry) this.#unmined.delete(entry.nonce)
  }

  /**
   * Replaces what is not mined, and sends again what a reorganization has undone; to be called under the signer's lease.
   * Resolves to whether the account's nonce has gone back.
   */
  async maintain(fees: Fees): Promise<'went back' | 'as before'> {
    const { account, chain } = this.#settings
    if (await this.#sendUndone()) return 'went back'
    if (this.age < YOUNG_MS) return 'as before'
    const head = await chain.block('latest')
    if (head.kind !== 'result') return 'as before'
    const mined = await chain.minedNonce(account.address, head.result.number)
    if (mined.kind !== 'result') return 'as before'
    await this.#dropBelow(Number(mined.result))
    await this.#replaceSlow({ ...fees, base: head.result.baseFee })
    return 'as before'
  }

  #lowest(): Unmined | undefined {
    const lowest = Math.min(...this.#unmined.keys())
    return this.#unmined.get(lowest)
  }

  async #dropBelow(mined: number): Promise<void> {
    for (const [nonce, each] of this.#unmined) {
      if (nonce >= mined) continue
      this.#unmined.delete(nonce)
      if (each.undone) await this.#checkUndone(each)
    }
  }

  /** Lowest first: one that cannot be mined keeps the others from it. */
  async #replaceSlow(fees: Fees): Promise<void> {
    const { now } = this.#settings
    const lowest = this.#lowest()
    const before = this.#atLimit
    this.#atLimit = false
    for (const each of [...this.#unmined.values()].toSorted((a, b) => a.nonce - b.nonce)) {
      const outbid = each.bid !== undefined && each.bid.maxFeePerGas < fees.base
      const patience = each.request === undefined ? FOREIGN_SLOW_MS : SLOW_MS
      const slow = each === lowest && now() - each.raisedAt >= patience
      if (!outbid && !slow) continue
      const replaced = await this.#replace(each, fees)
      if (replaced === 'replaced') continue
      this.#atLimit = each === lowest
      if (this.#atLimit && !before)
        this.#report(
          `transaction ${each.nonce} of ${this.#settings.account.address} is not mined at the highest fee that is allowed: nothing is sold on this network until it is; if this lasts, raise max_fee_gwei`,
        )
      return
    }
  }

  async #replace(unmined: Unmined, fees: Fees): Promise<'replaced' | 'at limit'> {
    const { account, chain, network, now } = this.#settings
    const { request, nonce, versions } = unmined
    const limit = request?.maxFeePerGas ?? this.#limit
    const isInTime = request !== undefined && request.expires - now() >= SHORTEST_MS
    const { to, data, gas } = isInTime ? request : fillerOf(account)
    for (let attempt = 0; attempt < RAISES; attempt += 1) {
      const price = unmined.bid === undefined ? bid(fees, limit) : raise(unmined.bid, fees, limit)
      if (price === undefined) break
      const signed = account.sign({ chainId: network.chainId, nonce, to, data, gas, ...price })
      const outcome = await broadcast(chain, signed, this.#settings)
      unmined.bid = price
      if (outcome === 'occupied' || outcome === 'refused') continue
      unmined.raisedAt = now()
      if (outcome === 'taken') {
        versions.set(signed.hash, signed.raw)
        this.#report(
          `transaction ${nonce} of ${account.address} was not mined; it was replaced at a higher fee`,
        )
      }
      return 'replaced'
    }
    return 'at limit'
  }

  /** Whether a block was undone that held transactions of ours: they are back among the unmined ones, and sent again. */
  async #sendUndone(): Promise<boolean> {
    const { chain, now } = this.#settings
    for (const [nonce, { at }] of this.#mined) if (now() - at >= REORG_MS) this.#mined.delete(nonce)
    const newest = [...this.#mined.values()].toSorted((a, b) => b.nonce - a.nonce)
    if (newest.length === 0 || this.#sinceLook < REORG_LOOK_MS) return false
    this.#lookedAt = now()
    const undone: Mined[] = []
    // A block that stands carries all those below it.
    for (const mined of newest) {
      const block = await chain.block(mined.block)
      if (block.kind === 'result' && block.result.hash === mined.blockHash) break
      const receipt = await chain.receipt(mined.hash)
      if (receipt.kind !== 'result') return false
      if (receipt.result === null) undone.push(mined)
      else
        this.#mined.set(mined.nonce, {
          ...mined,
          block: receipt.result.block,
          blockHash: receipt.result.blockHash,
        })
    }
    for (const mined of undone.toReversed()) {
      this.#mined.delete(mined.nonce)
      this.#unmined.set(mined.nonce, { ...mined, sentAt: now(), raisedAt: now(), undone: true })
      const raw = mined.versions.get(mined.hash)
      if (raw !== undefined) await broadcast(chain, { raw, hash: mined.hash }, this.#settings)
      this.#report(`a reorganization has undone transaction ${mined.hash}; it was sent again`)
    }
    return undone.length > 0
  }

  /** What becomes of a payment whose answer was given when its block still stood. */
  async #checkUndone({ nonce, versions }: Unmined): Promise<void> {
    const hashes = [...versions.keys()]
    for (const hash of hashes) {
      const receipt = await this.#settings.chain.receipt(hash)
      if (receipt.kind !== 'result' || receipt.result?.succeeded === true) return
    }
    this.#report(
      `the payment of transaction ${hashes.join(', ')} (nonce ${nonce}) was answered, then undone by a reorganization, and is not charged any more`,
    )
  }

  #report(line: string): void {
    const { network, report } = this.#settings
    report(`x402: ${network.title} (${network.id}): ${line}`)
  }
}
