import type { Lease } from '../ledger/ledger.ts'
import type { LedgerAccess } from '../ledger/lease.ts'
import type { SchemeState } from '../ledger/scheme-state.ts'
import type { Runtime } from '../base/runtime.ts'
import { bodyOf, eventId, type QueuedEvent } from './webhook-event.ts'
import { groupOf, QUEUE, readQueued, receiverKey, type Receiver } from './outbox.ts'
import { sendWebhook } from './webhook-request.ts'

interface SenderSettings extends LedgerAccess, Pick<Runtime, 'http' | 'deadline'> {
  readonly receivers: () => readonly Receiver[]
  /** Takes a line for the operator. */
  readonly log: (line: string) => void
}

/** Pauses after failures: from the first to the longest. */
const FIRST_PAUSE_MS = 2_000
const LONGEST_PAUSE_MS = 3_600_000
/** The longest of a receiver that cannot be reached: one event finds out whether it is back, for all that wait. */
const LONGEST_UNREACHED_MS = 300_000
/** An event that nobody has taken in this time is given up. */
const KEPT_MS = 3 * 86_400_000
const OLD_EVERY_MS = 3_600_000
/** One process of a ledger sends at a time; it stops before its lease ends. */
const LEASE_MS = 20_000
const PASS_MS = 10_000
/** Subjects whose events are sent at once to one receiver. */
const AT_ONCE = 8

/** Sends what waits in the ledger, until each event is taken: at least once, and those of one subject in their order. */
export class WebhookSender {
  readonly #settings: SenderSettings
  /** Receivers that could not be reached, with the time until which they are left alone. */
  readonly #paused = new Map<string, { readonly failures: number; readonly until: number }>()

  #lease: Lease | undefined
  /** When old events that nobody has taken were looked for last. */
  #lookedForOld = 0

  constructor(settings: SenderSettings) {
    this.#settings = settings
  }

  /** Lets another process send at once. */
  async release(): Promise<void> {
    if (this.#lease !== undefined) await this.#settings.ledger.release(this.#lease, undefined)
  }

  /** Sends what is due now. Resolves to whether it ran out of time. */
  async send(stopping: AbortSignal): Promise<boolean> {
    const { ledger, owner, now, receivers } = this.#settings
    const lease = await ledger.lease('webhooks', owner, now(), now() + LEASE_MS)
    if (lease === undefined) return false
    this.#lease = lease
    const until = now() + PASS_MS
    const goesOn = (): boolean => !stopping.aborted && now() < until
    if (now() - this.#lookedForOld >= OLD_EVERY_MS) await this.#giveUpOld()
    // None waits for another: one may be slow, and one may have much to catch up with.
    await Promise.all(receivers().map((receiver) => this.#sendTo(receiver, goesOn)))
    return !stopping.aborted && !goesOn()
  }

  /** Drops events that nobody has taken in time, also those for receivers that are no longer declared. */
  async #giveUpOld(): Promise<void> {
    const { ledger, now, log } = this.#settings
    this.#lookedForOld = now()
    for await (const state of ledger.states.list(QUEUE)) {
      const { type, at } = readQueued(state)
      if (now() - at < KEPT_MS) continue
      log(`webhook ${type} of ${new Date(at).toISOString()}: given up after three days`)
      await ledger.commit([], [{ previous: state, next: undefined }])
    }
  }

  async #sendTo(receiver: Receiver, goesOn: () => boolean): Promise<void> {
    const { ledger, now } = this.#settings
    const key = receiverKey(receiver)
    if (this.#isPaused(key)) return
    // The whole queue, since a store lists it in no order, and of each subject the first event goes first.
    const groups = new Map<string, SchemeState[]>()
    for await (const state of ledger.states.list(`${QUEUE}${key}:`)) {
      const group = groupOf(state.name)
      const states = groups.get(group)
      if (states === undefined) groups.set(group, [state])
      else states.push(state)
    }
    const waiting = Array.from(groups.values(), (states) =>
      states.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
    )
      .filter(([first]) => first !== undefined && readQueued(first).next <= now())
      .toSorted((one, other) => ageOf(one) - ageOf(other))
    const groupsInOrder = waiting.values()
    const sendGroups = async (): Promise<void> => {
      for (const states of groupsInOrder)
        for (const state of states) if (!goesOn() || !(await this.#sendOne(state, receiver))) break
    }
    await Promise.all(Array.from({ length: AT_ONCE }, sendGroups))
  }

  #isPaused(key: string): boolean {
    return (this.#paused.get(key)?.until ?? 0) > this.#settings.now()
  }

  /** Whether the next event of its subject may follow. */
  async #sendOne(state: SchemeState, receiver: Receiver): Promise<boolean> {
    const { ledger, now, log } = this.#settings
    const queued = readQueued(state)
    const key = receiverKey(receiver)
    if (queued.next > now() || this.#isPaused(key)) return false
    const pause = this.#paused.get(key)
    const { url, secret } = receiver
    // This event finds out whether the receiver is back; the others wait.
    if (pause !== undefined) this.#paused.set(key, { ...pause, until: now() + PASS_MS })
    const request = { url, secret, id: eventId(state.name), body: bodyOf(queued), at: now() }
    const delivery = await sendWebhook(this.#settings, request)
    if (delivery.kind === 'delivered') {
      this.#paused.delete(key)
      return ledger.commit([], [{ previous: state, next: undefined }])
    }
    const { reached, reason } = delivery
    if (reached) this.#paused.delete(key)
    else {
      const failures = (pause?.failures ?? 0) + 1
      this.#paused.set(key, { failures, until: now() + pauseAfter(failures, LONGEST_UNREACHED_MS) })
    }
    if (queued.attempts === 0 || queued.attempts % 10 === 9)
      log(`webhook ${queued.type} to ${new URL(url).host}: ${reason}; it is sent again`)
    const attempts = queued.attempts + 1
    const later: QueuedEvent = { ...queued, attempts, next: now() + pauseAfter(attempts, LONGEST_PAUSE_MS) }
    await ledger.commit([], [{ previous: state, next: JSON.stringify(later) }])
    return false
  }
}

function pauseAfter(failures: number, longest: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 20), longest)
}

function ageOf([first]: readonly SchemeState[]): number {
  return first === undefined ? 0 : readQueued(first).at
}
