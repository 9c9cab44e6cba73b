import type { Lease } from '../ledger/ledger.ts'
import type { LedgerAccess } from '../ledger/lease.ts'
import type { SchemeState } from '../ledger/scheme-state.ts'
import type { Runtime } from '../base/runtime.ts'
import { bodyOf, eventId, type QueuedEvent } from './webhook-event.ts'
import { QUEUE, readQueued, readQueueName, receiverKey, type Receiver } from './outbox.ts'
import { sendWebhook } from './webhook-request.ts'

interface SenderSettings extends LedgerAccess, Pick<Runtime, 'http' | 'deadline'> {
  readonly receivers: () => readonly Receiver[]
  /** Takes a line for the operator. */
  readonly log: (line: string) => void
}

/** Pauses after failures: from the first to the longest. */
const FIRST_PAUSE_MS = 2_000
const LONGEST_PAUSE_MS = 3_600_000
/** An event that nobody has taken in this time is given up. */
const KEPT_MS = 3 * 86_400_000
/** One process of a ledger sends at a time; it stops before its lease ends. */
const LEASE_MS = 20_000
const PASS_MS = 10_000
/** Subjects whose events are sent at once to one receiver. */
const AT_ONCE = 8
/** Events of one pass. */
const MOST_EVENTS = 2_000

/** Sends what waits in the ledger, until each event is taken: at least once, and those of one subject in their order. */
export class WebhookSender {
  readonly #settings: SenderSettings
  /** Receivers that could not be reached, with the time until which they are left alone. */
  readonly #paused = new Map<string, { readonly failures: number; readonly until: number }>()

  #lease: Lease | undefined

  constructor(settings: SenderSettings) {
    this.#settings = settings
  }

  /** Lets another process send at once. */
  async release(): Promise<void> {
    if (this.#lease !== undefined) await this.#settings.ledger.release(this.#lease, undefined)
  }

  /** Sends what is due now. Resolves to whether more may be waiting that is due. */
  async send(stopping: AbortSignal): Promise<boolean> {
    const { ledger, owner, now } = this.#settings
    const receivers = new Map(this.#settings.receivers().map((each) => [receiverKey(each), each]))
    const lease = await ledger.lease('webhooks', owner, now(), now() + LEASE_MS)
    if (lease === undefined) return false
    this.#lease = lease
    const until = now() + PASS_MS
    const groups = new Map<string, SchemeState[]>()
    let count = 0
    for await (const state of ledger.states.list(QUEUE)) {
      const { group } = readQueueName(state.name)
      groups.set(group, [...(groups.get(group) ?? []), state])
      if ((count += 1) >= MOST_EVENTS) break
    }
    const waiting = Array.from(groups.values(), (states) =>
      states.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
    ).toSorted((one, other) => ageOf(one) - ageOf(other))
    const goesOn = (): boolean => !stopping.aborted && now() < until
    const sendGroups = async (): Promise<void> => {
      for (let states = waiting.shift(); states !== undefined && goesOn(); states = waiting.shift())
        for (const state of states) {
          const receiver = receivers.get(readQueueName(state.name).receiver)
          if (!goesOn() || !(await this.#sendOne(state, receiver))) break
        }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, sendGroups))
    return count >= MOST_EVENTS
  }

  /** Whether the next event of its subject may follow. */
  async #sendOne(state: SchemeState, receiver: Receiver | undefined): Promise<boolean> {
    const { ledger, now, log } = this.#settings
    const queued = readQueued(state)
    if (now() - queued.at >= KEPT_MS) {
      log(`webhook ${queued.type} of ${new Date(queued.at).toISOString()}: given up after three days`)
      return ledger.commit([], [{ previous: state, next: undefined }])
    }
    // It may be a receiver of an earlier revision, or its secret may be missing.
    if (receiver === undefined || queued.next > now()) return false
    const key = receiverKey(receiver)
    const pause = this.#paused.get(key)
    if (pause !== undefined && pause.until > now()) return false
    const { url, secret } = receiver
    // While it is tried whether the receiver is back, the others wait.
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
      this.#paused.set(key, { failures, until: now() + pauseAfter(failures) })
    }
    if (queued.attempts === 0 || queued.attempts % 10 === 9)
      log(`webhook ${queued.type} to ${new URL(url).host}: ${reason}; it is sent again`)
    const attempts = queued.attempts + 1
    const later: QueuedEvent = { ...queued, attempts, next: now() + pauseAfter(attempts) }
    await ledger.commit([], [{ previous: state, next: JSON.stringify(later) }])
    return false
  }
}

function pauseAfter(failures: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 20), LONGEST_PAUSE_MS)
}

function ageOf([first]: readonly SchemeState[]): number {
  return first === undefined ? 0 : readQueued(first).at
}
