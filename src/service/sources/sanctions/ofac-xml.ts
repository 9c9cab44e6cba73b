import { fromAmerican, isoDate, publicationDay } from './dates.ts'
import {
  distinct,
  joinName,
  ListFault,
  orNull,
  type Kind,
  type ListContent,
  type ListedEntry,
  type ListedName,
} from './entry.ts'
import { ofacPage } from './ofac-page.ts'
import { all, textOf, textsOf, XmlReader, type Element } from './xml.ts'

/** Reads OFAC's SDN.XML and CONSOLIDATED.XML, which have one form. */
export function readOfacXml(onEntry: (entry: ListedEntry) => void) {
  let count = 0
  const xml = new XmlReader({
    root: 'sdnList',
    entries: new Set(['sdnEntry']),
    onEntry: (element) => {
      count++
      onEntry(entryOf(element))
    },
  })
  return {
    write: (text: string) => xml.write(text),
    end: (): Omit<ListContent, 'entries'> => {
      const { texts } = xml.end()
      // What it counts is documented nowhere. A file that was cut off is no XML, and one that has lost entries is refused
      // next to the one in use.
      const declared = texts.get('Record_Count')
      const differs = declared !== undefined && Number(declared) !== count
      const publishedAt = publicationDay(fromAmerican(texts.get('Publish_Date')))
      if (publishedAt === null) throw new ListFault('does not say when it was published')
      return {
        publishedAt,
        oddities: differs ? [{ where: 'Record_Count: not the number of entries', count: 1 }] : [],
      }
    },
  }
}

function entryOf(entry: Element): ListedEntry {
  const uid = textOf(entry, 'uid') ?? ''
  const kind = kindOf(textOf(entry, 'sdnType'))
  return {
    uid,
    kind,
    names: namesOf(entry),
    programmes: distinct(textsOf(entry, 'programList', 'program')),
    datesOfBirth: distinct(textsOf(entry, 'dateOfBirthList', 'dateOfBirthItem', 'dateOfBirth').map(isoDate)),
    nationalities: distinct([
      ...textsOf(entry, 'nationalityList', 'nationality', 'country'),
      ...textsOf(entry, 'citizenshipList', 'citizenship', 'country'),
    ]),
    identifiers: kind === 'vessel' || kind === 'aircraft' ? identifiersOf(entry) : [],
    wallets: walletsOf(entry),
    title: orNull(textOf(entry, 'title')),
    remarks: orNull(textOf(entry, 'remarks')),
    url: ofacPage(uid),
  }
}

function kindOf(type = ''): Kind {
  const lower = type.toLowerCase()
  if (lower === 'individual' || lower === 'vessel' || lower === 'aircraft') return lower
  return 'entity'
}

function namesOf(entry: Element): ListedName[] {
  const aliases = all(entry, 'akaList', 'aka').map((aka): ListedName => ({
    text: fullName(aka),
    kind: textOf(aka, 'type') === 'f.k.a.' ? 'former' : 'alias',
    weak: textOf(aka, 'category') === 'weak',
  }))
  const names: ListedName[] = [{ text: fullName(entry), kind: 'primary', weak: false }, ...aliases]
  return names.filter(({ text }) => text !== '')
}

function fullName(element: Element): string {
  return joinName([textOf(element, 'firstName'), textOf(element, 'lastName')])
}

/** `Digital Currency Address - ETH` and the like: one account may be listed under several tokens. */
function walletsOf(entry: Element): string[] {
  const numbers = all(entry, 'idList', 'id').flatMap((id) =>
    textOf(id, 'idType')?.startsWith('Digital Currency Address') === true
      ? (textOf(id, 'idNumber')?.trim().toLowerCase() ?? [])
      : [],
  )
  return distinct(numbers.filter((number) => /^0x[0-9a-f]{40}$/.test(number)))
}

function identifiersOf(entry: Element): string[] {
  const numbers = all(entry, 'idList', 'id').map((id) =>
    joinName([textOf(id, 'idType'), textOf(id, 'idNumber')]),
  )
  const sign = textOf(entry, 'vesselInfo', 'callSign')
  return distinct([...numbers, sign && `Call sign ${sign}`])
}
