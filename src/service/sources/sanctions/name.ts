import anyAscii from 'any-ascii'
import { HONORIFICS, LEGAL_FORMS, respell } from './spelling.ts'
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
const SYLLABLES = /[\p{Script=Han}\p{Script=Hangul}]/u
const VOWELLESS = /[\p{Script=Arabic}\p{Script=Hebrew}]/u

/** Any text will do: control and direction characters, accents and quotes do not count. */
export function readName(text: string): Name {
  const plain = text.normalize('NFKC')
  const words = latin(plain)
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
    .slice(0, MOST_WORDS)
    .map((word) => respell(word.slice(0, LONGEST_WORD)))
  return {
    person: without(words, HONORIFICS),
    organisation: without(words, LEGAL_FORMS),
    vowelless: VOWELLESS.test(plain),
  }
}

/** People have titles, everything else has legal forms. */
export function wordsFor(kind: Kind, { person, organisation }: Name): readonly string[] {
  return kind === 'individual' ? person : organisation
}

function latin(text: string): string {
  const letters = anyAscii(text.replace(MARKS, '')).replace(MARKS, '')
  return SYLLABLES.test(text) ? letters.replace(/(?<=[a-z])(?=[A-Z])/g, ' ') : letters
}

function without(words: readonly string[], set: ReadonlySet<string>): readonly string[] {
  const rest = words.filter((word) => !set.has(word))
  return rest.length === 0 ? words : rest
}
