import { chargedBy } from '../ledger/lifecycle.ts'
import { compact } from '../json.ts'
import type { Entry } from '../ledger/entry.ts'
import { LedgerError, type Ledger } from '../ledger/ledger.ts'
import { JSON_TYPE, problem, type Reply } from './reply.ts'

const PATH = /^\/payments\/(pay_[A-Za-z0-9_-]{22})$/

/** The public id in the path of a payment's state: where the Location of a 503 points. */
export function paymentIdOf(path: string): string | undefined {
  return PATH.exec(path)?.[1]
}

/** What is known of a payment, for whoever holds its id: the state only, never the answer or who paid. */
export async function paymentState(ledger: Ledger, id: string): Promise<Reply> {
  try {
    return stateOf(id, await ledger.find(id))
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    const detail = 'the record of payments cannot be reached now'
    return problem('ledger_unavailable', detail, { charged: 'unknown', headers: { 'Retry-After': '2' } })
  }
}

function stateOf(id: string, entry: Entry | undefined): Reply {
  if (entry === undefined) return problem('not_found', 'no payment has this id here', { charged: 'no' })
  const { state, network, receipt } = entry
  const body = compact({
    payment: id,
    state,
    charged: chargedBy(entry),
    network,
    transaction: receipt?.transaction,
    next: nextStep(entry),
  })
  return {
    status: 200,
    headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' },
    body: JSON.stringify(body),
  }
}

function nextStep({ state }: Entry): string {
  if (state === 'sent')
    return 'the answer was delivered; it is given again to the payment that carries its token'
  if (state === 'voided') return 'nothing was charged: the same payment may be sent again until it expires'
  return 'send the same payment to the same URL again: it is charged once and answered'
}
