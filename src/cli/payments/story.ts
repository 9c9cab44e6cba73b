import type { Entry } from '../../engine/index.ts'
import { isoTime } from './row.ts'

/** What a payment's record means, in one sentence, and what to do about it. */
export interface Story {
  readonly means: string
  readonly advice: string
}

const NOTHING = 'nothing'
const RUNNING = 'nothing while a server runs, for it looks after this by itself; if none does, start one'

export function storyOf(entry: Entry, now: number): Story {
  const { means, advice } = stateStory(entry, now)
  if (entry.prepared === undefined || entry.leaseUntil > now) return { means, advice }
  return {
    means: `${means} Its handler has stored something that still waits to be kept or undone.`,
    advice:
      advice === NOTHING ? RUNNING : `${advice}; and a server has to run, to finish what the handler stored`,
  }
}

function stateStory(entry: Entry, now: number): Story {
  const { state, leaseUntil, validBefore } = entry
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
      return entry.receipt === undefined ? unpaid(held, over) : settled(entry, now)
    case 'settling':
      return held
        ? { means: 'The charge is on its way to the network right now.', advice: NOTHING }
        : {
            means: 'The server ended while it charged: whether the money has moved is not known here yet.',
            advice: `${RUNNING}; "ratecard payments reconcile" shows what the chain says`,
          }
    case 'settled':
    case 'sent':
      return settled(entry, now)
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

function settled(entry: Entry, now: number): Story {
  const { state, flow, answer, settledAt = 0, redeliver, payer, token } = entry
  const end = settledAt + redeliver
  if (answer === undefined && flow === 'upfront' && state === 'settled') return owed(entry, now)
  if (answer === undefined || end <= now)
    return {
      means: `Charged${state === 'sent' ? ' and answered' : ''}; the time in which the answer is given again is over.`,
      advice: state === 'sent' ? NOTHING : 'if the buyer says that no answer came: refund it',
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
    advice: `the buyer gets it, without a charge, by sending the same payment again; if ${payer} never does, refund it`,
  }
}

/** Paid for first, and the work has not succeeded so far. */
function owed({ operation, payer, leaseUntil, settledAt = 0, redeliver }: Entry, now: number): Story {
  if (leaseUntil > now) return { means: 'Charged; the work is being done right now.', advice: NOTHING }
  if (settledAt + redeliver <= now)
    return {
      means: 'Charged before the work, which never succeeded: the buyer is owed the money.',
      advice: `refund it to ${payer}`,
    }
  return {
    means: 'Charged before the work, and the work has not succeeded yet: the buyer is owed an answer.',
    advice: `see why ${operation} fails; the same payment runs it again without a charge, else refund it to ${payer}`,
  }
}
