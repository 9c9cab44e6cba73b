import t from 'tap'
import { indexTestimony } from '../../../../src/engine/documents/agreement/listing-testimonies.ts'

/** What the index is understood to say of a parameter with that line. */
function parameterOf(line: string): string | undefined {
  const index = { routes: [{ path: '/paid/dice', parameters: { q: line } }] }
  return indexTestimony('/', index).claims.get('/paid/dice')?.get('parameters')
}

t.test('a service does not start because of the example of a parameter', async (t) => {
  t.equal(parameterOf('string, optional, example "x, default "'), 'q')
  t.equal(parameterOf('string, optional, example ", default \\"US\\""'), 'q')
  t.equal(parameterOf(String.raw`string, default "\q"`), String.raw`q="\q"`, 'nor because of another service')
  t.equal(parameterOf('string, default "'), 'q="')
})

t.test('an operator is told that what may be left out is required', async (t) => {
  t.equal(parameterOf('string, optional, example "batteries, required"'), 'q')
  t.equal(parameterOf('string, default "a, required", example "b"'), 'q=a, required')
  t.equal(parameterOf('string, required, example "b"'), 'q*')
  t.equal(parameterOf('comma-separated list of at most 5, required'), 'q*')
  t.equal(parameterOf('integer, default 30, 1 to 100, example 50'), 'q=30')
})
