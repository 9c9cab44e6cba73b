import t from 'tap'
import { doiAddress, readDoi } from '../../../../../../src/service/handlers/util/citation/doi.ts'
import { fc } from '../../../../../support/fast-check.ts'

t.test('reads a DOI however people write it', async (t) => {
  for (const text of [
    '10.1038/nature14539',
    ' 10.1038/NATURE14539 ',
    'doi:10.1038/nature14539',
    'DOI: 10.1038/nature14539.',
    'doi 10.1038/nature14539',
    'https://doi.org/10.1038/nature14539',
    'http://dx.doi.org/10.1038/nature14539',
    'https://www.doi.org/10.1038/nature14539?utm_source=x#top',
    'doi.org/10.1038/nature14539',
    'https://doi.org/10.1038%2Fnature14539',
    '10.1038%2fnature14539',
    'info:doi/10.1038/nature14539',
    'urn:doi:10.1038/nature14539',
    '<https://doi.org/10.1038/nature14539>.',
    '(doi:10.1038/nature14539)',
    '"10.1038/nature14539",',
  ])
    t.equal(readDoi(text), '10.1038/nature14539', text)
})

t.test('keeps characters that belong to a DOI', async (t) => {
  for (const doi of [
    '10.1016/s0140-6736(10)60175-4',
    '10.1002/(sici)1097-0258(19980815/30)17:15/16<1661::aid-sim968>3.0.co;2-2',
    '10.1000.10/123',
    '10.1175/1520-0442(1996)009',
    '10.5555/a(b)',
    '10.1007/978-3-030-05348-2_21',
  ])
    t.equal(readDoi(doi), doi)
  t.equal(readDoi('see 10.5555/x'), undefined)
  t.equal(readDoi('10.5555/a)'), '10.5555/a')
})

t.test('refuses everything but DOIs', async (t) => {
  for (const text of [
    '',
    'nature14539',
    '10.1038',
    '10.1038/',
    '10.1/x',
    '11.1038/x',
    'https://nature.com/10.1038/x',
    '10.1038/a b',
    '10.1038/\u0000',
    '10.1038/\ud800',
    '10.1038%2',
    'https://doi.org/%E0%A4%A',
    'doi:',
    '10.1038/...',
  ])
    t.equal(readDoi(text), undefined, JSON.stringify(text))
})

t.test('builds an address that leads to the DOI, whatever characters it has', async (t) => {
  t.equal(
    doiAddress('10.1002/(sici)1097-0258(19980815/30)17:15/16<1661::aid-sim968>3.0.co;2-2'),
    'https://doi.org/10.1002/(sici)1097-0258(19980815/30)17:15/16%3C1661::aid-sim968%3E3.0.co;2-2',
  )
  t.equal(doiAddress('10.5555/a?b#c%d'), 'https://doi.org/10.5555/a%3Fb%23c%25d')
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
      const doi = readDoi(`10.5555/${text}`)
      if (doi !== undefined) t.equal(readDoi(doiAddress(doi)), doi)
    }),
    { numRuns: 500 },
  )
})
