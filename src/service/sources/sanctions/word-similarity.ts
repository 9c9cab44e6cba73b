import { doubleMetaphone } from 'double-metaphone'

/** A word and what is compared of it. */
export interface Word {
  readonly text: string
  /** Primary Double Metaphone code. */
  readonly sound: string
  /** Its consonants, one letter for those that scripts confuse. */
  readonly skeleton: string
  /** A bit for each letter or digit in it. */
  readonly letters: number
}

/** Below this two words have nothing to do with each other. */
export const LEAST_SIMILARITY = 0.75

/** Whether one word is a single letter and the other a longer word that begins with it. */
export function isInitial(one: string, other: string): boolean {
  return (one.length === 1) !== (other.length === 1) && /^[a-z]/.test(one) && one[0] === other[0]
}

export function wordOf(text: string): Word {
  return { text, sound: doubleMetaphone(text)[0], skeleton: skeletonOf(text), letters: lettersOf(text) }
}

/**
 * How alike two words are, from 0 to 1: Jaro-Winkler, less for unequal length (up to 30 % of the difference) and for
 * first letters that sound different (10 %), at least 0.92 for words of four letters that sound the same and are spelled
 * much alike. One letter is an initial: 0.75 of any word that begins with it.
 */
export function wordSimilarity(one: Word, other: Word): number {
  const [a, b] = [one.text, other.text]
  if (a === b) return 1
  if (a.length === 1 || b.length === 1) return a[0] === b[0] ? LEAST_SIMILARITY : 0
  if (!mayBeAlike(one, other)) return 0
  const shorter = Math.min(a.length, b.length)
  const ratio = shorter / Math.max(a.length, b.length)
  const close = jaroWinkler(a, b)
  const fair = ratio < 0.9 ? close * (1 - 0.3 * (1 - ratio)) : close
  const score = soundClass(a) === soundClass(b) ? fair : fair * 0.9
  return shorter >= 4 && soundsLike(one, other, score) ? Math.max(score, 0.92) : score
}

/**
 * Whether two words have letters enough in common to reach the least likeness, where no letter is counted twice: all but
 * a few of the words of a list are sorted out by this.
 */
function mayBeAlike(one: Word, other: Word): boolean {
  const [a, b] = [one.text, other.text]
  const common = Math.min(
    a.length - bits(one.letters & ~other.letters),
    b.length - bits(other.letters & ~one.letters),
  )
  const most = (common / a.length + common / b.length + 1) / 3
  return most >= (a[0] === b[0] ? 0.7 : LEAST_SIMILARITY)
}

/** Digits share bits with letters: that only lets more words through. */
function lettersOf(word: string): number {
  let set = 0
  for (let place = 0; place < word.length; place++) set |= 1 << (word.charCodeAt(place) & 31)
  return set
}

function bits(set: number): number {
  let count = 0
  for (let rest = set; rest !== 0; rest &= rest - 1) count++
  return count
}

/** Short codes are shared by words that have little in common (Omar and Amir): those must be spelled closer. */
function soundsLike({ sound }: Word, other: Word, score: number): boolean {
  return sound !== '' && sound === other.sound && score >= (sound.length >= 3 ? 0.76 : 0.86)
}

/** How alike two words are when the first comes from a script without short vowels: by their consonants. */
export function skeletonSimilarity(vowelless: Word, other: Word): number {
  const bone = other.skeleton
  if (bone.length < 2) return 0
  const bones = [vowelless.skeleton, skeletonOf(vowelless.text.replace(/^l/, ''))]
  if (!bones.includes(bone)) return 0
  return bone.length > 2 ? 0.94 : 0.9
}

function skeletonOf(word: string): string {
  return word
    .replace(/^al(?=.{3})/, '')
    .replace(/ph/g, 'f')
    .replace(/gh|kh|[qcg]/g, 'k')
    .replace(/z/g, 's')
    .replace(/[aeiouywh]/g, '')
    .replace(/(.)\1+/g, '$1')
}

const SOUNDS = ['bfpv', 'cgjkqsxz', 'dt', 'l', 'mn', 'r', 'aeiouy']

function soundClass(word: string): number {
  return SOUNDS.findIndex((letters) => letters.includes(word.charAt(0)))
}

/** Winkler's form: words that begin alike and are fairly close already are closer still. */
function jaroWinkler(a: string, b: string): number {
  const jaro = jaroOf(a, b)
  if (jaro < 0.7) return jaro
  let prefix = 0
  while (prefix < 4 && prefix < a.length && a[prefix] === b[prefix]) prefix++
  return jaro + prefix * 0.1 * (1 - jaro)
}

function jaroOf(a: string, b: string): number {
  const reach = Math.max(0, Math.floor(Math.max(a.length, b.length) / 2) - 1)
  const taken = new Uint8Array(b.length)
  const fromA: number[] = []
  for (let i = 0; i < a.length; i++) {
    const code = a.charCodeAt(i)
    const end = Math.min(b.length, i + reach + 1)
    for (let j = Math.max(0, i - reach); j < end; j++) {
      if (taken[j] === 1 || b.charCodeAt(j) !== code) continue
      taken[j] = 1
      fromA.push(code)
      break
    }
  }
  const common = fromA.length
  if (common === 0) return 0
  let place = 0
  let moved = 0
  for (let j = 0; j < b.length; j++) {
    if (taken[j] !== 1) continue
    if (b.charCodeAt(j) !== fromA[place]) moved++
    place++
  }
  return (common / a.length + common / b.length + (common - moved / 2) / common) / 3
}
