/** `before`, the standing text and `after` as one base64 text. */
export type Frame = (before: string, after: string) => string

/**
 * Base64 of a long text that stands between two short ones that change: three bytes at a time, the long text is encoded
 * once for each of the three places `before` can leave it at. It must begin and end with three ASCII characters.
 */
export function frameBase64(standing: string): Frame {
  const encoded = new Map<number, Encoded>()
  return (before, after) => {
    const lead = (3 - (Buffer.byteLength(before) % 3)) % 3
    const known = encoded.get(lead) ?? encodeFrom(standing, lead)
    encoded.set(lead, known)
    return toBase64(before + standing.slice(0, lead)) + known.text + toBase64(known.rest + after)
  }
}

export function toBase64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64')
}

interface Encoded {
  readonly text: string
  /** What is left when the bytes are taken by threes. */
  readonly rest: string
}

function encodeFrom(standing: string, lead: number): Encoded {
  const bytes = Buffer.from(standing.slice(lead), 'utf8')
  const whole = bytes.length - (bytes.length % 3)
  return { text: bytes.toString('base64', 0, whole), rest: bytes.toString('latin1', whole) }
}
