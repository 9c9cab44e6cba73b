import { hash } from 'node:crypto'
import type { WebhookEventType } from '../catalog/catalog.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { SchemeState, SchemeStateChange } from '../ledger/scheme-state.ts'
import { type QueuedEvent, type WebhookEvent, eventsOf } from './webhook-event.ts'

/** A receiver of events, with its secret. */
export interface Receiver {
  readonly url: string
  readonly events: readonly WebhookEventType[]
  readonly secret: Uint8Array
}

/** Events wait under these names until they are delivered. */
export const QUEUE = 'webhook:'

/** Names the queue of a receiver: another address is another receiver. */
export function receiverKey({ url }: Pick<Receiver, 'url'>): string {
  return hash('sha256', url, 'base64url').slice(0, 12)
}

/** Where an event waits: the names of one subject sort in the order of its events. */
function queueName(receiver: Receiver, { type, subject, place }: WebhookEvent): string {
  return `${QUEUE}${receiverKey(receiver)}:${subject}:${String(place).padStart(15, '0')}:${type}`
}

/** Events with one group are sent one after the other: those of one subject to one receiver. */
export function groupOf(queueName: string): string {
  return queueName.split(':').slice(0, -2).join(':')
}

/** The changes that store events for their receivers. */
export function queueChanges(
  receivers: readonly Receiver[],
  events: readonly WebhookEvent[],
  now: number,
): SchemeStateChange[] {
  return events.flatMap((event) =>
    receivers
      .filter(({ events: wanted }) => wanted.includes(event.type))
      .map((receiver) => {
        const { type, data } = event
        const queued: QueuedEvent = { type, data, at: now, attempts: 0, next: 0 }
        return {
          previous: { name: queueName(receiver, event), version: 0 },
          next: JSON.stringify(queued),
        }
      }),
  )
}

/**
 * The same ledger, which stores each event in the commit of the change that it reports: no crash loses an event, and no event
 * reports a change that was not stored. `stored` is called after each commit with events.
 */
export function withOutbox(ledger: Ledger, receivers: () => readonly Receiver[], stored: () => void): Ledger {
  const commit: Ledger['commit'] = async (changes, states = []) => {
    const wanted = receivers()
    const events = wanted.length === 0 ? [] : changes.flatMap(eventsOf)
    if (events.length === 0) return ledger.commit(changes, states)
    const made = await ledger.commit(changes, [...states, ...queueChanges(wanted, events, ledger.now())])
    if (made) stored()
    return made
  }
  return {
    ...ledger,
    commit,
    // A store that was emptied takes the record of a charged payment as new.
    insert: async (record) => {
      const standing = await ledger.insert(record)
      if (standing !== undefined || record.receipt === undefined) return standing
      const events = eventsOf({ previous: undefined, next: record })
      if (events.length > 0 && (await ledger.commit([], queueChanges(receivers(), events, ledger.now()))))
        stored()
      return undefined
    },
    replace: (previous, next) => commit([{ previous, next }]),
    replaceSoon: (previous, next) =>
      eventsOf({ previous, next }).length === 0
        ? ledger.replaceSoon(previous, next)
        : commit([{ previous, next }]),
    remove: (record) => commit([{ previous: record, next: undefined }]),
  }
}

/** An event as it was stored. */
export function readQueued({ text }: SchemeState): QueuedEvent {
  const queued: QueuedEvent = JSON.parse(text)
  return queued
}
