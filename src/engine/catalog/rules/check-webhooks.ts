import type { CheckContext } from '../check-context.ts'
import { error, type Issue } from '../issue.ts'

export function* checkWebhooks({ declared, document }: CheckContext): Generator<Issue> {
  const seen = new Set<string>()
  for (const [index, { url }] of (declared.webhooks ?? []).entries()) {
    const at = document.at(['webhooks', index, 'url'])
    const isRead = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
    if (!isRead) yield error('webhook_url', at, `"${url}" is not an address: https:// and a host`)
    else if (new URL(url).username !== '' || new URL(url).password !== '')
      yield error(
        'webhook_url',
        at,
        'a password in an address is written to logs: receivers know the sender by the signature',
      )
    if (seen.has(url)) yield error('list_repeats', at, 'this address is already in the list')
    seen.add(url)
  }
}
