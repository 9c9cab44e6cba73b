import { findBatch } from '../../engine/chains/evm/kept-batch.ts'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import type { Ledger } from '../../engine/ledger/ledger.ts'
import type { PaymentRecord, Refund, State } from '../../engine/ledger/payment-record.ts'
import { readPaymentKey } from '../../engine/x402/exact-evm/payment-key.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { columns } from '../terminal-text.ts'
import { clean } from '../../command-line/printable.ts'
import { withLedger } from './open-ledger.ts'
import { isoTime, rowOf } from './row.ts'

export async function showPayment(call: Call): Promise<number> {
  const { positionals, flags, terminal } = call
  const [id] = positionals
  if (id === undefined || !/^pay_[A-Za-z0-9_-]{22}$/.test(id))
    throw new UsageError(
      'missing argument: the id of a payment, pay_ and 22 characters, as "ratecard payments list" shows it',
    )
  return withLedger(call, async (ledger) => {
    const entry = await ledger.find(id)
    if (entry === undefined) {
      terminal.err(`ratecard payments show: this ledger has no payment ${id}`)
      return 1
    }
    const facts = factsOf(await withBytes(ledger, entry), systemRuntime.now())
    const story = storyOf(entry, systemRuntime.now())
    if (flags.given('json')) terminal.out(JSON.stringify({ ...facts, ...story }, null, 2))
    else terminal.out(`${tableOf(facts)}\n\n${story.means}\nTo do: ${story.advice}.`)
    return 0
  })
}

/** Adds the bytes of a batch, which are kept once for all its payments. */
async function withBytes(ledger: Ledger, entry: PaymentRecord): Promise<PaymentRecord> {
  const { dispatch } = entry
  if (dispatch?.kind !== 'own' || dispatch.members === undefined) return entry
  const raw = await findBatch(ledger, dispatch.hash)
  return raw === undefined ? entry : { ...entry, dispatch: { ...dispatch, raw } }
}

/** All an operator may need; what was sold, what the buyer signed and what proves their right stay where they are. */
function factsOf(entry: PaymentRecord, now: number): JsonObject {
  const { settledAt, leaseUntil, due, pendingWrite: prepared } = entry
  return {
    ...rowOf(entry),
    amount_atomic: entry.receipt?.amount ?? entry.amount,
    authorized_atomic: entry.authorizedAmount,
    usage: usageOf(entry),
    gas_cost_wei: entry.receipt?.gasCost ?? null,
    asset: clean(entry.asset),
    payee: clean(entry.payee),
    authorization_nonce: readPaymentKey(entry.key)?.nonce ?? null,
    settle: entry.settle,
    revision: clean(entry.revision),
    settled_at: optionalTime(settledAt),
    undone: undoneOf(entry),
    changed_at: isoTime(entry.updatedAt),
    expires_at: isoTime(entry.validBefore),
    answer_kept_until: settledAt === undefined ? null : isoTime(settledAt + entry.redeliver),
    looked_after_at: optionalTime(due),
    attempts: entry.attempts,
    worked_on_by: leaseUntil > now && !DONE.has(entry.state) ? clean(entry.owner) : null,
    prepared: prepared === true,
    dispatch: dispatchOf(entry),
    answer: answerOf(entry),
  }
}

/** What a metered amount consists of. */
function usageOf({ usage }: PaymentRecord): string | null {
  if (usage === undefined) return null
  const spelt = usage.map(({ part, count, amount }) =>
    count === undefined ? `${part}: ${amount} USD` : `${part} = ${count}: ${amount} USD`,
  )
  return clean(spelt.join(', '))
}

/** A lease that is left over from the last change says nothing. */
const DONE: ReadonlySet<State> = new Set<State>(['sent', 'voided'])

function optionalTime(ms: number | undefined): string | null {
  return ms === undefined ? null : isoTime(ms)
}

/** How the money was asked for, without anything that would move it. */
function dispatchOf({ dispatch }: PaymentRecord): JsonObject | null {
  switch (dispatch?.kind) {
    case undefined:
      return null
    case 'own': {
      const { kind, hash, signer, nonce, members, raw } = dispatch
      return {
        kind,
        transaction: clean(hash),
        signer: clean(signer),
        nonce,
        payments_in_transaction: members ?? 1,
        can_be_sent_again: raw !== undefined,
      }
    }
    case 'payer': {
      const { kind, hash, raw } = dispatch
      return { kind, transaction: clean(hash), can_be_sent_again: raw !== undefined }
    }
    case 'facilitator': {
      const { kind, url, request } = dispatch
      // Its path may hold a key.
      const host = URL.canParse(url) ? new URL(url).host : ''
      return { kind, host, can_be_sent_again: request !== undefined }
    }
  }
}

/** The transaction that had charged it, until a reorganization. */
function undoneOf({ undone }: PaymentRecord): JsonObject | null {
  return undone === undefined ? null : { transaction: clean(undone.transaction) }
}

function answerOf({ answer }: PaymentRecord): JsonObject | null {
  if (answer === undefined) return null
  return { type: clean(answer.mediaType), bytes: answer.size }
}

function tableOf(facts: JsonObject): string {
  const rows = Object.entries(facts).flatMap(([name, value]) =>
    value === null || value === false ? [] : [[spaced(name), spell(value)]],
  )
  return columns(rows)
}

function spell(value: Json): string {
  if (typeof value === 'string') return value
  if (!isJsonObject(value)) return JSON.stringify(value)
  return Object.entries(value)
    .flatMap(([name, each]) => (each === null ? [] : [`${spaced(name)} ${spell(each)}`]))
    .join(', ')
}

function spaced(name: string): string {
  return name.replaceAll('_', ' ')
}

/** What a payment's record means, in one sentence, and what to do about it. */
export interface Story {
  readonly means: string
  readonly advice: string
}

const NOTHING = 'nothing'
const RUNNING = 'nothing while a server runs: it handles this automatically; start one if none is running'

function storyOf(entry: PaymentRecord, now: number): Story {
  const { means, advice } = stateStory(entry, now)
  if (entry.pendingWrite === undefined || entry.leaseUntil > now) return { means, advice }
  return {
    means: `${means} Its handler has stored something that still waits to be kept or undone.`,
    advice:
      advice === NOTHING ? RUNNING : `${advice}; and a server has to run, to finish what the handler stored`,
  }
}

function stateStory(entry: PaymentRecord, now: number): Story {
  if (entry.refund !== undefined) return refundStory(entry.id, entry.refund)
  if (entry.undone !== undefined) return undoneStory(entry, now)
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
      return { means: `Charged and refunded in ${clean(refund.hash)}.`, advice: NOTHING }
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

function settled(entry: PaymentRecord, now: number): Story {
  const { id, state, settle, answer, settledAt = 0, redeliver, redeliveryToken: token } = entry
  const end = settledAt + redeliver
  if (answer === undefined && settle === 'upfront' && state === 'settled') return owed(entry, now)
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
