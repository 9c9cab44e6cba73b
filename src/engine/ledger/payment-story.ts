import type { PaymentRecord, Refund } from './payment-record.ts'

/** What a payment's record means, in one sentence, and what to do about it. */
export interface Story {
  readonly means: string
  readonly advice: string
}

const NOTHING = 'nothing'
const RUNNING = 'nothing while a server runs: it handles this automatically; start one if none is running'

export function paymentStory(record: PaymentRecord, now: number): Story {
  const { means, advice } = stateStory(record, now)
  if (record.pendingWrite === undefined || record.leaseUntil > now) return { means, advice }
  return {
    means: `${means} Its handler has stored something that still waits to be kept or undone.`,
    advice:
      advice === NOTHING ? RUNNING : `${advice}; and a server has to run, to finish what the handler stored`,
  }
}

function stateStory(record: PaymentRecord, now: number): Story {
  if (record.refund !== undefined) return refundStory(record.id, record.refund)
  if (record.undone !== undefined) return undoneStory(record, now)
  const { state, leaseUntil, validBefore } = record
  const held = leaseUntil > now
  const over = validBefore <= now
  switch (state) {
    case 'reserved':
      return held
        ? { means: 'A server is working on it right now; nothing was charged yet.', advice: NOTHING }
        : {
            means: 'The server that worked on it has ended in the middle; nothing was charged.',
            advice: NOTHING,
          }
    case 'fulfilled':
      return record.receipt === undefined ? unpaid(held, over) : settled(record, now)
    case 'settling':
      return held
        ? { means: 'The charge is on its way to the network right now.', advice: NOTHING }
        : {
            means: 'The server ended while it charged: whether the money has moved is not known here yet.',
            advice: `${RUNNING}; "ratecard payments reconcile" shows what the chain says`,
          }
    case 'settled':
    case 'sent':
      return settled(record, now)
    case 'voided':
      return {
        means: over
          ? 'Nothing was charged, and nothing can be any more: the payment has expired.'
          : `Nothing was charged; the buyer may use the same payment again until ${isoTime(validBefore)}.`,
        advice: NOTHING,
      }
    case 'unknown':
      return {
        means: 'The charge was sent and its outcome is not known: the money may have moved, or may not.',
        advice:
          'no refund before it is known; a running server asks the network again and again, and "ratecard payments reconcile" shows what the chain says',
      }
  }
}

/** Charged and answered, until a reorganization undid the block. */
function undoneStory({ state, validBefore }: PaymentRecord, now: number): Story {
  const happened = 'The payment was charged and answered; then its block was undone by a reorganization'
  if (state === 'unknown' || state === 'settling')
    return {
      means: `${happened}. It is sent again; whether it is charged is not known yet.`,
      advice: `${RUNNING}; "ratecard payments reconcile" shows what the chain says`,
    }
  return {
    means: `${happened}, and it is not charged${validBefore <= now ? ' and cannot be any more: it has expired' : ''}.`,
    advice: 'nothing can be done about this sale; more "confirmations" in the catalog make it less likely',
  }
}

function refundStory(id: string, refund: Refund): Story {
  switch (refund.kind) {
    case 'due':
      return {
        means:
          refund.reason === 'settlement_failed'
            ? 'Its transaction had failed and the buyer was told that nothing was charged; after a reorganization it was carried out: the buyer is owed the money.'
            : `Charged before the work, which fails whenever it is run (${refund.reason}): the buyer is owed the money.`,
        advice: refundCommand(id),
      }
    case 'sending':
      return {
        means: 'A refund was sent and is not known to be in a block.',
        advice: `${refundCommand(id)} again: it is never sent twice`,
      }
    case 'sent':
      return { means: `Charged and refunded in ${refund.hash}.`, advice: NOTHING }
  }
}

function refundCommand(id: string): string {
  return `refund it with "ratecard payments refund ${id}"`
}

function unpaid(held: boolean, over: boolean): Story {
  if (held)
    return {
      means: 'The answer is ready and the charge comes next; nothing was charged yet.',
      advice: NOTHING,
    }
  return {
    means: over
      ? 'The work was done and the buyer has not come back for it; nothing was charged.'
      : 'The work is done; it is charged and answered when the buyer sends the same payment again.',
    advice: NOTHING,
  }
}

function settled(record: PaymentRecord, now: number): Story {
  const { id, state, settle, answer, settledAt = 0, redeliver, redeliveryToken: token } = record
  const end = settledAt + redeliver
  if (answer === undefined && settle === 'upfront' && state === 'settled') return owed(record, now)
  if (answer === undefined || end <= now)
    return {
      means: `Charged${state === 'sent' ? ' and answered' : ''}; the time in which the answer is given again is over.`,
      advice: state === 'sent' ? NOTHING : `if the buyer says that no answer came: ${refundCommand(id)}`,
    }
  const until = isoTime(end)
  if (state === 'sent')
    return {
      // Without the token of its challenge nobody can show that a payment of public record is theirs.
      means: `Charged and answered${token === undefined ? '' : `; the same payment is answered again until ${until}`}.`,
      advice: NOTHING,
    }
  return {
    means: `Charged; the answer is not known to have arrived, and is kept until ${until}.`,
    advice: `the buyer gets it, without a charge, by sending the same payment again; if that never comes, ${refundCommand(id)}`,
  }
}

/** Paid for first, and the work has not succeeded so far. */
function owed({ id, operation, leaseUntil, settledAt = 0, redeliver }: PaymentRecord, now: number): Story {
  if (leaseUntil > now) return { means: 'Charged; the work is being done right now.', advice: NOTHING }
  if (settledAt + redeliver <= now)
    return {
      means: 'Charged before the work, which never succeeded: the buyer is owed the money.',
      advice: refundCommand(id),
    }
  return {
    means: 'Charged before the work, and the work has not succeeded yet: the buyer is owed an answer.',
    advice: `see why ${operation} fails; the same payment runs it again without a charge, else ${refundCommand(id)}`,
  }
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
