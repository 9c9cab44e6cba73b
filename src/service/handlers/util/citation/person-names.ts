import type { Contributor } from '../../../sources/works/work.ts'

/** Written in one piece, the family first. */
const IN_ONE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u
/** Small words of family names that some agencies leave with the given ones. */
const PARTICLES: ReadonlySet<string> = new Set(
  'van von de der den del della di da dos das du do la le ter ten te af av zu zum bin ibn al el'.split(' '),
)

/** How a given name is shown. */
export type Given = (given: string) => string

/** Given names unchanged. */
export const inFull: Given = (given) => given
/** `Jean-Paul Marie` as `J.-P. M.` */
export const spaced: Given = (given) => initials(given, '.', ' ')
/** `J.-P.M.` */
export const close: Given = (given) => initials(given, '.', '')
/** `JPM` */
export const bare: Given = (given) => initials(given, '', '').replaceAll('-', '')

/** `King, M. L., Jr.`: a comma between family and given names, or nothing in medicine. */
export function familyFirst(person: Contributor, given: Given, comma: ',' | '' = ','): string {
  if (person.family === null) return person.name ?? ''
  if (isInOne(person)) return person.family + (person.given ?? '')
  const first = person.given === null ? '' : given(person.given)
  return [person.family, first, person.suffix ?? ''].filter((part) => part !== '').join(`${comma} `)
}

/** `Schijndel, Marten van`: without the small words that are before the family. */
export function coreFirst(person: Contributor, given: Given): string {
  const [, particle, core] = /^((?:\p{Ll}[\p{L}’']*\s+)+)(\p{Lu}.*)$/u.exec(person.family ?? '') ?? []
  if (particle === undefined || core === undefined || person.given === null) return familyFirst(person, given)
  const first = `${given(person.given)} ${particle.trim()}`
  return [core, first, person.suffix ?? ''].filter((part) => part !== '').join(', ')
}

/** Whether `familyFirst` turns the name around, so that a comma follows it in a series of two. */
export function isTurned(person: Contributor | undefined): boolean {
  return person !== undefined && person.family !== null && !isInOne(person)
}

/** `M. L. King Jr.` */
export function givenFirst(person: Contributor, given: Given): string {
  if (person.family === null) return person.name ?? ''
  if (isInOne(person)) return person.family + (person.given ?? '')
  const first = person.given === null ? '' : given(person.given)
  return [first, person.family, person.suffix ?? ''].filter((part) => part !== '').join(' ')
}

/** `A, B, and C`: what is before the last depends on whether there are two or more. */
export function inSeries(names: readonly string[], two: string, more: string): string {
  const last = names.at(-1) ?? ''
  if (names.length < 2) return last
  return names.slice(0, -1).join(', ') + (names.length === 2 ? two : more) + last
}

/** The first `shown` and `et al.` where there are more than `most`; otherwise nothing. */
export function abridged(
  names: readonly string[],
  total: number,
  most: number,
  shown: number,
): string | undefined {
  if (total <= most) return undefined
  return `${names.slice(0, shown).join(', ')}${shown > 1 ? ',' : ''} et al.`
}

function isInOne({ family, given }: Contributor): boolean {
  return IN_ONE.test(family ?? '') && (given === null || IN_ONE.test(given))
}

function initials(given: string, dot: string, between: string): string {
  return given
    .split(/[\s.]+/u)
    .filter((part) => part !== '' && part !== '-')
    .flatMap((part) => (/^\p{Lu}{2,3}$/u.test(part) ? Array.from(part) : [part]))
    .map((part) => (PARTICLES.has(part) ? ` ${part}` : hyphenated(part, dot)))
    .join(between)
    .replace(/ {2,}/g, ' ')
    .trim()
}

function hyphenated(part: string, dot: string): string {
  return part
    .split(/[-‐‑]/u)
    .flatMap((piece) => {
      const [letter = ''] = piece.match(/[\p{L}\p{N}]\p{M}*/u) ?? []
      return letter === '' ? [] : [letter.toUpperCase() + dot]
    })
    .join('-')
}
