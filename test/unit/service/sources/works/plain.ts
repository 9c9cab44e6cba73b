import t from 'tap'
import { pageRange } from '../../../../../src/service/sources/works/page-range.ts'
import { plain } from '../../../../../src/service/sources/works/plain.ts'
import { fc } from '../../../../support/fast-check.ts'

t.test('turns markup of a reference into words', async (t) => {
  for (const [marked, shown] of [
    ['Reduction of CO<sub>2</sub> by <i>E. coli</i>', 'Reduction of CO2 by E. coli'],
    ['R&amp;amp;D &lt;i&gt;in vivo&lt;/i&gt;', 'R&D in vivo'],
    ['<jats:title>One</jats:title><jats:p>Two</jats:p>', 'One Two'],
    [
      'Decay of <mml:math xmlns:mml="x"><mml:mi>B</mml:mi><mml:mo>→</mml:mo><mml:mi>μ</mml:mi></mml:math> pairs',
      'Decay of B→μ pairs',
    ],
    ['Risk at p < 0.05 and r > 3', 'Risk at p < 0.05 and r > 3'],
    ['  A\n   title\twith\u00a0spaces ', 'A title with spaces'],
    ['Caf&eacute; &#x2013; &ldquo;noir&rdquo;', 'Café – “noir”'],
    ['soft\u00adhyphen', 'softhyphen'],
    ['evil\u202egnp.exe', 'evilgnp.exe'],
    ['a\ud800b\u0000c', 'a\ufffdb c'],
    ['<i></i> ', undefined],
  ] as const)
    t.equal(plain(marked), shown, marked)
})

t.test('reduces anything an agency sends to one line', async (t) => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('<i>', '</', '&amp;', '&lt;b&gt;', '\r\n', '<'),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const line = plain(pieces.join(''))
      t.ok(line === undefined || (!/[\p{Cc}\p{Cs}]/u.test(line) && line === line.trim() && line !== ''))
    }),
    { numRuns: 500 },
  )
})

t.test('reads pages as a range, a page or nothing', async (t) => {
  for (const [given, read] of [
    ['436-444', '436–444'],
    ['436–444', '436–444'],
    ['436--444', '436–444'],
    ['436-44', '436–444'],
    ['12', '12'],
    ['12-12', '12'],
    ['S12-S19', 'S12–S19'],
    ['e0193972', 'e0193972'],
    ['12, 14-15', '12, 14–15'],
    ['n/a-n/a', null],
    ['no-no', null],
    ['-', null],
    [null, null],
  ] as const)
    t.equal(pageRange(given), read, String(given))
})
