import { isJsonObject, parseJson } from '../engine/base/json.ts'

const RESPONSE = 'payment-response'

/**
 * The headers of an answer with the receipt of its last event, where a stream that is charged at its end has one and no
 * receipt could come before it.
 */
export function withReceiptEvent(headers: Headers, text: string): Headers {
  if (headers.has(RESPONSE) || !/^text\/event-stream\b/.test(headers.get('content-type') ?? ''))
    return headers
  const data = /(?:^|\n\n)event: receipt\ndata: (.*)\n\n$/.exec(text)?.[1]
  const said = data === undefined ? undefined : parseJson(data)
  const receipt = isJsonObject(said) ? said[`x402/${RESPONSE}`] : undefined
  if (!isJsonObject(receipt)) return headers
  const added = new Headers(headers)
  added.set(RESPONSE, Buffer.from(JSON.stringify(receipt)).toString('base64'))
  return added
}
