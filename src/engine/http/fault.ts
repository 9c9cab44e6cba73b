import { Failure, InvalidParameter } from '../errors.ts'
import { LedgerError } from '../ledger/ledger.ts'
import { failed, invalid, type Reply } from './reply.ts'
import type { ServedRoute } from './revision.ts'

export interface FaultSettings {
  /** Told of every failure nobody has foreseen. */
  readonly report: (fault: unknown) => void
}

/** What a handler has thrown, as the caller may see it. */
export function faultReply(
  { report }: FaultSettings,
  { route }: Pick<ServedRoute, 'route'>,
  fault: unknown,
  charged: 'no' | 'yes',
): Reply {
  if (fault instanceof Failure) return failed(fault, charged)
  if (fault instanceof InvalidParameter) {
    const found = route.parameters.find(({ name }) => name === fault.parameter)
    const ctx = { ...fault.ctx, error: {} }
    const place = found?.in ?? 'query'
    return invalid([
      { type: 'value_error', loc: [place, fault.parameter], msg: `Value error, ${fault.sentence}`, ctx },
    ])
  }
  report(fault)
  return failed(unforeseen(fault, charged), charged)
}

function unforeseen(fault: unknown, charged: 'no' | 'yes'): Failure {
  if (fault instanceof LedgerError)
    return new Failure('ledger_unavailable', 'the payment could not be recorded; nothing was charged', {
      retryAfter: 2,
    })
  const money = charged === 'no' ? 'nothing was charged' : 'send the same payment again: it is charged once'
  return new Failure('internal', `something went wrong here; ${money}`)
}
