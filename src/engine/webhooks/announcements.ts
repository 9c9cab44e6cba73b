import type { Ledger } from '../ledger/ledger.ts'
import type { ListingReport } from '../payment/listing-report.ts'
import type { NetworkHealth } from '../payment/network-health.ts'
import { queueChanges, type Receiver } from './outbox.ts'
import type { WebhookEvent } from './webhook-event.ts'

/** What was last seen of networks and listings, under these names: all processes together say each change once. */
const SEEN = 'webhook-seen:'

interface Sighting {
  /** Of what, as a part of a name. */
  readonly subject: string
  readonly state: string
  /** What is to be said of this state; undefined: nothing. */
  readonly event: Pick<WebhookEvent, 'type' | 'data'> | undefined
}

/** Queues an event for each network that has closed, and each listing that was dropped, since the last look. */
export async function announceChanges(
  ledger: Ledger,
  receivers: readonly Receiver[],
  networks: readonly NetworkHealth[],
  listings: readonly ListingReport[],
): Promise<void> {
  for (const { subject, state, event } of [...networks.map(sightNetwork), ...listings.map(sightListing)]) {
    const seen = await ledger.states.get(`${SEEN}${subject}`)
    if (seen.text === state) continue
    const events = event === undefined ? [] : [{ ...event, subject, place: seen.version + 1 }]
    // When another process has seen it first, nothing is stored.
    await ledger.commit(
      [],
      [{ previous: seen, next: state }, ...queueChanges(receivers, events, ledger.now())],
    )
  }
}

function sightNetwork({ network, trouble }: NetworkHealth): Sighting {
  const subject = `network-${network.id.replace(':', '-')}`
  if (trouble === undefined) return { subject, state: 'open', event: undefined }
  const data = { network: network.id, name: network.title, reason: trouble }
  return { subject, state: 'closed', event: { type: 'network_closed', data } }
}

function sightListing({ facilitator, operation, status, reason }: ListingReport): Sighting {
  const subject = `listing-${Buffer.from(`${facilitator} ${operation}`).toString('base64url').slice(0, 200)}`
  const data = { facilitator, operation, reason: reason ?? '' }
  return {
    subject,
    state: status,
    event: status === 'rejected' ? { type: 'listing_dropped', data } : undefined,
  }
}
