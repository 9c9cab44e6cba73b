import { Failure, InvalidParameter } from '../errors.ts'
import { LedgerError } from '../ledger/ledger.ts'

export interface FaultSettings {
  /** Told of every failure nobody has foreseen. */
  readonly report: (fault: unknown) => void
}

/** What a handler has thrown, as far as the caller may know it. */
export function foreseen(
  { report }: FaultSettings,
  fault: unknown,
  charged: 'no' | 'yes',
): Failure | InvalidParameter {
  if (fault instanceof Failure || fault instanceof InvalidParameter) return fault
  report(fault)
  if (fault instanceof LedgerError)
    return new Failure('ledger_unavailable', 'the payment could not be recorded; nothing was charged', {
      retryAfter: 2,
    })
  const money = charged === 'no' ? 'nothing was charged' : 'send the same payment again: it is charged once'
  return new Failure('internal', `something went wrong here; ${money}`)
}

/** What a handler says of one of its parameters, in the words of the 422. */
export function unfitParameter({ sentence, ctx }: InvalidParameter): {
  readonly type: string
  readonly msg: string
  readonly ctx: InvalidParameter['ctx']
} {
  return { type: 'value_error', msg: `Value error, ${sentence}`, ctx: { ...ctx, error: {} } }
}
