/** Documents of the installed npm packages, drawn by a seed: what a guard must let pass. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Half of the documents may be looked at while rules are written; the other half measures them. */
export type Half = 'tuning' | 'test'

export interface PackageDocument {
  readonly path: string
  readonly text: string
}

export const SEED = 'ratecard guard 2026-11-25'

/** As many characters as the guard takes. */
const LONGEST = 20_000
const SHORTEST = 200
const NAMES =
  /\.(?:md|markdown|mdx|txt|rst)$|(?:^|\/)(?:readme|changes|changelog|history|notice|authors|licen[cs]e)[^/.]*$/i
const FOLDER = fileURLToPath(new URL('../../../node_modules', import.meta.url))

/** The texts of one half in the order of their digests; long ones are cut into parts, equal ones count once. */
export function packageDocuments(half: Half): readonly PackageDocument[] {
  const known = new Map<string, PackageDocument>()
  for (const path of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!NAMES.test(path) || halfOf(path) !== half) continue
    for (const text of partsOf(read(path))) {
      const digest = digestOf(text)
      if (!known.has(digest)) known.set(digest, { path, text })
    }
  }
  return [...known].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, document]) => document)
}

/** All documents of a package are in the same half: they resemble each other. */
function halfOf(path: string): Half {
  const [first = '', second = ''] = path.split('/')
  const name = first.startsWith('@') ? `${first}/${second}` : first
  return Number.parseInt(digestOf(name).slice(0, 2), 16) % 4 === 0 ? 'tuning' : 'test'
}

function partsOf(text: string): string[] {
  const parts = Array.from({ length: Math.ceil(text.length / LONGEST) }, (_, index) =>
    text.slice(index * LONGEST, (index + 1) * LONGEST),
  )
  return parts.filter(({ length }) => length >= SHORTEST)
}

function read(path: string): string {
  try {
    return readFileSync(`${FOLDER}/${path}`, 'utf8')
  } catch {
    return '' // a folder with such a name
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(`${SEED} ${text}`).digest('hex')
}
