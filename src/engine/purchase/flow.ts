import type { Flow } from '../ledger/entry.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Refusal } from '../protocols/protocol.ts'
import type { PurchaseDeps, Verified, VerifiedPurchase } from './request.ts'

/** Left of a payment's validity when its settlement begins. */
const SETTLING_MS = 6_000
/** Less time than this is not worth beginning with. */
const SHORTEST_WORK_MS = 3_000

/** Two failed settlements this close together put a payer on upfront… */
const CLOSE_MS = 600_000
/** …for this long after the second. */
const UPFRONT_MS = 3_600_000

/** Before the work where the catalog says so, for work that would outlive the payment, and for payers whose settlements fail. */
export async function chooseFlow({ deps, request, verified }: VerifiedPurchase): Promise<Flow> {
  const { operation } = request.offer.face
  if (operation.settle === 'upfront' || operation.timeout > request.payment.protocol.longestWork)
    return 'upfront'
  return (await isThrottled(deps.ledger, verified.payer, deps.now())) ? 'upfront' : 'authorization'
}

/** Milliseconds of work after which the payment can still be settled. */
export function timeToWork({ now }: Pick<PurchaseDeps, 'now'>, { validBefore }: Verified): number {
  return validBefore - now() - SETTLING_MS
}

/** Whether the payment expires before it could be worked for and settled. */
export function tooLate(deps: PurchaseDeps, flow: Flow, verified: Verified): Refusal | undefined {
  if (timeToWork(deps, verified) >= (flow === 'upfront' ? 0 : SHORTEST_WORK_MS)) return undefined
  return {
    code: 'deadline_too_short',
    detail: 'the payment expires before the work could be done and settled',
  }
}

/** Remembers that work was done for a payer who then could not be charged. */
export async function noteFailure(ledger: Ledger, payer: string, id: string, now: number): Promise<void> {
  await ledger.remember(nameOf(payer), `${now} ${id}`, now + UPFRONT_MS + CLOSE_MS)
}

/** Whether a payer has to pay before the work. */
export async function isThrottled(ledger: Ledger, payer: string, now: number): Promise<boolean> {
  const facts = await ledger.recall(nameOf(payer), now)
  // A payment may be noted twice: by the request that has seen it fail, and by recovery.
  const byPayment = new Map(facts.map((fact) => [fact.split(' ')[1], Number.parseInt(fact, 10)]))
  const times = Array.from(byPayment.values()).sort((a, b) => a - b)
  return times.some((time, place) => {
    const before = times[place - 1]
    return before !== undefined && time - before <= CLOSE_MS && now - time < UPFRONT_MS
  })
}

function nameOf(payer: string): string {
  return `failed:${payer.toLowerCase()}`
}
