import type { Address } from '../../address.ts'
import type { LeaseState } from '../../ledger/ledger.ts'
import { DistributedLock, type LockSettings } from '../../ledger/lease.ts'
import type { Network } from '../../networks.ts'
import type { Chain, Fees } from './chain.ts'

/** An account that pays the gas. */
export interface Account {
  readonly address: Address
  /** Serialises and signs an EIP-1559 transaction. */
  readonly sign: (transaction: UnsignedTransaction) => SignedTransaction
}

export interface SignedTransaction {
  readonly raw: `0x${string}`
  readonly hash: string
}

interface UnsignedTransaction extends Bid {
  readonly chainId: number
  readonly nonce: number
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
}

/** Gas limit of a token transfer by signature on every supported network, also for contract wallets. */
export const GAS = 200_000n
export const GAS_CONTRACT_WALLET = 600_000n

/** The offered price of a unit of gas, in wei. */
export interface Bid {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/**
 * Offers up to twice the base fee, so that the bid outlives several full blocks, capped at the limit; undefined when
 * the current price is above the limit.
 */
export function bid({ base, tip }: Fees, limit: bigint): Bid | undefined {
  if (base + tip > limit) return undefined
  const roomy = base * 2n + tip
  return { maxFeePerGas: roomy < limit ? roomy : limit, maxPriorityFeePerGas: tip }
}

/**
 * A bid that replaces another with the same nonce: nodes require 10 or 12.5 % more of both numbers. Undefined when
 * that or the current price is above the limit.
 */
export function raise(previous: Bid, fees: Fees, limit: bigint): Bid | undefined {
  const now = bid(fees, limit)
  if (now === undefined) return undefined
  const maxFeePerGas = larger(now.maxFeePerGas, anEighthMore(previous.maxFeePerGas))
  const maxPriorityFeePerGas = larger(now.maxPriorityFeePerGas, anEighthMore(previous.maxPriorityFeePerGas))
  if (maxFeePerGas > limit || maxPriorityFeePerGas > maxFeePerGas) return undefined
  return { maxFeePerGas, maxPriorityFeePerGas }
}

function anEighthMore(wei: bigint): bigint {
  return wei + wei / 8n + 1n
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

/** How long fees and balances of the node are cached. */
const FEES_FRESH_MS = 4_000
const BALANCE_FRESH_MS = 600_000
/** How long a signer without gas is skipped before its balance is read again. */
const EMPTY_MS = 30_000

/** The fees of a network, requested every few seconds at most. */
export class FeeOracle {
  readonly #chain: Chain
  readonly #now: () => number
  #asked: { readonly fees: Promise<Fees | undefined>; readonly at: number } | undefined

  constructor(chain: Chain, now: () => number) {
    this.#chain = chain
    this.#now = now
  }

  /** Undefined when the node does not answer. */
  async current(): Promise<Fees | undefined> {
    if (this.#asked === undefined || this.#now() - this.#asked.at >= FEES_FRESH_MS)
      this.#asked = { fees: this.#ask(), at: this.#now() }
    const asked = this.#asked
    const fees = await asked.fees
    if (fees === undefined && this.#asked === asked) this.#asked = undefined
    return fees
  }

  async #ask(): Promise<Fees | undefined> {
    const answer = await this.#chain.fees()
    return answer.kind === 'result' ? answer.result : undefined
  }
}

export type GasCheck =
  | {
      readonly kind: 'known'
      /** Wei. */
      readonly balance: bigint
      /** Lower bound of the settlements it can still pay for at these fees. */
      readonly payments: bigint
    }
  | { readonly kind: 'unreachable' }

/** Reads how many settlements a signer can still pay for. */
export async function checkGas(chain: Chain, signer: Address, { base, tip }: Fees): Promise<GasCheck> {
  const answer = await chain.balance(signer)
  if (answer.kind !== 'result') return { kind: 'unreachable' }
  // A node refuses a transaction that its sender could not pay for in the worst case.
  const each = GAS * (base * 2n + tip)
  return { kind: 'known', balance: answer.result, payments: answer.result / (each === 0n ? 1n : each) }
}

/** Number of payments below which a warning is given. */
export const FEW = 200n

/** A warning for an operator whose signer will soon run out of gas; undefined while it has enough. */
export function gasWarning(
  { title, id, coin }: Network,
  signer: Address,
  check: GasCheck,
): string | undefined {
  if (check.kind !== 'known' || check.payments >= FEW) return undefined
  const left = check.payments === 0n ? 'not enough for a payment' : `for ${check.payments} more payments`
  return `x402: ${title} (${id}): signer ${signer} has ${formatCoin(check.balance)} ${coin}, ${left}: send it more`
}

/** Formats wei as a billionth of the coin, rounded down. */
export function formatCoin(wei: bigint): string {
  const digits = (wei / 1_000_000_000n).toString().padStart(10, '0')
  const fraction = digits.slice(-9).replace(/0+$/, '')
  return fraction === '' ? digits.slice(0, -9) : `${digits.slice(0, -9)}.${fraction}`
}

interface GasBalanceSettings {
  readonly chain: Chain
  readonly network: Network
  readonly address: Address
  readonly now: () => number
  /** Receives a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * The gas balance of a signer without a request per payment: the last balance read, less the maximum cost of what
 * was sent since.
 */
export class GasBalance {
  readonly #settings: GasBalanceSettings
  #balance = 0n
  #lookedAt: number | undefined
  #emptyAt: number | undefined
  #warnedAt: number | undefined

  constructor(settings: GasBalanceSettings) {
    this.#settings = settings
  }

  /** Wei; undefined before the first read. */
  get known(): bigint | undefined {
    return this.#lookedAt === undefined ? undefined : this.#balance
  }

  /** Whether it was empty recently. */
  get isEmpty(): boolean {
    return this.#emptyAt !== undefined && this.#settings.now() - this.#emptyAt < EMPTY_MS
  }

  /** Whether it can pay this cost; true when the node does not answer, since the node decides anyway. */
  async covers(cost: bigint, fees: Fees): Promise<boolean> {
    const fresh = this.#lookedAt !== undefined && this.#settings.now() - this.#lookedAt < BALANCE_FRESH_MS
    if (fresh && this.#emptyAt === undefined && this.#balance >= cost) return true
    return this.#look(cost, fees)
  }

  async #look(cost: bigint, fees: Fees): Promise<boolean> {
    const { chain, network, address, now, report } = this.#settings
    const check = await checkGas(chain, address, fees)
    if (check.kind !== 'known') return true
    this.#balance = check.balance
    this.#lookedAt = now()
    this.#emptyAt = check.balance < cost ? now() : undefined
    const warning = gasWarning(network, address, check)
    if (warning !== undefined && now() - (this.#warnedAt ?? -Infinity) >= BALANCE_FRESH_MS) {
      this.#warnedAt = now()
      report(warning)
    }
    return check.balance >= cost
  }

  spend(cost: bigint): void {
    this.#balance -= cost
  }

  /** Records that the node found the balance too small. */
  declareEmpty(): void {
    this.#emptyAt = this.#settings.now()
  }
}

/**
 * How long nodes behind one address may take to count a transaction that one of them has accepted: several blocks of
 * every supported network.
 */
export const CATCH_UP_MS = 30_000

/** The next nonces of an account. */
export interface NonceState {
  readonly next: number
  /** Nonces above the next one that the node has accepted: these transactions wait for the missing ones. */
  readonly ahead: readonly number[]
  /** When the chain last agreed or advanced, in milliseconds since the epoch. */
  readonly at: number
  /** The highest count of the chain that this process has seen. */
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

/** The nonces for this number of transactions, lowest first. */
export function allocate({ next, ahead }: NonceState, amount: number): readonly number[] {
  const nonces: number[] = []
  for (let nonce = next; nonces.length < amount; nonce += 1) if (!ahead.includes(nonce)) nonces.push(nonce)
  return nonces
}

/** Records that the node has transactions with these nonces; the lowest missing one is next. */
export function markTaken(state: NonceState, nonces: readonly number[]): NonceState {
  return { ...state, ...closeUp(state.next, [...state.ahead, ...nonces]) }
}

/** Continues with the state that another process has left. */
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
  /** Called with a range of nonces (first included, last excluded) that another program has used in the pool. */
  readonly foreign: (from: number, to: number) => void
}

/** The nonces of one account, while this process holds its lease in the ledger. */
export class NonceLease {
  readonly #settings: NonceLeaseSettings
  readonly #lock: DistributedLock
  #fence: number | undefined
  #state: NonceState | undefined

  constructor(settings: NonceLeaseSettings) {
    this.#settings = settings
    this.#lock = new DistributedLock(settings)
  }

  /** Whether this process holds the account for the next `ms` milliseconds; waits up to `patience` for it. */
  async acquire(ms: number, patience: number): Promise<boolean> {
    if (await this.#lock.extend(ms)) return true
    const lease = await this.#lock.acquire(patience)
    if (lease === undefined) return false
    // The known state of the pool is still valid when nobody has held the lease in between.
    const alone = this.#fence !== undefined && lease.fencingToken - this.#fence <= 1
    if (!alone || this.#state === undefined) this.#state = restore(lease.leaseState)
    this.#fence = lease.fencingToken
    return true
  }

  /** Whether this process still holds the account, for the next `ms` milliseconds. */
  extend(ms: number): Promise<boolean> {
    return this.#lock.extend(ms)
  }

  release(): Promise<void> {
    return this.#lock.release(snapshot(this.#state))
  }

  yieldIfContended(): Promise<void> {
    return this.#lock.yieldIfContended(snapshot(this.#state))
  }

  /** Reads the count of the chain; undefined when it does not answer. */
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

  /** Forgets the count after a chain reorganization: the next answer of the chain is used. */
  reset(): void {
    this.#state = undefined
  }
}
