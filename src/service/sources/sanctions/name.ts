import anyAscii from 'any-ascii'
import { asListed, HONORIFICS, knownWords, LEGAL_FORMS, respell } from './spelling.ts'
import type { Kind } from './entry.ts'

/** A name as it is compared: lower-case words of Latin letters and digits, in one spelling. */
export interface Name {
  /** Without words said to a person. */
  readonly person: readonly string[]
  /** Without words that say what a company is by law. */
  readonly organisation: readonly string[]
  /** Written in a script without short vowels, which its Latin letters lack too. */
  readonly vowelless: boolean
}

/** Longer names are cut: nobody has one, and each word costs a pass over all names. */
const MOST_WORDS = 12
const LONGEST_WORD = 40

/** Direction and joining characters, combining accents, Arabic vowel signs, apostrophes and dots. */
const MARKS = /[\p{Cf}\u0300-\u036f\u064b-\u065f'’‘`´ʻʼʿʾ.]/gu
const DOT_OF_INITIAL = /(?<=(?<![\p{L}\p{M}])\p{L})\.(?=\p{L})/gu
const HANGUL = /\p{Script=Hangul}/u
const SYLLABLES = /[\p{Script=Han}\p{Script=Hangul}]/u
const VOWELLESS = /[\p{Script=Arabic}\p{Script=Hebrew}]/u

/** Any text will do: control and direction characters, accents and quotes do not count. */
export function readName(text: string): Name {
  const plain = text.normalize('NFKC')
  return {
    // K.A. are two initials; S.A. is one legal form.
    person: without(wordsIn(plain.replace(DOT_OF_INITIAL, '. ')), HONORIFICS),
    organisation: without(wordsIn(plain), LEGAL_FORMS),
    vowelless: VOWELLESS.test(plain),
  }
}

function wordsIn(text: string): string[] {
  return latin(text)
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
    .slice(0, MOST_WORDS)
    .map((word) => respell(word.slice(0, LONGEST_WORD)))
}

/** The words in capitals, as lists write surnames; where they make no difference, the last word or two of three. */
export function surnamesOf(text: string): readonly string[] {
  const words = text.trim().split(/\s+/)
  const capitals = words.filter((word) => word.length > 1 && word === word.toUpperCase())
  const isTold = capitals.length > 0 && capitals.length < words.length
  return readName((isTold ? capitals : words.slice(words.length > 2 ? -2 : -1)).join(' ')).person
}

/** People have titles, everything else has legal forms. */
export function wordsFor(kind: Kind, { person, organisation }: Name): readonly string[] {
  return kind === 'individual' ? person : organisation
}

function latin(text: string): string {
  const letters = anyAscii(knownWords(text.replace(MARKS, ''))).replace(MARKS, '')
  if (!SYLLABLES.test(text)) return letters
  const syllables = letters.replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
  return HANGUL.test(text) ? syllables.replace(/[a-z]+/gi, asListed) : syllables
}

function without(words: readonly string[], set: ReadonlySet<string>): readonly string[] {
  const rest = words.filter((word) => !set.has(word))
  return rest.length === 0 ? words : rest
}
