import { isUtf8 } from 'node:buffer'

/**
 * What servers may do to a path before they look for a route. Each is harmless alone; they differ in which of these they
 * do, how often, and in which order.
 */
const STEPS: readonly ((path: string) => string)[] = [
  (path) => decode(path, ALL, strictly),
  (path) => decode(path, ALL_BUT_SLASHES, carelessly),
  (path) => decode(path, UNRESERVED, carelessly),
  decodeUnits,
  fold,
  straighten,
  (path) => path.replace(/\/{2,}/g, '/'),
  withoutHost,
  (path) => path.replace(/;[^/]*/g, ''),
  (path) => before(path, /[?]/),
  (path) => before(path, /[#]/),
  (path) => before(path, /[;]/),
  (path) => before(path, /[\0\r\n]/),
  resolveDots,
  (path) => trimSegments(path, (character) => character === ' '),
  (path) => trimSegments(path, (character) => character === ' ' || character === '.'),
  withoutEnd,
  withoutFormat,
]

/** Most characters of all readings together: a path has one reading, a strange one a few dozen. */
const MOST_CHARACTERS = 200_000

/**
 * Every path that a server may take this one for: the steps in any order, each any number of times. Undefined: they are
 * too many to tell.
 */
export function readingsOf(path: string): ReadonlySet<string> | undefined {
  const first = encodeOctets(path)
  const readings = new Set([first])
  let room = MOST_CHARACTERS - first.length
  // The loop comes to what it adds, too.
  for (const reading of readings)
    for (const step of STEPS) {
      const next = step(reading)
      if (readings.has(next)) continue
      readings.add(next)
      room -= next.length
      if (room < 0) return undefined
    }
  return readings
}

/** Node.js hands over the octets of a target as Latin-1; they mean what they mean when they are encoded. */
function encodeOctets(path: string): string {
  return path.replace(/[\x80-\xff]/g, (octet) => `%${octet.charCodeAt(0).toString(16)}`)
}

/** Runs of encoded octets: what servers decode. */
const ALL = /(?:%[0-9a-f]{2})+/gi
const ALL_BUT_SLASHES = /(?:%(?!2f|5c)[0-9a-f]{2})+/gi
/** RFC 3986 §6.2.2.2; URL parsers read encoded dots in this way. */
const UNRESERVED = /(?:%(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e))+/gi

function decode(path: string, octets: RegExp, read: (octets: Buffer) => string | undefined): string {
  return path.replace(octets, (run) => read(Buffer.from(run.replaceAll('%', ''), 'hex')) ?? run)
}

/** The encoding of IIS. */
function decodeUnits(path: string): string {
  return path.replace(/%u([0-9a-f]{4})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
}

/** Octets that are no UTF-8 stay as they are. */
function strictly(octets: Buffer): string | undefined {
  return isUtf8(octets) ? octets.toString('utf8') : undefined
}

/** UTF-8 with overlong forms; what is none of it, as Latin-1. */
function carelessly(octets: Buffer): string {
  let text = ''
  for (let at = 0; at < octets.length;) {
    const { point, length } = characterAt(octets, at)
    text += String.fromCodePoint(point)
    at += length
  }
  return text
}

function characterAt(octets: Uint8Array, at: number): { readonly point: number; readonly length: number } {
  const lead = octets[at] ?? 0
  const length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 1
  const rest = octets.subarray(at + 1, at + length)
  // 0xC0 and 0xC1 begin overlong forms only, and some decoders do not look at what follows.
  const isWhole = rest.length === length - 1 && (lead < 0xc2 || rest.every((octet) => octet >> 6 === 0b10))
  const point = rest.reduce((sum, octet) => (sum << 6) | (octet & 0x3f), lead & (0xff >> (length + 1)))
  return length === 1 || !isWhole || point > 0x10ffff ? { point: lead, length: 1 } : { point, length }
}

/** Compatibility forms and upper case are other ways to write a letter, and what is not seen is not there. */
function fold(path: string): string {
  return path
    .normalize('NFKC')
    .replace(/[\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, '')
    .toUpperCase()
    .toLowerCase()
}

/** Strokes that some systems take for a slash. */
function straighten(path: string): string {
  return path.replace(/[\\\u2044\u2215\u29f5\u29f8]/g, '/')
}

/** A target that begins with two slashes is a reference with a host to URL parsers. */
function withoutHost(path: string): string {
  return path.replace(/^\/{2,}[^/]*(?=\/)/, '')
}

/** What comes after a mark is a query, a fragment or a parameter, or lost on a program in C; to others it is a character. */
function before(path: string, mark: RegExp): string {
  const at = path.search(mark)
  return at === -1 ? path : path.slice(0, at)
}

/** RFC 3986 §5.2.4. */
function resolveDots(path: string): string {
  if (!path.includes('.')) return path
  const kept: string[] = []
  const segments = path.split('/').slice(1)
  for (const [at, segment] of segments.entries()) {
    const isLast = at === segments.length - 1
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
    if (isLast && (segment === '.' || segment === '..')) kept.push('')
  }
  return `/${kept.join('/')}`
}

/** Windows ignores spaces and dots at the end of a name; the two names of folders stay. */
function trimSegments(path: string, isTrimmed: (character: string) => boolean): string {
  return path
    .split('/')
    .map((segment) => {
      if (segment === '.' || segment === '..') return segment
      let [start, end] = [0, segment.length]
      while (end > start && isTrimmed(segment.charAt(end - 1))) end -= 1
      while (start < end && segment.charAt(start) === ' ') start += 1
      return segment.slice(start, end)
    })
    .join('/')
}

function withoutEnd(path: string): string {
  let end = path.length
  while (end > 1 && path.charAt(end - 1) === '/') end -= 1
  return path.slice(0, end)
}

/** Rails and others read `/search.json` as the path `/search` in a format, whatever its name. */
function withoutFormat(path: string): string {
  const name = path.lastIndexOf('/') + 1
  const dot = path.lastIndexOf('.')
  return dot > name ? path.slice(0, dot) : path
}
