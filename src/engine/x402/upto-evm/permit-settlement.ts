import type { Address } from '../../base/address.ts'
import type { Refusal } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { SignedPermit } from '../../chains/evm/permit2/permit.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import type { Journal, Settlement } from '../../payment/settlement.ts'
import type { Requirements } from '../requirements.ts'
import type { SchemeOffer } from '../scheme.ts'

/** A permit to settle, and the offer that it is for. */
export interface PermitRequest {
  readonly signed: SignedPermit
  /** The extension in which the approval came. */
  readonly approval: JsonObject | undefined
  /** Its amount is the most that may be moved. */
  readonly requirements: Requirements
  /** What a facilitator may list. */
  readonly listed: SchemeOffer['listed']
}

export type PermitCheck =
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** `release` frees what was reserved. */
  | { readonly kind: 'ready'; readonly release: () => void }

/** Who carries out the permits of one network: accounts of this process, or facilitators. */
export interface PermitSettlement {
  /** The account that offers name; undefined while nobody settles. */
  readonly offered: Address | undefined
  /** Whether approvals by signature (EIP-2612) are sent along. */
  readonly approvals: 'sent along' | 'not sent'
  /** Whether a payment may name this account; `simulate` refuses one that settles nothing now. */
  readonly mayName: (account: Address) => boolean
  /** Whether a contract wallet accepts a signature that no key has made; `digest` is the signed message. */
  verifyContract(request: PermitRequest, digest: Uint8Array): Promise<Refusal | undefined>
  /** Before the work: whether the most that the permit allows could be moved now. */
  simulate(request: PermitRequest): Promise<PermitCheck>
  /** Moves an amount of at most what was signed. */
  settle(request: PermitRequest, amount: bigint, journal: Journal): Promise<Settlement>
  /** What became of a payment whose process has died. */
  resolve(record: PaymentRecord): Promise<Settlement>
  /** Sends again what is recorded: the same bytes, and nothing else. */
  readonly resend?: (record: PaymentRecord) => Promise<void>
  /** Whether an account of another process is to settle it. */
  readonly isForAnother?: (record: PaymentRecord) => boolean
  /** Work that no request waits for. `payableMs`: how long a challenge can be paid. */
  readonly background?: (payableMs: number) => Promise<void>
  /** Nothing is settled by this process any more. */
  readonly leave?: () => Promise<void>
  /** Carries a permit out again whose transaction can never be mined any more. */
  readonly resettle?: (record: PaymentRecord, journal: Journal) => Promise<Settlement>
}
