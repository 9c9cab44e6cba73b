import type { Address } from '../../address.ts'
import type { Refusal, Settlement } from '../protocol.ts'
import type { Lookout } from './bench.ts'
import { findMovement } from './settlement.ts'
import { askWallet } from './simulation.ts'
import type { Movement } from './token.ts'

/** A node that is only asked: it tells what became of payments that somebody else carries out. */
export interface Witness {
  /** Whether a contract wallet stands by a signature. */
  askWallet(wallet: Address, digest: Uint8Array, signature: `0x${string}`): Promise<Refusal | undefined>
  /**
   * Failed only when it was not carried out by a block at or after `end`, canceled, or used for something else. `since`:
   * when it came; both in milliseconds since the epoch.
   */
  find(movement: Movement, end: number, since: number): Promise<Settlement>
}

export function createWitness(lookout: Lookout): Witness {
  return {
    askWallet: (wallet, digest, signature) => askWallet(lookout, wallet, digest, signature),
    find: (movement, end, since) => findMovement(lookout, movement, end, since),
  }
}
