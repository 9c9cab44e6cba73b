/** Scripts that write several words, or a word and its endings, without a space between them. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー]/u
const RUNS = new RegExp(`${UNSPACED.source}+|[^]`, 'gu')
const WORDS = /[\p{L}\p{N}\p{M}]+/gu
/** Accents, vowel points and harakat; signs that make another letter, as in Japanese and Hindi, stay. */
const ACCENTS = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]/g

/** Stop words of the languages that agents use most; a text of nothing else keeps them. */
const STOP_WORDS = new Set(
  (
    'a about an and are as at be been but by can did do does for from had has have he her his how i if in into is it ' +
    'its me my no not of on or our she so than that the their them then there they this to was we were what when ' +
    'where which who why will with would you your ' +
    'aber als am an auch auf aus bei das dem den der des die ein eine einem einen einer es fur hat ich ihr im ist mit ' +
    'nach nicht oder sich sie sind und uns von war was welche welchen welcher welches wer wie wir wird zu zum zur ' +
    'au aux avec ce ces cette dans des du elle en est et il ils je la le les leur mais ne nous ou par pas plus pour ' +
    'quand que quel quelle qui sa se ses son sont sur un une vous ' +
    'al como con cual cuando de del el ella ellos es esta este la las lo los mas no o para pero por que quien se sin ' +
    'son su sus un una y'
  ).split(' '),
)

/** Longest first: one is cut off, and what is left has at least four letters. */
const ENDINGS =
  'ungen mente ement ation ingly ieren tions keit heit ungs ment ings edly aron aban ando iendo ung ing ers est ies ied tes ten ado ada ent ait ed ly er es en em et te ir ar re os as ez e s n t a o y'
    .split(' ')
    .sort((a, b) => b.length - a.length)

/** Normalizes a text for comparisons: without compatibility forms, case and accents. */
export function fold(text: string): string {
  return text.normalize('NFKD').toLowerCase().replace(ACCENTS, '').normalize('NFC')
}

/**
 * The words of a text as they are looked up: folded, without stop words, cut down to a stem; pairs of signs in scripts
 * without spaces. In their order, with repetitions; empty for a text without letters and digits.
 *
 * Stored next to each memory, so a change of it is a migration of the store.
 */
export function termsOf(text: string): string[] {
  const words = fold(text).match(WORDS) ?? []
  const telling = words.filter((word) => !STOP_WORDS.has(word))
  return (telling.length > 0 ? telling : words).flatMap(partsOf)
}

function partsOf(word: string): string[] {
  if (!UNSPACED.test(word)) return [stemOf(word)]
  return joinRuns(word).flatMap((run) => (UNSPACED.test(run) ? pairsOf(run) : [stemOf(run)]))
}

/** 「iPhone用」 is a word of each script. */
function joinRuns(word: string): string[] {
  const runs: string[] = []
  let spaced = ''
  for (const [run] of word.matchAll(RUNS)) {
    if (!UNSPACED.test(run)) {
      spaced += run
      continue
    }
    if (spaced !== '') runs.push(spaced)
    spaced = ''
    runs.push(run)
  }
  return spaced === '' ? runs : [...runs, spaced]
}

function pairsOf(run: string): string[] {
  const signs = Array.from(run)
  if (signs.length === 1) return signs
  return signs.slice(1).map((sign, place) => `${signs[place]}${sign}`)
}

function stemOf(word: string): string {
  if (!/^\p{L}+$/u.test(word)) return word
  const ending = ENDINGS.find((each) => word.endsWith(each) && word.length - each.length >= 4)
  return ending === undefined ? word : word.slice(0, -ending.length)
}
