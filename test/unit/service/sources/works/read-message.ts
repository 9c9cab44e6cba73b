import t from 'tap'
import { references } from '../../../../../src/service/handlers/util/citation/styles.ts'
import { readMessage } from '../../../../../src/service/sources/works/read-message.ts'

t.test('writes names that are in capitals as names, and leaves those of organisations', async (t) => {
  const { authors } = readMessage({
    DOI: '10.1038/171737a0',
    type: 'journal-article',
    author: [{ given: 'J. D.', family: 'WATSON' }, { given: 'F. H. C.', family: 'CRICK' }, { name: 'CERN' }],
  })
  t.match(authors, [{ family: 'Watson' }, { family: 'Crick' }, { name: 'CERN' }])
})

t.test('cites the book of a chapter, not its series', async (t) => {
  const work = readMessage({
    DOI: '10.1007/978-3-319-10602-1_48',
    type: 'book-chapter',
    'container-title': ['Lecture Notes in Computer Science', 'Computer Vision – ECCV 2014'],
  })
  t.equal(work.container, 'Computer Vision – ECCV 2014')
})

t.test('begins what follows a colon with a capital in APA', async (t) => {
  const work = readMessage({ DOI: '10.1000/1', type: 'book', title: ['Bridges: how they stand'] })
  t.match(references(work)['apa'], /Bridges: How they stand/)
})
