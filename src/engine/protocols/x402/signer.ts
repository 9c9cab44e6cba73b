import type { Address } from '../../address.ts'
import type { Desk } from '../../ledger/claim.ts'
import type { OwnTransaction } from '../../ledger/entry.ts'
import { PATIENCE_MS, Turn } from '../../ledger/turn.ts'
import type { Network } from '../../networks.ts'
import type { Journal, Refusal } from '../protocol.ts'
import type { Chain, Fees } from '../evm/chain.ts'
import { bid, type Bid } from './gas.ts'
import { carryOn, leave, meet, taken, type Count } from './nonce.ts'
import { Purse } from './purse.ts'

/** An account that pays the gas. */
export interface Account {
  readonly address: Address
  /** Serialises and signs an EIP-1559 transaction. */
  readonly sign: (
    transaction: UnsignedTransaction,
  ) => Promise<{ readonly raw: `0x${string}`; readonly hash: `0x${string}` }>
}

export interface UnsignedTransaction extends Bid {
  readonly chainId: number
  readonly nonce: number
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
}

/** One transaction somebody wants sent. */
export interface Errand {
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
  /** Wei for each unit of gas. */
  readonly maxFeePerGas: bigint
  /** Milliseconds since the epoch; from then on it would be in vain. */
  readonly expires: number
  /** The last look before it is signed: a refusal keeps it here. Never rejects. */
  readonly check: (signer: Address) => Promise<Refusal | undefined>
  /** Where the signed transaction is written before it is sent. */
  readonly journal: Journal
}

export type Sent =
  /** In the pool: whether it will succeed is for the chain to say. */
  | { readonly kind: 'sent'; readonly transaction: OwnTransaction }
  /** The last look has found that it would fail: nothing was recorded or sent. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Nothing was sent, and nothing will be. */
  | { readonly kind: 'unsent'; readonly detail: string }
  /** The node gave no answer after the transaction was handed to it. */
  | { readonly kind: 'unknown' }

/** This signer cannot now, and another may: nothing was recorded or sent. */
export interface Unable {
  readonly kind: 'unable'
  readonly detail: string
}

/** How much a signer tries: only when it can at once, or until it has waited for others and looked at its balance anew. */
export type Effort = 'at once' | 'patiently'

/** A broadcast's own timeout and a little more: whoever may still be broadcasting holds the lease. */
const BROADCAST_MS = 10_500
const FEES_MS = 4_000
/** A transaction needs a block or two before its time is over. */
const SHORTEST_MS = 3_000

export interface SignerSettings extends Desk {
  readonly account: Account
  readonly chain: Chain
  readonly network: Network
  readonly sleep: (ms: number) => Promise<void>
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * Sends transactions from one account, one at a time: allocating the account nonce and broadcasting happen under one
 * lease of the ledger, so that neither concurrent requests nor other processes leave a gap or use a nonce twice.
 */
export class Signer {
  readonly #settings: SignerSettings
  readonly #turn: Turn
  readonly #purse: Purse
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0
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
    return this.#waiting
  }

