import type { Format } from './list-reader.ts'

export type ListId = 'us_ofac_sdn' | 'un_sc' | 'uk_fcdo' | 'eu_fsf' | 'us_ofac_cons'

/** What is known of a list before any of it is read. */
export interface ListTerms {
  readonly id: ListId
  readonly publisher: string
  readonly title: string
  readonly licence: string
  /** Its key under `sources:` in the catalog. */
  readonly source: 'ofac' | 'un' | 'uk' | 'eu'
  readonly format: Format
  /** Where it is published; `variable` of the environment says from where it is read. */
  readonly page: string
  readonly variable: string
  /** A file with fewer entries is not the list. */
  readonly fewest: number
  /** Milliseconds since it was last known to be current, after which it is asked for again, and no longer relied on. */
  readonly refresh: number
  readonly maxAge: number
}

const HOUR = 3_600_000
const AGES = { refresh: 6 * HOUR, maxAge: 72 * HOUR }

export const LISTS: readonly ListTerms[] = [
  {
    id: 'us_ofac_sdn',
    publisher: 'US Treasury, Office of Foreign Assets Control',
    title: 'Specially Designated Nationals and Blocked Persons List',
    licence: 'Public domain (work of the US government)',
    source: 'ofac',
    format: 'ofac',
    page: 'https://sanctionslist.ofac.treas.gov',
    variable: 'OFAC_URL',
    fewest: 10_000,
    ...AGES,
  },
  {
    id: 'un_sc',
    publisher: 'United Nations Security Council',
    title: 'Consolidated List',
    licence: 'The site’s terms give no right to resell',
    source: 'un',
    format: 'un',
    page: 'https://main.un.org/securitycouncil/en/content/un-sc-consolidated-list',
    variable: 'UN_URL',
    fewest: 500,
    ...AGES,
  },
  {
    id: 'uk_fcdo',
    publisher: 'UK Foreign, Commonwealth & Development Office',
    title: 'UK Sanctions List',
    licence: 'OGL-UK-3.0',
    source: 'uk',
    format: 'uk',
    page: 'https://www.gov.uk/government/publications/the-uk-sanctions-list',
    variable: 'UK_URL',
    fewest: 2_000,
    ...AGES,
  },
  {
    id: 'eu_fsf',
    publisher: 'European Commission',
    title: 'Consolidated list of persons, groups and entities subject to EU financial sanctions',
    licence: 'unknown',
    source: 'eu',
    format: 'eu',
    page: 'https://data.europa.eu/data/datasets/consolidated-list-of-persons-groups-and-entities-subject-to-eu-financial-sanctions',
    variable: 'EU_URL',
    fewest: 1_500,
    ...AGES,
  },
  {
    id: 'us_ofac_cons',
    publisher: 'US Treasury, Office of Foreign Assets Control',
    title: 'Consolidated Non-SDN List',
    licence: 'Public domain (work of the US government)',
    source: 'ofac',
    format: 'ofac',
    page: 'https://sanctionslist.ofac.treas.gov',
    variable: 'OFAC_CONS_URL',
    fewest: 100,
    ...AGES,
  },
]

/** Those of the sandbox are short. */
export const STAND_IN_LISTS: readonly ListTerms[] = LISTS.map((terms) => ({ ...terms, fewest: 1 }))
