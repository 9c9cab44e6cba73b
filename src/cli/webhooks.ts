import { randomUUID } from 'node:crypto'
import { systemRuntime } from '../engine/base/runtime.ts'
import { loadCatalog } from '../engine/catalog/load-catalog.ts'
import { documentNames } from '../engine/documents/all.ts'
import { bodyOf } from '../engine/webhooks/webhook-event.ts'
import { sendWebhook } from '../engine/webhooks/webhook-request.ts'
import { readWebhookSecret } from '../engine/webhooks/webhook-signature.ts'
import { missingSecrets } from '../engine/webhooks/webhooks.ts'
import { clean } from '../command-line/printable.ts'
import type { Call } from './command.ts'

/** Exits 1 when a receiver does not take the event. */
export async function testWebhooks({ flags, env, terminal }: Call): Promise<number> {
  const file = flags.text('catalog') ?? env.catalog
  const { webhooks } = loadCatalog(file, { documents: documentNames, handlers: undefined }).catalog
  if (webhooks.length === 0) {
    terminal.err(`ratecard webhooks test: ${file} has no webhooks`)
    return 1
  }
  const results = await Promise.all(
    webhooks.map(async (webhook) => {
      const { url } = webhook
      const secret = readWebhookSecret(env.secret(webhook.secret) ?? '')
      if (secret === undefined)
        return { url, delivered: false, reason: missingSecrets([webhook], env.secret).join() }
      const at = systemRuntime.now()
      const body = bodyOf({ type: 'test', data: { catalog: file }, at })
      const delivery = await sendWebhook(systemRuntime, { url, secret, id: `evt_${randomUUID()}`, body, at })
      if (delivery.kind === 'delivered') return { url, delivered: true, reason: null }
      return { url, delivered: false, reason: clean(delivery.reason) }
    }),
  )
  if (flags.given('json')) terminal.out(JSON.stringify(results, null, 2))
  else
    for (const { url, delivered, reason } of results)
      terminal.out(`${url}: ${delivered ? 'delivered' : `not delivered: ${reason}`}`)
  return results.every(({ delivered }) => delivered) ? 0 : 1
}
