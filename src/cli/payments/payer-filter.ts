import { payerKeys } from '../../engine/app/payer-keys.ts'
import type { PaymentRecord } from '../../engine/ledger/payment-record.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'

/** Whether a payment is of the payer that --payer names; without it, every payment fits. Throws `UsageError`. */
export function payerFilterOf({ flags }: Call): (record: Pick<PaymentRecord, 'payer'>) => boolean {
  const payer = flags.text('payer')
  if (payer === undefined) return () => true
  const keys = payerKeys(payer)
  if (keys.length === 0)
    throw new UsageError(
      `--payer takes an address, 0x and 40 hexadecimal digits or one of Solana; not "${payer}"`,
    )
  return (record) => keys.includes(record.payer)
}
