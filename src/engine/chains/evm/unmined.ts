import type { Network } from '../../base/networks.ts'
import { type Account } from './account.ts'
import { bid, raise, type Bid } from './fees.ts'
import type { Chain, Fees, TransactionReceipt } from './chain.ts'
import type { Clock } from '../../base/poll.ts'
import type { Signed, TransactionCall, Tracked } from './transaction.ts'
import type { RpcAnswer } from './json-rpc.ts'
import { broadcast, type Broadcast } from './broadcast.ts'
import { fillerOf } from './nonce-gaps.ts'

/** A transaction is replaced at a higher fee after it has been the lowest one for longer than a block takes. */
const SLOW_MS = 15_000
/** `SLOW_MS` for a transaction of another process, or of this one before a restart, whose content is unknown here. */
const FOREIGN_SLOW_MS = 45_000
/** New requests are refused while the lowest transaction is older than this. */
const STUCK_MS = 45_000
/** A mined transaction is checked for this long, since a reorganization may undo it. */
const REORG_MS = 60_000
const REORG_LOOK_MS = 20_000
/** Younger transactions are left to the requests that wait for their block. */
const YOUNG_MS = 3_000
/** A transaction needs a block or two, so it must be sent at least this long before its deadline. */
export const SHORTEST_MS = 3_000
/** Most consecutive fee increases of one transaction: more than needed from any minimum to any limit. */
const RAISES = 60

/** The receipt of a transaction that was sent under one of these hashes; null while no block contains it. */
export async function findReceipt(
  chain: Chain,
  hashes: readonly string[],
): Promise<RpcAnswer<TransactionReceipt | null>> {
  let last: RpcAnswer<TransactionReceipt | null> = { kind: 'unreachable' }
  for (const hash of hashes) {
    last = await chain.receipt(hash)
    if (last.kind === 'result' && last.result !== null) return last
  }
  return last
}

/** Shares one answer with all concurrent callers. */
function shareWhileAsked<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => (asked ??= ask().finally(() => (asked = undefined)))
}

interface Unmined {
  readonly nonce: number
  /** Undefined when another process has sent it. */
  readonly call: TransactionCall | undefined
  readonly sentAt: number
  /** Signed bytes by hash, oldest first. */
  readonly versions: Map<string, `0x${string}`>
  bid: Bid | undefined
  raisedAt: number
  /** Whether it was mined and reported, and its block was undone. */
  undone: boolean
}

interface Mined extends Unmined {
  readonly hash: string
  readonly block: bigint
  readonly blockHash: string
  readonly at: number
  readonly succeeded: boolean
}

/** What the newest block says: the lowest nonce that is in no block, and the base fee in wei. */
interface Progress {
  readonly next: number
  readonly base: bigint
}

interface UnminedSettings extends Clock {
  readonly account: Account
  readonly chain: Chain
  readonly network: Network
  /** Receives a line for the operator. */
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
  #limit: bigint
  #gasSpent = 0n
  #transactions = 0
  /** Whether the lowest transaction cannot be mined at a fee within the limit. */
  #atLimit = false

  constructor(settings: UnminedSettings) {
    this.#settings = settings
    this.#lookedAt = settings.now()
    this.#limit = settings.network.limits.maxFeePerGas
  }

  get isEmpty(): boolean {
    return this.#unmined.size + this.#mined.size === 0
  }

  /** Whether `maintain` has work to do. */
  get isDue(): boolean {
    return this.age >= YOUNG_MS || (this.#mined.size > 0 && this.#sinceLook >= REORG_LOOK_MS)
  }

  get #sinceLook(): number {
    return this.#settings.now() - this.#lookedAt
  }

