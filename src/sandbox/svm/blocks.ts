import { createHash } from 'node:crypto'
import { encodeBase58 } from '../../engine/base/base58.ts'

/** Blocks whose hash a transaction may name after them. */
const VALID_FOR = 150n
/** Blocks on top of one after which it is final. */
const FINAL_AFTER = 32n
/** Slots without a block happen: the two numbers differ on every real network. */
const SKIPPED_SLOTS = 1_000n

export type Commitment = 'processed' | 'confirmed' | 'finalized'

/** The numbers and hashes of the blocks of one chain, and for how long a transaction may name them. */
export class Blocks {
  readonly #seed: Uint8Array
  readonly #heights = new Map<string, bigint>()
  #height = 0n

  constructor(seed: Uint8Array) {
    this.#seed = seed
    this.#heights.set(this.hashAt(0n), 0n)
  }

  get height(): bigint {
    return this.#height
  }

  get slot(): bigint {
    return slotOf(this.#height)
  }

  advance(): void {
    this.#height += 1n
    this.#heights.set(this.hashAt(this.#height), this.#height)
    this.#heights.delete(this.hashAt(this.#height - VALID_FOR - 1n))
  }

  /** The newest block of a commitment. Each block is confirmed when it is made. */
  newest(commitment: Commitment): bigint {
    if (commitment !== 'finalized') return this.#height
    return this.#height < FINAL_AFTER ? 0n : this.#height - FINAL_AFTER
  }

  commitmentOf(height: bigint): Commitment {
    return height <= this.newest('finalized') && height > 0n ? 'finalized' : 'confirmed'
  }

  hashAt(height: bigint): string {
    return encodeBase58(createHash('sha256').update(this.#seed).update(String(height)).digest())
  }

  lastValidHeight(height: bigint): bigint {
    return height + VALID_FOR
  }

  /** Whether a transaction that names this hash may be in the next block. */
  isValid(hash: string): boolean {
    const height = this.#heights.get(hash)
    return height !== undefined && this.#height < this.lastValidHeight(height)
  }
}

export function slotOf(height: bigint): bigint {
  return height + SKIPPED_SLOTS
}
