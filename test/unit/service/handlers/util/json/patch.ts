import t from 'tap'
import { InvalidParameter } from '../../../../../../src/engine/handler.ts'
import { perform } from '../../../../../../src/service/handlers/util/json/operations.ts'
import { merge } from '../../../../../../src/service/handlers/util/json/patch.ts'

t.test('patches the article of RFC 7396 section 3 as printed there', async (t) => {
  const article = {
    title: 'Goodbye!',
    author: { givenName: 'John', familyName: 'Doe' },
    tags: ['example', 'sample'],
    content: 'This will be unchanged',
  }
  const patch = {
    title: 'Hello!',
    phoneNumber: '+01-123-456-7890',
    author: { familyName: null },
    tags: ['example'],
  }
  t.strictSame(merge(article, patch), {
    title: 'Hello!',
    author: { givenName: 'John' },
    tags: ['example'],
    content: 'This will be unchanged',
    phoneNumber: '+01-123-456-7890',
  })
})

t.test('refuses an operation with two names (RFC 6902 A.13)', async (t) => {
  const patch = '[{"op":"add","path":"/baz","value":"qux","op":"remove"}]'
  t.throws(
    () => perform({ op: 'patch', data: '{"foo":"bar"}', schema: patch }),
    new InvalidParameter('schema', 'schema cannot be applied: operation 0: nothing at its path'),
  )
})
