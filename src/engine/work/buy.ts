import type { Face } from '../catalog/catalog.ts'
import type { Arguments } from '../handler.ts'
import type { Job, Outcome, Paywall } from '../paywall/paywall.ts'
import { purchase } from '../paywall/purchase.ts'
import type { Payment } from '../protocols/protocol.ts'
import { digestArguments, scopeOf } from './digest.ts'
import { rehearse, type Workshop } from './execute.ts'
import { unreadyFailure } from './readiness.ts'
import type { Operations, ServedOperation } from './served.ts'
import { work } from './work.ts'

export interface Till extends Workshop {
  readonly paywall: Paywall
}

/** One payment, and what it is to buy. */
export interface Sale {
  readonly payment: Payment
  readonly face: Face
  /** Absolute URL of what is asked for. */
  readonly resource: string
  readonly served: ServedOperation
  readonly operations: Operations
  /** Of the catalog that makes the offer. */
  readonly revision: string
  readonly args: Arguments
  /** Aborted when the client has gone away. */
  readonly gone: AbortSignal
}

/** Buys an operation through whichever face: a payment is good for the operation and its arguments. */
export function buy(till: Till, sale: Sale): Promise<Outcome> {
  const { payment, face, resource, served, args, revision, gone } = sale
  const { operation } = served
  const digest = digestArguments(operation, args)
  if (operation.price === undefined) throw new Error('what is paid for has a price')
  return purchase(till.paywall, {
    payment,
    offer: { face, resource, scope: scopeOf(operation, digest), price: operation.price },
    revision,
    digest,
    job: unreadyJob(served) ?? jobOf(till, sale),
    gone,
  })
}

function jobOf(till: Till, { payment: { protocol, network }, face, served, operations, args }: Sale): Job {
  return {
    run: ({ payment: id, payer, account, patience }) => {
      const payment = { id, protocol: protocol.name, network, payer, account }
      return work(till, { face, served, operations, args, caller: { payment, signer: undefined }, patience })
    },
    check: checkOf(till, served, operations, args),
    store: served.store,
  }
}

/** The ledger is asked first: what was paid for while the operation was served is answered all the same. */
function unreadyJob({ readiness, store }: ServedOperation): Job | undefined {
  const unready = unreadyFailure(readiness)
  if (unready === undefined) return undefined
  const refuse = (): Promise<never> => Promise.reject(unready)
  return { run: refuse, check: refuse, store }
}

function checkOf(
  till: Workshop,
  { operation, check }: ServedOperation,
  operations: Operations,
  args: Arguments,
): Job['check'] {
  if (check === undefined) return undefined
  return (patience) => rehearse(till, { operation, operations, args, patience }, check)
}
