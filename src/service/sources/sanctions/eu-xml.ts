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
  const aliases = all(entry, 'nameAlias').toSorted((one, other) => rankOf(other) - rankOf(one))
  return {
    uid: orNull(entry.attributes['euReferenceNumber']) ?? entry.attributes['logicalId'] ?? '',
    kind: all(entry, 'subjectType')[0]?.attributes['classificationCode'] === 'P' ? 'individual' : 'entity',
    names: namesOf(aliases),
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

/**
 * No name is marked as the entry's own, and translations and abbreviations may come first: a name with its parts is the
 * likeliest, then one in English or in no language.
 */
function rankOf(alias: Element): number {
  const { lastName, nameLanguage } = alias.attributes
  const isPlain = ['EN', undefined].includes(orNull(nameLanguage)?.toUpperCase())
  return 4 * Number(!isWeak(alias)) + 2 * Number(isPlain) + Number(orNull(lastName) !== null)
}

/** The first name is the entry's own, the others are aliases; each amendment of a regulation repeats some. */
function namesOf(aliases: readonly Element[]): ListedName[] {
  const names = new Map<string, ListedName>()
  for (const alias of aliases) {
    const { wholeName, firstName, middleName, lastName } = alias.attributes
    const text = orNull(wholeName) ?? joinName([firstName, middleName, lastName])
    if (text === '' || names.has(text)) continue
    names.set(text, { text, kind: names.size === 0 ? 'primary' : 'alias', weak: isWeak(alias) })
  }
  return [...names.values()]
}

/** The list calls every name strong; the remarks say which ones it doubts. */
function isWeak(alias: Element): boolean {
  return alias.attributes['strong'] === 'false' || /\blow quality\b/i.test(textOf(alias, 'remark') ?? '')
}

function bornOn({ attributes }: Element): string | undefined {
  const { birthdate, year, circa } = attributes
  const said = orNull(birthdate) ?? orNull(year) ?? undefined
  return said !== undefined && circa === 'true' ? `circa ${said}` : said
}
