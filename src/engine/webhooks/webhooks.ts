import type { Webhook } from '../catalog/catalog.ts'
import type { Runtime } from '../base/runtime.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { ListingReport } from '../payment/listing-report.ts'
import type { NetworkHealth } from '../payment/network-health.ts'
import { announceChanges } from './announcements.ts'
import { type Receiver, withOutbox } from './outbox.ts'
import { WebhookSender } from './webhook-sender.ts'
import { readWebhookSecret } from './webhook-signature.ts'

export interface WebhookSettings extends Pick<Runtime, 'http' | 'deadline' | 'every'> {
  readonly ledger: Ledger
  readonly owner: string
  /** The receivers of the catalog that is served. */
  readonly declared: () => readonly Webhook[]
  readonly secret: (name: string) => string | undefined
  readonly networks: () => Promise<readonly NetworkHealth[]>
  readonly listings: () => Promise<readonly ListingReport[]>
  readonly log: (line: string) => void
  readonly report: (fault: unknown) => void
}

export interface Webhooks {
  /** The ledger that stores events together with what they are about. */
  readonly ledger: Ledger
  /** Resolves when nothing is being sent any more; what waits is sent by the next process. */
  readonly close: () => Promise<void>
}

/** How often events of other processes are looked for, and those of this one. */
const LOOK_MS = 5_000
const TICK_MS = 500

/** Tells receivers what has happened, beside the sales and never before them. */
export function openWebhooks(settings: WebhookSettings): Webhooks {
  const { ledger, owner, every, report, networks, listings } = settings
  const receivers = (): Receiver[] => receiversOf(settings.declared(), settings.secret)
  const sender = new WebhookSender({ ...settings, now: ledger.now, owner, receivers })
  const stopping = new AbortController()
  let isWoken = true
  let lookedAt = 0
  let sending: Promise<void> = Promise.resolve()
  let isSending = false
  const pass = async (): Promise<void> => {
    if (settings.declared().length === 0) return
    const isLook = ledger.now() - lookedAt >= LOOK_MS
    if (!isWoken && !isLook) return
    if (isLook) {
      lookedAt = ledger.now()
      await announceChanges(ledger, receivers(), await networks(), await listings())
    }
    isWoken = false
    if (await sender.send(stopping.signal)) isWoken = true
  }
  const stop = every(TICK_MS, () => {
    if (isSending) return
    isSending = true
    sending = pass()
      .catch(report)
      .finally(() => (isSending = false))
  })
  return {
    ledger: withOutbox(ledger, receivers, () => (isWoken = true)),
    close: async () => {
      stop()
      stopping.abort()
      await sending
      await sender.release().catch(report)
    },
  }
}

/** Those whose secret is set; `missingSecrets` names the others. */
function receiversOf(declared: readonly Webhook[], secretOf: WebhookSettings['secret']): Receiver[] {
  return declared.flatMap(({ url, events, secret }) => {
    const read = readWebhookSecret(secretOf(secret) ?? '')
    return read === undefined ? [] : [{ url, events, secret: read }]
  })
}

/** A sentence for each receiver that gets nothing. */
export function missingSecrets(
  declared: readonly Webhook[],
  secretOf: (name: string) => string | undefined,
): string[] {
  return declared.flatMap(({ url, secret }) => {
    const text = secretOf(secret)
    const { host } = new URL(url)
    if (text === undefined) return [`webhooks to ${host} are not sent before ${secret} is set`]
    return readWebhookSecret(text) === undefined
      ? [`webhooks to ${host} are not sent: ${secret} is not whsec_ and 24 to 64 bytes in base64`]
      : []
  })
}