  /** Number of mined transactions since the start, and their cost in wei. */
  get totals(): { readonly transactions: number; readonly gasSpent: bigint } {
    return { transactions: this.#transactions, gasSpent: this.#gasSpent }
  }

  get count(): number {
    return this.#unmined.size
  }

  /** Age of the lowest transaction in milliseconds. */
  get age(): number {
    const lowest = this.#lowest()
    return lowest === undefined ? 0 : this.#settings.now() - lowest.sentAt
  }

  /** Whether the chain includes no transaction of this account at any fee within the limit. */
  get isStuck(): boolean {
    return this.#unmined.size > 0 && (this.#atLimit || this.age >= STUCK_MS)
  }

  add({ members, call, price, transaction: { nonce, hash, raw } }: Signed): Tracked {
    const at = this.#settings.now()
    const rest = { bid: price, raisedAt: at, undone: false }
    const entry: Unmined = { nonce, call, sentAt: at, versions: new Map([[hash, raw]]), ...rest }
    this.#limit = call.maxFeePerGas
    const previous = this.#unmined.get(nonce)
    if (previous?.undone === true) void this.#checkUndone(previous)
    this.#unmined.set(nonce, entry)
    return {
      receipt: shareWhileAsked(() =>
        findReceipt(this.#settings.chain, [...entry.versions.keys()].toReversed()),
      ),
      payers: members.length === 1 ? [] : members.flatMap(({ request: { payer } }) => payer?.address ?? []),
      mined: (receipt) => this.#markMined(entry, receipt),
    }
  }

  /** Nonces below others in the pool, or in it, that this process has not sent: the first included, the last excluded. */
  addForeign(from: number, to: number, sentAt: number = this.#settings.now()): void {
    const raisedAt = this.#settings.now()
    const rest = { call: undefined, sentAt, bid: undefined, raisedAt, undone: false }
    for (let nonce = from; nonce < to; nonce += 1)
      if (!this.#unmined.has(nonce) && !this.#mined.has(nonce))
        this.#unmined.set(nonce, { ...rest, nonce, versions: new Map() })
  }

  /** Records that a transaction is in a block; called once for each payment of a batch. */
  #markMined(entry: Unmined, receipt: TransactionReceipt): void {
    const { hash, block, blockHash, gasCost, succeeded } = receipt
    if (!this.#mined.has(entry.nonce)) {
      this.#transactions += 1
      this.#gasSpent += gasCost
    }
    this.#mined.set(entry.nonce, { ...entry, hash, block, blockHash, succeeded, at: this.#settings.now() })
    if (this.#unmined.get(entry.nonce) === entry) this.#unmined.delete(entry.nonce)
  }

  /**
   * Forgets transactions that are in blocks; needs no lease. Undefined when none has waited for longer than blocks
   * usually take, or the chain does not answer.
   */
  async dropMined(): Promise<Progress | undefined> {
    const { account, chain } = this.#settings
    if (this.age < YOUNG_MS) return undefined
    const head = await chain.block('latest')
    if (head.kind !== 'result') return undefined
    const mined = await chain.minedNonce(account.address, head.result.number)
    if (mined.kind !== 'result') return undefined
    await this.#dropBelow(Number(mined.result))
    return { next: Number(mined.result), base: head.result.baseFee }
  }

  /**
   * Replaces slow transactions, as `dropMined` has left them, and sends undone ones again; must be called under the
   * signer's lease. Resolves to whether the account's nonce has gone back.
   */
  async maintain(fees: Fees, progress: Progress | undefined): Promise<'went back' | 'as before'> {
    if (await this.#sendUndone(fees)) return 'went back'
    const lowest = this.#lowest()
    if (progress === undefined || lowest === undefined) return 'as before'
    // Transactions of a process that has died, which the node may have forgotten: all above would wait for them.
    this.addForeign(progress.next, Math.max(...this.#unmined.keys()), lowest.sentAt)
    await this.#replaceSlow({ ...fees, base: progress.base })
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

  /** Starts with the lowest: a transaction that cannot be mined blocks the others. */
  async #replaceSlow(fees: Fees): Promise<void> {
    const { now } = this.#settings
    const lowest = this.#lowest()
    const before = this.#atLimit
    this.#atLimit = false
    for (const each of [...this.#unmined.values()].toSorted((a, b) => a.nonce - b.nonce)) {
      const outbid = each.bid !== undefined && each.bid.maxFeePerGas < fees.base
      const patience = each.call === undefined ? FOREIGN_SLOW_MS : SLOW_MS
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
    const { account, now } = this.#settings
    const { call, nonce } = unmined
    const limit = call?.maxFeePerGas ?? this.#limit
    for (let attempt = 0; attempt < RAISES; attempt += 1) {
      const price = unmined.bid === undefined ? bid(fees, limit) : raise(unmined.bid, fees, limit)
      if (price === undefined) break
      const outcome = await this.#send(unmined, price)
      unmined.bid = price
      if (outcome === 'occupied' || outcome === 'refused') continue
      unmined.raisedAt = now()
      if (outcome === 'taken')
        this.#report(
          `transaction ${nonce} of ${account.address} was not mined; it was replaced at a higher fee`,
        )
      return 'replaced'
    }
    // The node may have forgotten it, and everything above would wait for it for ever.
    if (unmined.bid !== undefined) await this.#send(unmined, unmined.bid)
    return 'at limit'
  }

  /** Its call, or a transfer of nothing once that would come too late. */
  async #send(unmined: Unmined, price: Bid): Promise<Broadcast> {
    const { account, chain, network, now } = this.#settings
    const { call, nonce, versions } = unmined
    const isInTime = call !== undefined && call.expires - now() >= SHORTEST_MS
    const { to, data, gas } = isInTime ? call : fillerOf(account)
    const signed = account.sign({ chainId: network.chainId, nonce, to, data, gas, ...price })
    const outcome = await broadcast(chain, signed, this.#settings)
    if (outcome === 'taken') versions.set(signed.hash, signed.raw)
    return outcome
  }

  /**
   * Whether a block with transactions of this account was undone: they count as unmined again. Those that had succeeded are
   * sent again; in the place of one that had failed, whose buyer was told that nothing was charged, a transfer of nothing
   * is sent.
   */
  async #sendUndone(fees: Fees): Promise<boolean> {
    const { chain, now } = this.#settings
    for (const [nonce, { at }] of this.#mined) if (now() - at >= REORG_MS) this.#mined.delete(nonce)
    const newest = [...this.#mined.values()].toSorted((a, b) => b.nonce - a.nonce)
    if (newest.length === 0 || this.#sinceLook < REORG_LOOK_MS) return false
    this.#lookedAt = now()
    const undone: Mined[] = []
    // A valid block includes all blocks below it.
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
          succeeded: receipt.result.succeeded,
        })
    }
    for (const mined of undone.toReversed()) {
      const { nonce, hash, succeeded } = mined
      const call = succeeded ? mined.call : undefined
      const unmined: Unmined = { ...mined, call, sentAt: now(), raisedAt: now(), undone: succeeded }
      this.#mined.delete(nonce)
      this.#unmined.set(nonce, unmined)
      const raw = mined.versions.get(hash)
      if (!succeeded) await this.#replace(unmined, fees)
      else if (raw !== undefined) await broadcast(chain, { raw, hash }, this.#settings)
      this.#report(
        `a reorganization has undone transaction ${hash}; ${succeeded ? 'it was sent again' : 'it had failed, and another one takes its place'}`,
      )
    }
    return undone.length > 0
  }

  /** Checks a payment that was answered while its block was still valid. */
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
