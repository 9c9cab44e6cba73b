import t from 'tap'
import { columnsFor, linesFor, painter, painterFor } from '../../../src/cli/terminal-text.ts'
import { readEnv } from '../../../src/env.ts'
import { runLine } from '../../support/run-command.ts'
import { shippedCatalog } from '../../support/shipped-catalog.ts'

const ROWS = [
  ['fails', 'settings', 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen'],
  ['ok', 'chain', 'fine'],
]

t.test('breaks the last column of a table at words, under itself, within 80 columns', async (t) => {
  const lines = columnsFor({ reader: 'person' }, ROWS).split('\n')
  t.strictSame(lines, [
    'fails  settings  one two three four five six seven eight nine ten eleven twelve',
    '                 thirteen fourteen',
    'ok     chain     fine',
  ])
})

t.test('breaks a sentence at words, as far in as it began, and gives it whole to a program', async (t) => {
  const text = `    ${'word '.repeat(20).trim()}\n0x${'a'.repeat(64)}`
  t.equal(
    linesFor({ reader: 'person' }, text),
    `    ${'word '.repeat(15).trim()}\n    ${'word '.repeat(5).trim()}\n0x${'a'.repeat(64)}`,
  )
  t.equal(linesFor({ reader: 'program' }, text), text)
})

t.test('gives a program every row on a line', async (t) => {
  t.equal(columnsFor({ reader: 'program' }, ROWS).split('\n').length, ROWS.length)
})

t.test('aligns what is coloured as if it were not', async (t) => {
  const paint = painter(true)
  const [first = '', second = ''] = columnsFor({ reader: 'person' }, [
    [paint('red', 'no'), 'a'],
    ['never', 'b'],
  ]).split('\n')
  t.equal(first, '\u001b[31mno\u001b[0m     a')
  t.equal(second, 'never  b')
})

t.test('colours for a person, unless NO_COLOR is set, and for a program with FORCE_COLOR', async (t) => {
  const isColoured = (reader: 'person' | 'program', variables: Record<string, string>): boolean => {
    const terminal = {
      out: () => undefined,
      err: () => undefined,
      progress: () => undefined,
      logReader: reader,
      reader,
    }
    return painterFor({ env: readEnv(variables), terminal })('red', 'x') !== 'x'
  }
  t.ok(isColoured('person', {}))
  t.notOk(isColoured('person', { NO_COLOR: '1' }))
  t.notOk(isColoured('program', {}))
  t.ok(isColoured('program', { FORCE_COLOR: '1' }))
})

t.test('lists the routes of the catalog that ships within 80 columns', async (t) => {
  const handlers = shippedCatalog().operations.map(({ handler }) => handler)
  const { out } = await runLine(['routes', 'catalog.yaml'], { reader: 'person', handlers })
  t.match(out, /^PATH +PRICE +SERVED +PARAMETERS$/m)
  for (const line of out.split('\n')) t.ok(line.length <= 80, line)
})
