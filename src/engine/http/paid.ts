import type { Arguments } from '../handler.ts'
import { LedgerError } from '../ledger/ledger.ts'
import type { Job, Outcome, Paywall } from '../paywall/paywall.ts'
import { purchase } from '../paywall/purchase.ts'
import type { Detection, Payment } from '../protocols/protocol.ts'
import { challenge } from './challenge.ts'
import { digestArguments } from './digest.ts'
import { rehearse, type Workshop } from './execute.ts'
import type { FaultSettings } from './fault.ts'
import { scopeOf } from './foresight.ts'
import { tell } from './outcome.ts'
import { invalid, problem } from './reply.ts'
import { unreadyFailure } from './readiness.ts'
import type { Answered, RouteRequest } from './request.ts'
import { work } from './work.ts'
import { timed } from './timed.ts'

export interface Counter extends Workshop, FaultSettings {
  readonly paywall: Paywall
}

/** A paid route: no payment 402, one payment is taken and answered. */
export async function servePaid(counter: Counter, request: RouteRequest): Promise<Answered> {
  // HEAD shows what GET would be offered; a payment sent with it is left alone.
  const detections =
    request.method === 'HEAD' ? [] : request.revision.protocols.map((each) => each.detect(request.headers))
  const found = detections.filter(({ kind }) => kind !== 'none')
  const [detection] = found
  if (found.length > 1) {
    request.tally.count('presented')
    return {
      reply: problem('payments_conflict', 'the request carries payments of two protocols', { charged: 'no' }),
    }
  }
  if (detection === undefined) {
    request.tally.count('unpaid')
    return { reply: challenge(request, 'payment_required', 'this path answers once it is paid for') }
  }
  request.tally.count('presented')
  return timed(counter.now, request, () => takePayment(counter, request, detection))
}

async function takePayment(counter: Counter, request: RouteRequest, detection: Detection): Promise<Answered> {
  switch (detection.kind) {
    case 'none':
      return { reply: challenge(request, 'payment_required', 'this path answers once it is paid for') }
    case 'malformed':
      return { reply: problem(detection.code, detection.detail, { charged: 'no' }) }
    case 'refused':
      return { reply: challenge(request, detection.code, detection.detail) }
    case 'payment':
      break
  }
  const validated = request.served.validate(request.parameters)
  if (validated.kind === 'invalid') return { reply: invalid(validated.errors) }
  try {
    return tell(counter, request, await buy(counter, request, detection.payment, validated.args))
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    counter.report(fault)
    // What the ledger knows of this payment could not be asked.
    return { reply: problem('ledger_unavailable', UNASKED, { charged: 'unknown', headers: SOON }) }
  }
}

const UNASKED = 'the record of payments cannot be reached now'
const SOON = { 'Retry-After': '2' }

function buy(counter: Counter, request: RouteRequest, payment: Payment, args: Arguments): Promise<Outcome> {
  const { served, revision, resource } = request
  const { route } = served
  const { protocol, network } = payment
  const digest = digestArguments(route.operation, args)
  const { price } = route.operation
  if (price === undefined) throw new Error('a paid route has a price')
  return purchase(counter.paywall, {
    payment,
    offer: { route, resource, scope: scopeOf(route, digest), price },
    revision: revision.catalog.revision,
    digest,
    job: unreadyJob(request) ?? {
      run: ({ payment: id, payer, account, patience }) => {
        const facts = { id, protocol: protocol.name, network, payer, account }
        return work(counter, served, revision, args, { payment: facts, signer: undefined }, patience)
      },
      check: checkOf(counter, request, args),
      store: served.store,
    },
    gone: request.watch(),
  })
}

/** The ledger is asked first: what was paid for while the route was served is answered all the same. */
function unreadyJob({ served: { readiness, store } }: RouteRequest): Job | undefined {
  const unready = unreadyFailure(readiness)
  if (unready === undefined) return undefined
  const refuse = (): Promise<never> => Promise.reject(unready)
  return { run: refuse, check: refuse, store }
}

function checkOf(
  counter: Workshop,
  { served: { route, check }, revision: { operations } }: RouteRequest,
  args: Arguments,
): Job['check'] {
  const { operation } = route
  if (check === undefined) return undefined
  return (patience) => rehearse(counter, { operation, operations, args, patience }, check)
}
