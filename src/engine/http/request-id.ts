import type { IncomingMessage } from 'node:http'

/** Visible ASCII that needs no quoting in a log, a URL or a shell. */
const VALID = /^[\w.:/+=@~-]{1,128}$/

/**
 * Names requests: by the `X-Request-Id` that a proxy or a caller has given, when it is valid, or else by a name of this
 * process and a number.
 */
export function requestIds(
  random: (bytes: number) => Uint8Array,
): (request: Pick<IncomingMessage, 'headers'>) => string {
  const own = Buffer.from(random(9)).toString('base64url')
  let count = 0
  return ({ headers }) => {
    const given = headers['x-request-id']
    if (typeof given === 'string' && VALID.test(given)) return given
    count += 1
    return `${own}.${count.toString(36)}`
  }
}
