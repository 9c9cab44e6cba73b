import type { Address } from '../../base/address.ts'
import type { ErrorCode, Refusal } from '../../base/errors.ts'
import type { Sender } from '../../chains/evm/chain.ts'
import type { TransactionCall } from '../../chains/evm/transaction.ts'
import type { ExpectedPayment } from '../../chains/evm/transfer-proof.ts'

/** A transfer that a payer has signed, as its scheme has it carried out by one of our transactions. */
export interface Order {
  readonly expected: ExpectedPayment
  /** Whose signature it is: of the payer’s key, or one that a contract wallet accepts (ERC-1271). */
  readonly signedBy: 'key' | 'contract'
  /** Milliseconds since the epoch; the transfer fails in blocks of this time and later. */
  readonly validBefore: number
  readonly call: Pick<TransactionCall, 'to' | 'data' | 'gas'>
  /** The account that must send it, in a transaction of its own; undefined: any, also together with others. */
  readonly sender?: Address
  /** Whether it would be carried out now. `timeout`: milliseconds the node has for it. Never rejects. */
  readonly simulate: (sender: Sender | undefined, timeout: number) => Promise<Refusal | undefined>
  /** The code of a refusal by `simulate` that means: it was carried out, or canceled. */
  readonly usedCode: ErrorCode
}
