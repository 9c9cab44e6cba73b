import t from 'tap'
import { createComplaint } from '../../src/cli/complain.ts'
import { LedgerError } from '../../src/engine/index.ts'

t.test('a store that is away would bury everything else an operator has to read', async (t) => {
  const lines: string[] = []
  let now = 0
  const complain = createComplaint({ out: () => undefined, err: (line) => lines.push(line) }, () => now)
  for (let i = 0; i < 100; i += 1) complain(new LedgerError('the store is away'))
  t.strictSame(lines, ['ledger: the store is away'])
  complain(new TypeError('a mistake'))
  t.match(lines[1], /^unexpected: TypeError: a mistake\n\s+at /, 'another trouble is told at once')
  now += 30_000
  complain(new LedgerError('the store is away'))
  t.equal(lines.length, 3, 'and the first again after a while')
})
