import t from 'tap'
import { remember } from '../../../../../../src/service/handlers/util/workday/remember.ts'

t.test('computes a result once while it is in use, in bounded memory', async (t) => {
  const made: string[] = []
  const lengthOf = remember(2, (word: string) => {
    made.push(word)
    return word.length
  })
  t.strictSame(['a', 'bb', 'a', 'ccc', 'a', 'bb'].map(lengthOf), [1, 2, 1, 3, 1, 2])
  t.strictSame(made, ['a', 'bb', 'ccc', 'bb'])
})
