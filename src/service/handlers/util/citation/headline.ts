import type { Work } from '../../../sources/works/work.ts'
import { titleOf } from './fields.ts'

/** Small words that stay small inside an English title. */
const SMALL: ReadonlySet<string> = new Set(
  (
    'a an and as at but by down for from in into nor of off on onto or out over per so the to up upon via vs ' +
    'with within without yet about above across after against along among around before behind below beneath ' +
    'beside between beyond despite during except like near since than through toward towards under until'
  ).split(' '),
)
const ENGLISH = /\b(?:the|of|and|for|with|from|to|by)\b/i
/** Words that English titles do not have. */
const FOREIGN =
  /(?:^|\s)(?:der|das|und|ein|eine|für|mit|von|zur|zum|über|la|le|les|des|du|et|dans|el|los|las|una|del|della|il|gli|di|que|het|een|och|för|på)(?=\s)/iu

/** The title as American styles print it: English ones in capitals, those of other languages as they are. */
export function headline(work: Work): string {
  return inHeadline(titleOf(work), work)
}

/** The title of the journal or the volume, in the same way. */
export function containerHeadline(work: Work): string | null {
  return work.container && inHeadline(work.container, work)
}

function inHeadline(title: string, { language }: Work): string {
  const isEnglish =
    language === null ? ENGLISH.test(title) || !FOREIGN.test(title) : /^en(?:g|glish)?\b/i.test(language)
  return isEnglish ? capitalized(title) : title
}

function capitalized(title: string): string {
  const words = title.split(' ')
  return words
    .map((word, place) => {
      const before = words[place - 1] ?? ':'
      const isEdge = place === words.length - 1 || /[:?!—–]["”’)]*$/u.test(before)
      const plain = word.replace(/[^\p{L}]/gu, '')
      if (!isEdge && SMALL.has(plain)) return word
      return word
        .split('-')
        .map((part, index) => {
          // A capital of its own, or a number within, and it is left alone.
          const isFixed = /[\p{Lu}\d]/u.test(part) || (index > 0 && SMALL.has(part))
          return isFixed ? part : raised(part)
        })
        .join('-')
    })
    .join(' ')
}

function raised(word: string): string {
  return word.replace(
    /^([^\p{L}]*)(\p{Ll})/u,
    (_, before: string, letter: string) => before + letter.toUpperCase(),
  )
}
