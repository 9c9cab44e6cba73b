import { json, type StandIn, type StandInResponse } from './stand-in.ts'

/** The example of the catalog is a paper that exists; all others, their authors and their journals do not. */
const CROSSREF: readonly object[] = [
  {
    DOI: '10.1038/nature14539',
    type: 'journal-article',
    title: ['Deep learning'],
    author: [
      { given: 'Yann', family: 'LeCun', sequence: 'first', affiliation: [] },
      { given: 'Yoshua', family: 'Bengio', sequence: 'additional', affiliation: [] },
      { given: 'Geoffrey', family: 'Hinton', sequence: 'additional', affiliation: [] },
    ],
    'container-title': ['Nature'],
    'short-container-title': ['Nature'],
    publisher: 'Springer Science and Business Media LLC',
    volume: '521',
    issue: '7553',
    page: '436-444',
    issued: { 'date-parts': [[2015, 5, 28]] },
    language: 'en',
    ISSN: ['0028-0836', '1476-4687'],
    URL: 'https://doi.org/10.1038/nature14539',
    'is-referenced-by-count': 62_000,
  },
  {
    DOI: '10.5555/lamps.2024.17',
    type: 'journal-article',
    title: ['Why CO<sub>2</sub> falls when <i>Lampyris noctiluca</i> rises:\n  R&amp;amp;D in “cold light”'],
    subtitle: ['A field study'],
    author: [
      { name: 'The Wexmire Lamp Consortium', sequence: 'first', affiliation: [] },
      {
        given: 'Ada M.',
        family: 'van der Quill',
        suffix: 'Jr.',
        ORCID: 'https://orcid.org/0000-0002-1825-0097',
      },
      { given: 'Jean-Paul', family: 'Müßig-Çelik' },
      { given: '伟', family: '王' },
      { family: 'Solo' },
    ],
    'container-title': ['Annals of Lamplighting &amp; Allied Arts'],
    'short-container-title': ['Ann. Lampl. All. Arts'],
    publisher: 'Wexmire University Press',
    volume: '12',
    'article-number': 'e0193972',
    issued: { 'date-parts': [[2024]] },
    language: 'en',
    ISSN: ['2049-3630'],
    'is-referenced-by-count': 3,
  },
  {
    DOI: '10.5555/table.manners',
    type: 'journal-article',
    title: ['RETRACTED: Silence and table manners'],
    author: [{ given: 'Otto', family: 'Reed' }],
    'container-title': ['Journal of Quiet'],
    publisher: 'Wexmire University Press',
    volume: '34',
    issue: '8',
    page: '1047-1056',
    issued: { 'date-parts': [[2008, 8]] },
    'updated-by': [
      { DOI: '10.5555/correction.1', type: 'correction', updated: { 'date-parts': [[2009, 1, 2]] } },
      {
        DOI: '10.5555/Retraction.9',
        type: 'retraction',
        source: 'retraction-watch',
        updated: { 'date-parts': [[2012, 9, 1]] },
      },
    ],
  },
  {
    DOI: '10.5555/handbook.lamps',
    type: 'edited-book',
    title: ['The handbook of lamps'],
    editor: [
      { given: 'Ada', family: 'Quill' },
      { given: 'Otto', family: 'Reed' },
    ],
    publisher: 'Wexmire University Press',
    'edition-number': '2',
    issued: { 'date-parts': [[null]] },
    ISBN: ['9780000000002'],
  },
  {
    DOI: '10.5555/collaboration',
    type: 'journal-article',
    title: ['Measurement of the lamp mass'],
    author: Array.from({ length: 3000 }, (_, place) => ({ given: 'A. B.', family: `Author${place + 1}` })),
    'container-title': ['Lamp Physics'],
    publisher: 'Wexmire University Press',
    page: 'n/a-n/a',
    issued: { 'date-parts': [[2020, 2, 30]] },
  },
  {
    DOI: '10.5555/harbour.fog',
    type: 'journal-article',
    title: ['Brightness Across Foggy Harbours'],
    author: [{ given: 'Ada', family: 'Quill' }],
    'container-title': ['Fog Letters'],
    issued: { 'date-parts': [[2019]] },
  },
]

