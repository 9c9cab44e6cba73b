import type { StandInRequest, StandInResponse } from './stand-in.ts'

interface Invented {
  readonly uid: number
  readonly type: 'Individual' | 'Entity' | 'Vessel'
  readonly first?: string
  readonly last: string
  readonly programme: string
  readonly born?: string
  readonly country?: string
  readonly aliases?: readonly string[]
}

/** Nobody: but for the airline, which the catalog's example asks for and which is on OFAC's list. */
const LISTED: readonly Invented[] = [
  {
    uid: 12927,
    type: 'Entity',
    last: 'MAHAN AIR',
    programme: 'SDGT',
    aliases: ['MAHAN AIRLINES', 'MAHAN AIR CO.'],
  },
  {
    uid: 900001,
    type: 'Individual',
    first: 'Testimir Exemplarovich',
    last: 'PLATZHALTEROV',
    programme: 'SANDBOX-ONE',
    born: '01 Apr 1961',
    country: 'Ruritania',
    aliases: ['Testimir PLATZHALTEROW', 'Тестимир ПЛАЦХАЛЬТЕРОВ'],
  },
  {
    uid: 900002,
    type: 'Individual',
    first: 'Ignotus bin Nemo',
    last: 'AL-MITHALI',
    programme: 'SANDBOX-TWO',
    born: 'circa 1970',
    country: 'Graustark',
  },
  { uid: 900003, type: 'Entity', last: 'RURITANIAN SPECIMEN TRADING CO. LTD.', programme: 'SANDBOX-ONE' },
  {
    uid: 900004,
    type: 'Vessel',
    last: 'SANDBOX PEARL',
    programme: 'SANDBOX-TWO',
    aliases: ['SANDBOX DREAM'],
  },
]

/** Answers in the form of OFAC's SDN.XML and the UN's consolidated.xml. */
export function answerSanctions({ path }: StandInRequest): StandInResponse | undefined {
  if (path === '/ofac.xml') return xml(ofac())
  return path === '/un.xml' ? xml(un()) : undefined
}

function xml(body: string): StandInResponse {
  return { status: 200, headers: { 'content-type': 'application/xml; charset=utf-8' }, body }
}

function ofac(): string {
  const entries = LISTED.map(
    ({ uid, type, first, last, programme, born, country, aliases = [] }) =>
      `<sdnEntry><uid>${uid}</uid>${first === undefined ? '' : `<firstName>${first}</firstName>`}<lastName>${last}</lastName>` +
      `<sdnType>${type}</sdnType><programList><program>${programme}</program></programList><akaList>` +
      aliases
        .map(
          (alias) => `<aka><type>a.k.a.</type><category>strong</category><lastName>${alias}</lastName></aka>`,
        )
        .join('') +
      '</akaList>' +
      (country === undefined
        ? ''
        : `<nationalityList><nationality><country>${country}</country></nationality></nationalityList>`) +
      (born === undefined
        ? ''
        : `<dateOfBirthList><dateOfBirthItem><dateOfBirth>${born}</dateOfBirth></dateOfBirthItem></dateOfBirthList>`) +
      '</sdnEntry>',
  )
  return (
    '<?xml version="1.0" encoding="utf-8"?><sdnList xmlns="https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/XML">' +
    `<publshInformation><Publish_Date>11/18/2026</Publish_Date><Record_Count>${LISTED.length}</Record_Count></publshInformation>` +
    `${entries.join('')}</sdnList>`
  )
}

function un(): string {
  const people = LISTED.filter(({ type }) => type === 'Individual').map(
    ({ uid, first = '', last, programme, aliases = [] }) =>
      `<INDIVIDUAL><DATAID>${uid}</DATAID><FIRST_NAME>${first}</FIRST_NAME><SECOND_NAME>${last}</SECOND_NAME>` +
      `<UN_LIST_TYPE>${programme}</UN_LIST_TYPE><REFERENCE_NUMBER>SBi.${uid}</REFERENCE_NUMBER>` +
      aliases
        .map(
          (alias) =>
            `<INDIVIDUAL_ALIAS><QUALITY>Good</QUALITY><ALIAS_NAME>${alias}</ALIAS_NAME></INDIVIDUAL_ALIAS>`,
        )
        .join('') +
      '</INDIVIDUAL>',
  )
  return `<CONSOLIDATED_LIST dateGenerated="2026-11-17T00:00:09.554Z"><INDIVIDUALS>${people.join('')}</INDIVIDUALS><ENTITIES/></CONSOLIDATED_LIST>`
}
