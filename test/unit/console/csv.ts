import t from 'tap'
import { csvOf } from '../../../src/console/csv.ts'

t.test('writes fields that a spreadsheet reads as they are', async (t) => {
  t.equal(
    csvOf([
      ['date', 'a,b'],
      ['say "hi"', '=1+1'],
      ['line\nbreak', '-'],
    ]),
    'date,"a,b"\r\n"say ""hi""",\'=1+1\r\n"line\nbreak",\'-\r\n',
  )
})