/** `api.crossref.org`. */
export const answerCrossref: StandIn = ({ path, query }) => {
  const bibliographic = query.get('query.bibliographic')
  if (path === '/works' && bibliographic !== null) return json(search(bibliographic, query))
  const [, doi] = /^\/works\/([^/]+)$/.exec(path) ?? []
  const work = CROSSREF.find((each) => doiOf(each) === decodeURIComponent(doi ?? '').toLowerCase())
  if (work === undefined)
    return { status: 404, headers: { 'content-type': 'text/plain' }, body: 'Resource not found.' }
  return json({ status: 'ok', 'message-type': 'work', 'message-version': '1.0.0', message: work })
}

/** Any word in common is a hit; only the fields that were asked for come back. */
function search(words: string, query: URLSearchParams): object {
  const asked = wordsOf(words)
  const fields = (query.get('select') ?? '').split(',')
  const hits = CROSSREF.map((work, place) => ({ work, score: common(asked, work) + place / 100 }))
    .filter(({ score }) => score >= 1)
    .toSorted((one, other) => other.score - one.score)
    .map(({ work, score }) =>
      Object.fromEntries(Object.entries({ ...work, score }).filter(([name]) => fields.includes(name))),
    )
  const message = { 'total-results': hits.length, items: hits.slice(0, Number(query.get('rows') ?? 20)) }
  return { status: 'ok', 'message-type': 'work-list', 'message-version': '1.0.0', message }
}

function common(asked: ReadonlySet<string>, work: object): number {
  return [...wordsOf(JSON.stringify(work))].filter((word) => asked.has(word)).length
}

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.toLowerCase().match(/[a-z0-9]{3,}/g) ?? [])
}

function doiOf(work: object): string {
  return 'DOI' in work && typeof work.DOI === 'string' ? work.DOI.toLowerCase() : ''
}

const DATA_SET = {
  doi: '10.5281/zenodo.4711',
  creators: [
    {
      name: 'Quill, Ada',
      nameType: 'Personal',
      givenName: 'Ada',
      familyName: 'Quill',
      nameIdentifiers: [
        { nameIdentifier: 'https://orcid.org/0000-0002-1825-0097', nameIdentifierScheme: 'ORCID' },
      ],
    },
    { name: 'Wexmire Weather Office', nameType: 'Organizational', nameIdentifiers: [] },
    { name: 'Reed, Otto', nameIdentifiers: [] },
  ],
  titles: [{ title: 'Nights without oil: 90 winters of lamp counts', lang: 'en' }],
  publisher: 'Zenodo',
  container: {},
  publicationYear: 2020,
  dates: [{ date: '2020-03-14', dateType: 'Issued' }],
  types: { resourceTypeGeneral: 'Dataset', citeproc: 'dataset', ris: 'DATA' },
  version: 'v1.2',
  language: 'en',
  citationCount: 5,
  url: 'https://zenodo.org/record/4711',
}

/** `api.datacite.org`. */
export const answerDataCite: StandIn = ({ path }) => {
  const [, doi] = /^\/dois\/([^/]+)$/.exec(path) ?? []
  if (decodeURIComponent(doi ?? '').toLowerCase() === DATA_SET.doi)
    return jsonApi({ data: { id: DATA_SET.doi, type: 'dois', attributes: DATA_SET } })
  const error = { status: '404', title: "The resource you are looking for doesn't exist." }
  return jsonApi({ errors: [error] }, 404)
}

function jsonApi(body: object, status = 200): StandInResponse {
  return { ...json(body, status), headers: { 'content-type': 'application/vnd.api+json; charset=utf-8' } }
}
