import t from 'tap'
import { CatalogError, error, formatIssue, hasErrors, warning } from '../../../../src/engine/catalog/issue.ts'

const at = (line: number, column: number, width: number): Parameters<typeof error>[1] => ({
  line,
  column,
  width,
})

t.test('shows the line before, the line and the word', async (t) => {
  const text = 'routes:\n  /paid/ping:\n    price: 1e-7\n'
  t.equal(
    formatIssue(error('price_not_decimal', at(3, 12, 4), 'no'), 'shop/catalog.yaml', text),
    [
      'shop/catalog.yaml:3:12 price_not_decimal no',
      '  2 |   /paid/ping:',
      '> 3 |     price: 1e-7',
      '    |            ^^^^',
    ].join('\n'),
  )
})

t.test('marks a warning as one', async (t) => {
  const issue = warning('price_over_client_cap', at(1, 1, 1), 'high')
  t.match(formatIssue(issue, 'c.yaml', 'x'), /^c\.yaml:1:1 warning price_over_client_cap high\n/)
  t.notOk(hasErrors([issue]))
  t.ok(hasErrors([issue, error('e', at(1, 1, 1), 'm')]))
})

t.test('shows the first line alone', async (t) => {
  t.equal(
    formatIssue(error('value_not_allowed', at(1, 10, 1), 'no'), 'c.yaml', 'catalog: 2\nroutes: {}'),
    ['c.yaml:1:10 value_not_allowed no', '> 1 | catalog: 2', '    |          ^'].join('\n'),
  )
})

t.test('puts the caret below its word behind tabs too', async (t) => {
  const frame = formatIssue(error('e', at(1, 9, 1), 'm'), 'c', '\t\tprice:\t2').split('\n')
  t.equal(frame.at(-1), '    | \t\t      ^')
})

t.test('aligns line numbers where they grow a digit', async (t) => {
  const text = Array.from({ length: 12 }, (_, index) => `line${index + 1}`).join('\n')
  t.strictSame(
    formatIssue(error('e', at(10, 1, 4), 'm'), 'c', text)
      .split('\n')
      .slice(1),
    ['   9 | line9', '> 10 | line10', '     | ^^^^'],
  )
})

t.test('marks a range of several lines on its first', async (t) => {
  const frame = formatIssue(error('e', at(1, 4, 500), 'm'), 'c', 'abcdef\nghi').split('\n')
  t.equal(frame.at(-1), '    |    ^^^')
})

t.test('cuts a long line around the word, so that the caret fits a terminal', async (t) => {
  const line = `${'a'.repeat(1000)}WRONG${'b'.repeat(1000)}`
  const [, source = '', carets = ''] = formatIssue(error('e', at(1, 1001, 5), 'm'), 'c', line).split('\n')
  t.ok(source.length < 180, `${source.length} characters`)
  const from = carets.indexOf('^')
  t.equal(source.slice(from, from + 5), 'WRONG')
  t.equal(carets.slice(from), '^^^^^')
  t.match(source, /^> 1 \| …a+WRONGb+…$/)
})

t.test('marks a word longer than the frame as far as it is shown', async (t) => {
  const [, source = '', carets = ''] = formatIssue(
    error('e', at(1, 1, 900), 'm'),
    'c',
    'x'.repeat(900),
  ).split('\n')
  t.ok(carets.length <= source.length)
})

t.test('escapes control characters of a binary file', async (t) => {
  const frame = formatIssue(error('e', at(2, 1, 1), 'm'), 'c', '\x1b[31m\n\0\x9b2J\x07')
  // eslint-disable-next-line no-control-regex
  t.notMatch(frame, /[\0-\x08\x0b-\x1f\x7f-\x9f]/)
})

t.test('treats Windows line ends as line ends', async (t) => {
  t.strictSame(formatIssue(error('e', at(2, 1, 99), 'm'), 'c', 'one\r\ntwo\r\n').split('\n'), [
    'c:2:1 e m',
    '  1 | one',
    '> 2 | two',
    '    | ^^^',
  ])
})

t.test('shows the last line for a position behind the end', async (t) => {
  t.equal(formatIssue(error('e', at(9, 1, 1), 'm'), 'c', 'one'), 'c:9:1 e m')
  t.equal(formatIssue(error('e', at(1, 1, 1), 'm'), 'c', ''), 'c:1:1 e m\n> 1 | \n    | ^')
})

t.test('lists every issue in the error', async (t) => {
  const issues = [error('a', at(1, 1, 1), 'first'), error('b', at(2, 1, 1), 'second')]
  const fault = new CatalogError('c.yaml', 'x\ny', issues)
  t.match(fault.message, /c\.yaml:1:1 a first[^]*\n\nc\.yaml:2:1 b second/)
  t.equal(fault.issues, issues)
  t.equal(fault.name, 'CatalogError')
})
