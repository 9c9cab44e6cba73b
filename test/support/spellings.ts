/**
 * Ways to write a path by which some server would still find it, as targets on the wire in Latin-1; none is the path itself.
 * Made by rules: every rule at every place where it applies.
 */
export function spellingsOf(path: string): string[] {
  const made = new Set([...atEachLetter(path), ...atEachSlash(path), ...aroundPath(path)])
  const twice = [...made].filter((_, at) => at % 7 === 0).flatMap((each) => aroundPath(each).slice(0, 4))
  for (const each of twice) made.add(each)
  made.delete(path)
  return [...made]
}

function atEachLetter(path: string): string[] {
  return Array.from(path).flatMap((letter, at) => {
    if (letter === '/') return []
    const code = letter.charCodeAt(0)
    const hex = code.toString(16)
    const wide = latin1(String.fromCharCode(code + 0xfee0))
    const writings = [
      letter.toUpperCase(),
      `%${hex}`,
      `%${letter.toUpperCase().charCodeAt(0).toString(16)}`,
      `%25${hex}`,
      `%2525${hex}`,
      `%u00${hex}`,
      wide,
      encoded(wide),
      // Overlong forms of two and three octets.
      `%${(0xc0 | (code >> 6)).toString(16)}%${(0x80 | (code & 0x3f)).toString(16)}`,
      `%e0%${(0x80 | (code >> 6)).toString(16)}%${(0x80 | (code & 0x3f)).toString(16)}`,
      `${letter}%e2%80%8b`,
      `${letter}%00`,
      `${letter}%0a`,
    ]
    return writings.map((writing) => path.slice(0, at) + writing + path.slice(at + 1))
  })
}

const SLASHES = [
  '//',
  '///',
  '\\',
  '%2f',
  '%2F',
  '%5c',
  '%252f',
  '%25252F',
  '%255C',
  '%c0%af',
  '%e0%80%af',
  '%ef%bc%8f',
  '\xef\xbc\x8f',
  '%u2215',
  '/./',
  '/%2e/',
  '/%252e/',
  '/x/../',
  '/x/%2e%2e/',
  '/x/%2e./',
  '/x/..%2f',
  '/x%2f..%2f',
  '/x/..;/',
  '/x/..;a=b/',
  '/x\\..\\',
  '/x/..%5c',
  '/x//..//',
  '/;/',
  '/;a=b/',
  ';/',
  ';a=b/',
  ';a=%2f/',
  '%3b/',
  './',
  '%20/',
  '/%20',
  '/.%00/../',
]

function atEachSlash(path: string): string[] {
  return Array.from(path).flatMap((letter, at) =>
    letter === '/' ? SLASHES.map((slash) => path.slice(0, at) + slash + path.slice(at + 1)) : [],
  )
}

const ENDS = [
  '/',
  '//',
  '/.',
  '/x/..',
  '/%2e',
  '%2f',
  '%5c',
  '\\',
  '.',
  '..',
  '%2e',
  '%20',
  '%20%20.',
  ';',
  ';a=b',
  ';.css',
  '/;x',
  '%3b',
  '%3Bx',
  '%00',
  '%00.html',
  '%0a',
  '%0d%0a',
  '%09',
  '%23',
  '%3f',
  '%3Fa=b',
  '%253f',
  '%e2%80%8b',
  '%c2%a0',
  '.json',
  '.JSON',
  '.xml',
  '.html',
  '.php',
  '%2ejson',
  '.json/',
  '.json;x',
]

const BEGINNINGS = [
  'http://other.invalid',
  'HTTPS://a:b@x',
  '//x',
  '/\\x',
  '/.',
  '/x/..',
  '/%2e%2e',
  '/..;',
  '///x',
]

function aroundPath(path: string): string[] {
  return [
    ...ENDS.map((end) => path + end),
    ...BEGINNINGS.map((beginning) => beginning + path),
    path.toUpperCase(),
    encoded(path).toLowerCase(),
    encodedWhole(path),
    encodedWhole(encodedWhole(path)),
  ].filter((each) => each !== '')
}

function encodedWhole(path: string): string {
  return `/${Array.from(path.slice(1), (letter) => `%${letter.charCodeAt(0).toString(16)}`).join('')}`
}

function encoded(text: string): string {
  return Array.from(text, (octet) =>
    octet.charCodeAt(0) < 0x80 ? octet : `%${octet.charCodeAt(0).toString(16)}`,
  ).join('')
}

/** The octets of UTF-8, one character each. */
function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
