/** Text that was written in another way, with the place it is in. */
export interface Decoded {
  readonly text: string
  readonly start: number
  readonly end: number
}

const MOST_PIECES = 50

/** Text in base64, hexadecimal, percent-encoding, character references or ROT13: one layer, if readable. */
export function decodedIn(text: string): Decoded[] {
  return [
    ...pieces(text, /(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,20000}={0,2}/g, (piece) =>
      Buffer.from(piece, 'base64').toString('utf8'),
    ),
    ...pieces(text, /(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :]?){12,10000}/g, (piece) =>
      Buffer.from(piece.replace(/[ :]/g, ''), 'hex').toString('utf8'),
    ),
    ...whole(text, /%[0-9A-Fa-f]{2}/, (all) =>
      all.replace(/(?:%[0-9A-Fa-f]{2}){1,5000}/g, (run) =>
        Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'),
      ),
    ),
    ...whole(text, /&#?[a-zA-Z0-9]{2,8};/, (all) =>
      all.replace(/&#(x[0-9A-Fa-f]{1,6}|[0-9]{1,7});/g, (_, code: string) => {
        const point = code.startsWith('x') ? Number.parseInt(code.slice(1), 16) : Number(code)
        return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : ''
      }),
    ),
    ...whole(text, /[a-zA-Z]/, (all) => all.replace(/[a-zA-Z]/g, rotated)),
  ]
}

function pieces(text: string, encoded: RegExp, decode: (piece: string) => string): Decoded[] {
  const found: Decoded[] = []
  for (const { 0: piece, index } of text.matchAll(encoded)) {
    const decoded = decode(piece)
    if (isReadable(decoded)) found.push({ text: decoded, start: index, end: index + piece.length })
    if (found.length === MOST_PIECES) break
  }
  return found
}

function whole(text: string, sign: RegExp, decode: (text: string) => string): Decoded[] {
  return sign.test(text) ? [{ text: decode(text), start: 0, end: text.length }] : []
}

/** Most bytes are no text. */
function isReadable(text: string): boolean {
  const odd = text.match(/[^\P{Cc}\t\n\r]|\ufffd/gu)?.length ?? 0
  return text.length > 0 && odd * 10 <= text.length
}

function rotated(letter: string): string {
  const code = letter.charCodeAt(0)
  const base = code < 97 ? 65 : 97
  return String.fromCharCode(((code - base + 13) % 26) + base)
}
