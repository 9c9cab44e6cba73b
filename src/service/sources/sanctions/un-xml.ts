import { isoDate, publicationDay } from './dates.ts'
import {
  distinct,
  joinName,
  ListFault,
  orNull,
  type ListContent,
  type ListedEntry,
  type ListedName,
} from './entry.ts'
import { all, textOf, textsOf, XmlReader, type Element } from './xml.ts'

/** Reads the UN Security Council's consolidated.xml. */
export function readUnXml(onEntry: (entry: ListedEntry) => void) {
  const xml = new XmlReader({
    root: 'CONSOLIDATED_LIST',
    entries: new Set(['INDIVIDUAL', 'ENTITY']),
    onEntry: (element) => onEntry(entryOf(element)),
  })
  return {
    write: (text: string) => xml.write(text),
    end: (): Omit<ListContent, 'entries'> => {
      const publishedAt = publicationDay(xml.end().attributes['dateGenerated'])
      if (publishedAt === null) throw new ListFault('does not say when it was published')
      return { publishedAt, oddities: [] }
    },
  }
}

function entryOf(entry: Element): ListedEntry {
  const kind = entry.name === 'INDIVIDUAL' ? 'individual' : 'entity'
  return {
    uid: textOf(entry, 'REFERENCE_NUMBER') ?? textOf(entry, 'DATAID') ?? '',
    kind,
    names: namesOf(entry),
    programmes: distinct([textOf(entry, 'UN_LIST_TYPE')]),
    datesOfBirth: distinct(all(entry, 'INDIVIDUAL_DATE_OF_BIRTH').map(bornOn)),
    nationalities: distinct(textsOf(entry, 'NATIONALITY', 'VALUE')),
    identifiers: [],
    title: orNull(textsOf(entry, 'DESIGNATION', 'VALUE').join('; ')),
    remarks: orNull(textOf(entry, 'COMMENTS1')),
    url: null,
  }
}

const NAMES = ['FIRST_NAME', 'SECOND_NAME', 'THIRD_NAME', 'FOURTH_NAME']

function namesOf(entry: Element): ListedName[] {
  const aliases = [...all(entry, 'INDIVIDUAL_ALIAS'), ...all(entry, 'ENTITY_ALIAS')].map(
    (alias): ListedName => {
      const quality = textOf(alias, 'QUALITY') ?? ''
      return {
        text: textOf(alias, 'ALIAS_NAME') ?? '',
        kind: quality === 'f.k.a.' ? 'former' : 'alias',
        weak: quality === 'Low',
      }
    },
  )
  const names: ListedName[] = [
    { text: joinName(NAMES.map((part) => textOf(entry, part))), kind: 'primary', weak: false },
    { text: textOf(entry, 'NAME_ORIGINAL_SCRIPT') ?? '', kind: 'original_script', weak: false },
    ...aliases,
  ]
  // The list has aliases without a name.
  return names.filter(({ text }) => text !== '')
}

function bornOn(element: Element): string | undefined {
  const type = textOf(element, 'TYPE_OF_DATE')
  const [from, to] = [textOf(element, 'FROM_YEAR'), textOf(element, 'TO_YEAR')]
  if (from !== undefined && to !== undefined) return `${from} to ${to}`
  const said = textOf(element, 'DATE') ?? textOf(element, 'YEAR')
  if (said === undefined) return undefined
  return type === 'APPROXIMATELY' ? `circa ${isoDate(said)}` : isoDate(said)
}
