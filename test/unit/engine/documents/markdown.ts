import t from 'tap'
import { code, plain } from '../../../../src/engine/documents/template.ts'

t.test('keeps words on one line as they are, whatever they contain', async (t) => {
  for (const [text, expected] of [
    ['Ranks deals by value', 'Ranks deals by value'],
    ['a|b', 'a\\|b'],
    ['two\n\n# lines', 'two # lines'],
    ['# no heading', '\\# no heading'],
    ['1. no list', '1\\. no list'],
    ['- no list', '\\- no list'],
    ['5 apps for 0.01', '5 apps for 0.01'],
    ['0.01 to 5', '0.01 to 5'],
    ['<b>bold</b> &lt; & co', '\\<b\\>bold\\</b\\> \\&lt; & co'],
    ['[a](b) ![c](d)', '\\[a\\](b) !\\[c\\](d)'],
    ['`x` *y* ~~z~~ \\', '\\`x\\` \\*y\\* \\~\\~z\\~\\~ \\\\'],
    ['parcel_domestic and _not_', 'parcel_domestic and \\_not\\_'],
  ] as const)
    t.equal(plain(text), expected)
})

t.test('keeps a value one span of code, in a table too', async (t) => {
  for (const [text, expected] of [
    ['730,570', '`730,570`'],
    ['a|b', '`a\\|b`'],
    ['a`b', '``a`b``'],
    ['`', '`` ` ``'],
    ['``', '``` `` ```'],
    ['<b>', '`<b>`'],
    ['a\nb', '`a b`'],
    ['', ''],
    [' ', ''],
  ] as const)
    t.equal(code(text), expected)
})
