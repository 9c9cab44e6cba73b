import t from 'tap'
import { cutText } from '../../../../../../src/service/handlers/util/extract/chunks.ts'
import { fc } from '../../../../../support/fast-check.ts'

const { assert: check, constantFrom, array, integer, property } = fc

t.test('cuts chunks within their limit, in order and complete', async () => {
  const pieces = constantFrom(
    'word ',
    'Sentence ends. ',
    'x'.repeat(90),
    '\n\n',
    '漢字かな交じり文。',
    '👩\u200d👩\u200d👧\u200d👦',
    'e\u0301',
    '   ',
    'Dr. No said: "No!" ',
    '\n',
  )
  check(
    property(
      array(pieces, { maxLength: 60 }),
      integer({ min: 20, max: 200 }),
      integer({ min: 0, max: 199 }),
      (parts, longest, wanted) => {
        const text = parts.join('')
        const overlap = Math.min(wanted, longest - 1)
        const { chunks, truncated } = cutText(text, { longest, overlap, most: 10_000 })
        let covered = 0
        let before = -1
        for (const { start, end, text: written } of chunks) {
          if (written.length > longest || written !== text.slice(start, end)) return false
          if (start <= before || written.trim() === '') return false
          if (start > covered && text.slice(covered, start).trim() !== '') return false
          if (before >= 0 && covered - start > overlap) return false
          before = start
          covered = end
        }
        return !truncated && text.slice(covered).trim() === ''
      },
    ),
    { numRuns: 2000 },
  )
})

t.test('ends chunks at a sentence where there is room', async (t) => {
  const text = 'First one is here. Second one is here. Third one is here.\n\nA new paragraph begins.'
  const texts = (longest: number, overlap: number): string[] =>
    cutText(text, { longest, overlap, most: 100 }).chunks.map((chunk) => chunk.text)
  t.same(texts(60, 0), [
    'First one is here. Second one is here. Third one is here.',
    'A new paragraph begins.',
  ])
  t.same(texts(45, 20), [
    'First one is here. Second one is here.',
    'Second one is here. Third one is here.',
    'Third one is here.\n\nA new paragraph begins.',
  ])
  t.same(texts(1000, 0), [text])
  t.same(cutText('', { longest: 20, overlap: 0, most: 10 }), { chunks: [], truncated: false })
  t.match(cutText('word '.repeat(100), { longest: 20, overlap: 0, most: 3 }), {
    chunks: { length: 3 },
    truncated: true,
  })
})