  /** Records the signed transaction in the journal, then broadcasts it. Rejects when it cannot be recorded. */
  send(errand: Errand, effort: Effort): Promise<Sent | Unable> {
    this.#waiting += 1
    const sent = this.#queue.then(async () => {
      try {
        return await this.#send(errand, effort)
      } finally {
        this.#waiting -= 1
        if (this.#waiting === 0) await this.#turn.giveBack(leave(this.#count))
        else await this.#turn.share(leave(this.#count))
      }
    })
    this.#queue = sent.catch(() => undefined)
    return sent
  }

  async #send(errand: Errand, effort: Effort): Promise<Sent | Unable> {
    const { account, network, chain, now } = this.#settings
    const { to, data, gas, maxFeePerGas, expires, check, journal } = errand
    if (effort === 'at once' && this.#purse.isEmpty) return NO_GAS
    if (!(await this.#take(effort))) return IN_USE
    const [fees, count, refusal] = await Promise.all([
      this.#currentFees(),
      this.#currentCount(),
      check(account.address),
    ])
    if (fees === undefined || count === undefined)
      return { kind: 'unsent', detail: 'the network cannot be reached' }
    if (refusal !== undefined) return { kind: 'refused', refusal }
    const price = bid(fees, maxFeePerGas)
    if (price === undefined) return TOO_DEAR
    const cost = gas * price.maxFeePerGas
    if (!(await this.#purse.holds(cost, fees))) return NO_GAS
    if (expires - now() < SHORTEST_MS) return TOO_LATE
    const { chainId } = network
    const { raw, hash } = await account.sign({ chainId, nonce: count.next, to, data, gas, ...price })
    const transaction = { kind: 'own', raw, hash, signer: account.address, nonce: count.next } as const
    await journal.record(transaction)
    if (!(await this.#turn.keep(BROADCAST_MS)))
      return { kind: 'unsent', detail: 'another process has taken the signer over' }
    const answer = await chain.broadcast(raw)
    if (answer.kind === 'result' || (answer.kind === 'refused' && isKnown(answer.message))) {
      this.#count = taken(count)
      this.#purse.spend(cost)
      return { kind: 'sent', transaction }
    }
    // The count stays: the next transaction takes this nonce, unless the chain has counted this one by then.
    if (answer.kind === 'unreachable' || !isOutOfPool(answer.message)) return { kind: 'unknown' }
    if (isUnfunded(answer.message)) this.#purse.declareEmpty()
    return { kind: 'unsent', detail: 'the network refuses the transaction' }
  }

  async #take(effort: Effort): Promise<boolean> {
    if (await this.#turn.keep(BROADCAST_MS)) return true
    const lease = await this.#turn.take(effort === 'at once' ? 0 : PATIENCE_MS)
    if (lease === undefined) return false
    if (lease.fence !== this.#fence) this.#count = carryOn(lease.left)
    this.#fence = lease.fence
    return true
  }

  async #currentCount(): Promise<Count | undefined> {
    const { chain, now } = this.#settings
    const answer = await chain.nextNonce(this.address)
    if (answer.kind !== 'result') return undefined
    this.#count = meet(this.#count, Number(answer.result), now())
    return this.#count
  }

  async #currentFees(): Promise<Fees | undefined> {
    const { chain, now } = this.#settings
    if (this.#fees !== undefined && now() - this.#fees.at < FEES_MS) return this.#fees.value
    const answer = await chain.fees()
    if (answer.kind !== 'result') return undefined
    this.#fees = { value: answer.result, at: now() }
    return answer.result
  }
}

const IN_USE: Unable = { kind: 'unable', detail: 'the signer is in use by another process' }
const NO_GAS: Unable = { kind: 'unable', detail: 'the service cannot pay the fees of the network now' }
const TOO_DEAR: Sent = {
  kind: 'unsent',
  detail: 'the network asks for higher fees now than this service pays',
}
const TOO_LATE: Sent = {
  kind: 'refused',
  refusal: {
    code: 'deadline_too_short',
    detail: 'the payment expires before it could be settled; nothing was charged',
  },
}

/**
 * Refusals after which no pool can hold the transaction. Any other may be the second answer to bytes that a proxy has
 * sent twice ("nonce too low": the first were mined), and proves nothing.
 */
function isOutOfPool(message: string): boolean {
  return (
    isUnfunded(message) ||
    /intrinsic gas|gas too low|exceeds block gas limit|less than block base fee|underpriced/i.test(message)
  )
}

function isUnfunded(message: string): boolean {
  return /insufficient funds/i.test(message)
}

/** The node has this very transaction already: as good as sent. */
export function isKnown(message: string): boolean {
  return /already known|already imported|known transaction|already exists/i.test(message)
}
