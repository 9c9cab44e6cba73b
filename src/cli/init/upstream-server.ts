import type { JsonObject } from '../../engine/base/json.ts'
import { at, listAt, textAt } from '../json-access.ts'

/** Stands where the document does not say where its API is. */
export const NOWHERE = 'https://upstream.example'

/** The first server, its variables at their defaults; a relative URL is resolved against the known address. */
export function serverOf(place: JsonObject, above: string): string {
  const [server] = listAt(place, 'servers')
  const url = textAt(server, 'url')
  if (url === undefined) return above
  const filled = url.replace(
    /\{([^{}]+)\}/g,
    (_, name: string) => textAt(at(server, 'variables', name), 'default') ?? '',
  )
  const whole = URL.canParse(filled, `${above}/`) ? new URL(filled, `${above}/`) : undefined
  return whole === undefined || !/^https?:$/.test(whole.protocol)
    ? above
    : whole.href.replace(/[?#].*$/, '').replace(/\/+$/, '')
}
