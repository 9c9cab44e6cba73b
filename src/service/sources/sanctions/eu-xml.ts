import { publicationDay } from './dates.ts'
import {
  distinct,
  joinName,
  ListFault,
  orNull,
  type ListContent,
  type ListedEntry,
  type ListedName,
} from './entry.ts'
import { all, textOf, XmlReader, type Element } from './xml.ts'

/** Reads the EU's xmlFullSanctionsList_1_1, which says everything in attributes, many of them empty. */
export function readEuXml(onEntry: (entry: ListedEntry) => void) {
  const xml = new XmlReader({
    root: 'export',
    entries: new Set(['sanctionEntity']),
    onEntry: (element) => onEntry(entryOf(element)),
  })
  return {
    write: (text: string) => xml.write(text),
    end: (): Omit<ListContent, 'entries'> => {
      const publishedAt = publicationDay(xml.end().attributes['generationDate'])
      if (publishedAt === null) throw new ListFault('does not say when it was published')
      return { publishedAt, oddities: [] }
    },
  }
}

const UNKNOWN_COUNTRY = /^00$/

function entryOf(entry: Element): ListedEntry {
  const aliases = all(entry, 'nameAlias')
  return {
    uid: orNull(entry.attributes['euReferenceNumber']) ?? entry.attributes['logicalId'] ?? '',
    kind: all(entry, 'subjectType')[0]?.attributes['classificationCode'] === 'P' ? 'individual' : 'entity',
    names: aliases.map(nameOf).filter(({ text }) => text !== ''),
    programmes: distinct(all(entry, 'regulation').map(({ attributes }) => attributes['programme'])),
    datesOfBirth: distinct(all(entry, 'birthdate').map(bornOn)),
    nationalities: distinct(
      all(entry, 'citizenship').map(({ attributes }) =>
        attributes['countryIso2Code']?.replace(UNKNOWN_COUNTRY, ''),
      ),
    ),
    identifiers: [],
    title: orNull(distinct(aliases.map(({ attributes }) => attributes['function'])).join('; ')),
    remarks: orNull(textOf(entry, 'remark')),
    url: null,
  }
}

/** The first name is the entry's own, the others are aliases. */
function nameOf({ attributes }: Element, place: number): ListedName {
  const { wholeName, firstName, middleName, lastName, strong } = attributes
  return {
    text: orNull(wholeName) ?? joinName([firstName, middleName, lastName]),
    kind: place === 0 ? 'primary' : 'alias',
    weak: strong === 'false',
  }
}

function bornOn({ attributes }: Element): string | undefined {
  const { birthdate, year, circa } = attributes
  const said = orNull(birthdate) ?? orNull(year) ?? undefined
  return said !== undefined && circa === 'true' ? `circa ${said}` : said
}
