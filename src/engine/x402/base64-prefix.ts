/** Base64 of texts with a common prefix that ends with two ASCII characters: the prefix is encoded once. */
export function encodeAfter(beginning: string): (asciiRest: string) => string {
  const bytes = Buffer.from(beginning, 'utf8')
  const whole = bytes.length - (bytes.length % 3)
  const encoded = bytes.toString('base64', 0, whole)
  const left = bytes.toString('latin1', whole)
  return (rest) => encoded + Buffer.from(left + rest, 'latin1').toString('base64')
}
