import { decodeBase58, encodeBase58 } from '../../src/engine/base/base58.ts'
import { findSvmNetwork } from '../../src/engine/base/networks.ts'
import { tokenAccountOf } from '../../src/engine/base/token-account.ts'
import { readTransaction, type SvmTransaction } from '../../src/engine/chains/svm/transaction.ts'
import { digestOf } from '../../src/engine/x402/exact-svm/svm-payload.ts'
import { readTransfer, type SvmTransfer } from '../../src/engine/x402/exact-svm/transfer.ts'
import type { VirtualClock } from './clock.ts'
import type { Random } from './random.ts'

const found = findSvmNetwork('solana')
if (found === undefined) throw new Error('Solana is in the table')
export const SOLANA = found

const SLOT_MS = 400
/** Blocks in which a transaction with the hash of another one may stand. */
export const LIFETIME = 150
/** Blocks until one can never be undone. */
export const FINAL_AFTER = 32

/** A transaction in a block. */
export interface Landed {
  readonly signature: string
  readonly bytes: Uint8Array
  readonly digest: string
  readonly transfer: SvmTransfer
  readonly at: number
  /** From then on no fork can take it back. */
  readonly confirmedAt: number
  readonly succeeded: boolean
}

/** Why a transaction is refused, as nodes write it. */
export type SvmRefusal = 'BlockhashNotFound' | 'AlreadyProcessed' | { readonly InstructionError: unknown[] }

/**
 * A Solana chain: blocks come by time, a transaction stands in one of the next blocks or in none, votes confirm it a moment
 * later, and until then a fork may take it back. The network carries a message out once.
 */
export class SimulatedSvmChain {
  readonly #clock: VirtualClock
  readonly #random: Random
  readonly #start: number
  readonly #tokens = new Map<string, bigint>()
  readonly #owners = new Map<string, string>()
  readonly #waiting = new Set<string>()
  readonly #landed = new Map<string, Landed>()

  constructor(clock: VirtualClock, random: Random) {
    this.#clock = clock
    this.#random = random
    this.#start = clock.now - 1_000 * SLOT_MS
  }

  get now(): number {
    return this.#clock.now
  }

  heightAt(time: number): number {
    return Math.floor((time - this.#start) / SLOT_MS)
  }

  /** The height is in it. */
  hashAt(height: number): string {
    const bytes = Buffer.alloc(32, 7)
    bytes.writeUInt32BE(height)
    return encodeBase58(bytes)
  }

  #heightOf(blockhash: string): number {
    return Buffer.from(decodeBase58(blockhash, 32) ?? Buffer.alloc(32, 255)).readUInt32BE()
  }

  give(owner: string, amount: bigint): void {
    const account = tokenAccountOf(owner, SOLANA.token.address) ?? ''
    this.#owners.set(account, owner)
    this.#tokens.set(account, amount)
  }

  account(address: string): { readonly owner: string; readonly amount: bigint } | undefined {
    const owner = this.#owners.get(address)
    return owner === undefined ? undefined : { owner, amount: this.#tokens.get(address) ?? 0n }
  }

  /** What a node whose newest block is of a time says of a transaction; undefined when a block could contain it. */
  refusal(bytes: Uint8Array, view: number): SvmRefusal | undefined {
    const { transaction, transfer, signature } = this.#read(bytes)
    const seen = this.#landed.get(signature)
    if (seen !== undefined && seen.at <= view) return 'AlreadyProcessed'
    const age = this.heightAt(view) - this.#heightOf(transaction.blockhash)
    if (age < 0 || age > LIFETIME) return 'BlockhashNotFound'
    return (this.#tokens.get(transfer.source) ?? 0n) < transfer.amount
      ? { InstructionError: [2, { Custom: 1 }] }
      : undefined
  }

  /** Resolves nothing: a block may contain it soon. */
  send(bytes: Uint8Array): string {
    const { signature } = this.#read(bytes)
    if (this.#waiting.has(signature)) return signature
    this.#waiting.add(signature)
    // Leaders drop transactions when they are busy, and some come late.
    const isDropped = this.#random.chance(0.05)
    const delay = this.#random.chance(0.06)
      ? this.#random.between(5_000, 55_000)
      : this.#random.between(100, 1_500)
    this.#clock.after(delay, () => {
      if (this.#waiting.delete(signature) && !isDropped) this.#land(bytes)
    })
    return signature
  }

  #land(bytes: Uint8Array): void {
    const { transaction, transfer, signature } = this.#read(bytes)
    const now = this.#clock.now
    const age = this.heightAt(now) - this.#heightOf(transaction.blockhash)
    if (this.#landed.has(signature) || age < 0 || age > LIFETIME) return
    const succeeded = (this.#tokens.get(transfer.source) ?? 0n) >= transfer.amount
    if (succeeded) this.#move(transfer, transfer.amount)
    const confirmedAt = now + this.#random.between(400, 1_500)
    const digest = digestOf(transaction)
    this.#landed.set(signature, { signature, bytes, digest, transfer, at: now, confirmedAt, succeeded })
  }

  #move({ source, destination }: SvmTransfer, amount: bigint): void {
    this.#tokens.set(source, (this.#tokens.get(source) ?? 0n) - amount)
    this.#tokens.set(destination, (this.#tokens.get(destination) ?? 0n) + amount)
  }

  /** The blocks that are not confirmed are left. Their transactions come again, or never. */
  fork(pool: 'kept' | 'lost'): void {
    for (const [signature, { at: _at, confirmedAt, transfer, succeeded, bytes }] of this.#landed) {
      if (confirmedAt <= this.#clock.now) continue
      this.#landed.delete(signature)
      if (succeeded) this.#move(transfer, -transfer.amount)
      if (pool === 'kept') this.send(bytes)
    }
  }

  forgetPool(): void {
    this.#waiting.clear()
  }

  landed(signature: string): Landed | undefined {
    return this.#landed.get(signature)
  }

  /** The transactions that name a token account, newest first. */
  of(account: string): readonly Landed[] {
    return [...this.#landed.values()]
      .filter(({ transfer }) => transfer.source === account || transfer.destination === account)
      .toReversed()
  }

  /** How often a message has moved money, and how much. */
  moved(digest: string): readonly bigint[] {
    return [...this.#landed.values()].flatMap((each) =>
      each.digest === digest && each.succeeded ? [each.transfer.amount] : [],
    )
  }

  /** Lamports that fee payers have paid for what moved nothing. */
  get lost(): bigint {
    return [...this.#landed.values()].reduce(
      (sum, { succeeded, transfer }) => (succeeded ? sum : sum + transfer.fee),
      0n,
    )
  }

  #read(bytes: Uint8Array): {
    readonly transaction: SvmTransaction
    readonly transfer: SvmTransfer
    readonly signature: string
  } {
    const read = readTransaction(bytes)
    if (read.kind !== 'transaction') throw new Error('the transaction can be read')
    const layout = readTransfer(read.transaction)
    if (layout.kind !== 'transfer') throw new Error('the transaction is a transfer')
    const [first = new Uint8Array()] = read.transaction.signatures
    return { transaction: read.transaction, transfer: layout.transfer, signature: encodeBase58(first) }
  }
}
