import {
  type Entry,
  isJsonObject,
  type Json,
  type JsonObject,
  readPaymentKey,
  type State,
} from '../../engine/index.ts'
import { world } from '../compose.ts'
import { type Call, UsageError } from '../command.ts'
import { clean, columns } from '../terminal-text.ts'
import { openBooks } from './books.ts'
import { isoTime, rowOf } from './row.ts'
import { storyOf } from './story.ts'

export async function showPayment(call: Call): Promise<number> {
  const { positionals, flags, terminal } = call
  const [id] = positionals
  if (id === undefined || !/^pay_[A-Za-z0-9_-]{22}$/.test(id))
    throw new UsageError(
      'missing argument: the id of a payment, pay_ and 22 characters, as "ratecard payments list" shows it',
    )
  const ledger = await openBooks(call)
  try {
    const entry = await ledger.find(id)
    if (entry === undefined) {
      terminal.err(`ratecard payments show: this ledger has no payment ${id}`)
      return 1
    }
    const facts = factsOf(entry, world.now())
    const story = storyOf(entry, world.now())
    if (flags.given('json')) terminal.out(JSON.stringify({ ...facts, ...story }, null, 2))
    else terminal.out(`${tableOf(facts)}\n\n${story.means}\nTo do: ${story.advice}.`)
    return 0
  } finally {
    await ledger.close()
  }
}

/** All an operator may need; what was sold, what the buyer signed and what proves their right stay where they are. */
function factsOf(entry: Entry, now: number): JsonObject {
  const { settledAt, leaseUntil, due, prepared } = entry
  return {
    ...rowOf(entry),
    amount_atomic: entry.receipt?.amount ?? entry.amount,
    asset: clean(entry.asset),
    payee: clean(entry.payee),
    authorization_nonce: readPaymentKey(entry.key)?.nonce ?? null,
    flow: entry.flow,
    revision: clean(entry.revision),
    settled_at: optionalTime(settledAt),
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

/** A lease that is left over from the last change says nothing. */
const DONE: ReadonlySet<State> = new Set<State>(['sent', 'voided'])

function optionalTime(ms: number | undefined): string | null {
  return ms === undefined ? null : isoTime(ms)
}

/** How the money was asked for, without anything that would move it. */
function dispatchOf({ dispatch }: Entry): JsonObject | null {
  switch (dispatch?.kind) {
    case undefined:
      return null
    case 'own': {
      const { kind, hash, signer, nonce, raw } = dispatch
      return {
        kind,
        transaction: clean(hash),
        signer: clean(signer),
        nonce,
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

function answerOf({ answer }: Entry): JsonObject | null {
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
    .map(([name, each]) => `${spaced(name)} ${spell(each)}`)
    .join(', ')
}

function spaced(name: string): string {
  return name.replaceAll('_', ' ')
}
