const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  reg: '®',
  trade: '™',
  copy: '©',
}

/**
 * The text of a piece of HTML: tags gone, entities read, white space in one piece.
 *
 * @example
 * plainText('Fight &amp; <b>win</b>.') // 'Fight & win.'
 */
export function plainText(html: string): string {
  return html
    .replace(/<[^<>]*>/g, ' ')
    .replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{1,8}));/gi, decode)
    .replace(/\s+/g, ' ')
    .replace(/ ([.,;:!?])/g, '$1')
    .trim()
}

/**
 * The entries of a list the store writes as one line: `English<strong>*</strong>, German<br>…with full audio`.
 *
 * @example
 * plainList('English<strong>*</strong>, German<br><strong>*</strong>languages with full audio support') // ['English', 'German']
 */
export function plainList(html: string): string[] {
  const [line = ''] = html.split(/<br\s*\/?>/i)
  return line
    .split(',')
    .map((entry) => plainText(entry).replaceAll('*', '').trim())
    .filter((entry) => entry !== '')
}

function decode(whole: string, decimal?: string, hexadecimal?: string, name?: string): string {
  if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole
  const code = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal)
  const isCharacter = code >= 0x20 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
  return isCharacter ? String.fromCodePoint(code) : ' '
}
