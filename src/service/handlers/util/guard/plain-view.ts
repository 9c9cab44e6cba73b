/** A text in another spelling, with the place in the original that every unit of it comes from. */
export interface View {
  readonly text: string
  readonly origin: readonly number[]
}

/** Invisible characters: soft hyphen, zero-width, direction marks, variation selectors, tags. */
const INVISIBLE =
  /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]|\p{Variation_Selector}|\u034f/u

/** Letters of other scripts, and digits and signs, that are read as Latin letters. */
const ALIKE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    a: 'аα4@',
    b: 'вβ',
    c: 'сϲ¢',
    d: 'ԁ',
    e: 'еєε3€',
    g: 'ɡ',
    h: 'һн',
    i: 'іıι1',
    j: 'ј',
    k: 'кκ',
    l: 'ӏⅼ',
    m: 'м',
    n: 'пη',
    o: 'оοσ0',
    p: 'рρ',
    q: 'ԛ',
    r: 'г',
    s: 'ѕ5$',
    t: 'тτ7',
    u: 'υս',
    v: 'ѵν',
    w: 'ԝω',
    x: 'хχ',
    y: 'уγ',
    z: 'ʐ',
  }).flatMap(([latin, others]) => Array.from(others, (other) => [other, latin] as const)),
)

/** Lower case, compatibility forms made plain, invisible characters left out. */
export function plainView(text: string): View {
  return respelt(text, (character) =>
    INVISIBLE.test(character) ? '' : character.normalize('NFKC').toLowerCase(),
  )
}

/** The plain view without accents, with look-alikes replaced by Latin letters. */
export function foldedView(text: string): View {
  return respelt(text, (character) => {
    if (INVISIBLE.test(character)) return ''
    const bare = character.normalize('NFKD').toLowerCase().replace(/\p{M}/gu, '')
    return ALIKE.get(bare) ?? bare
  })
}

function respelt(text: string, spell: (character: string) => string): View {
  const spelt: string[] = []
  const origin: number[] = []
  let place = 0
  for (const character of text) {
    const units = spell(character)
    spelt.push(units)
    for (let count = 0; count < units.length; count++) origin.push(place)
    place += character.length
  }
  origin.push(text.length)
  return { text: spelt.join(''), origin }
}

/** Ranges of hidden text: by tags, by reversed direction, or by several zero-width characters inside of words. */
export function hiddenIn(text: string): { readonly start: number; readonly end: number } | undefined {
  // Emoji flags of regions are made of tags, too: these start with a black flag.
  const tags = /(?<!\u{1f3f4}[\u{e0000}-\u{e007f}]{0,6})[\u{e0001}-\u{e007f}]{1,20000}/u.exec(text)
  const turned = /[\u202d\u202e]/u.exec(text)
  const [, inWords] = text.matchAll(/(?<=\p{L})[\u200b\u2060-\u2064\ufeff]{1,200}(?=\p{L})/gu)
  const first = tags ?? turned ?? inWords
  return first === undefined ? undefined : { start: first.index, end: first.index + first[0].length }
}
