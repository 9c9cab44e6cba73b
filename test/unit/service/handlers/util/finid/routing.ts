import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { checkRouting } from '../../../../../../src/service/handlers/util/finid/routing.ts'

interface Published {
  readonly reserve: Readonly<Record<string, string>>
  readonly treasury: readonly string[]
  readonly banks: readonly string[]
}

const published: Published = parse(
  readFileSync(new URL('../../../../../fixtures/authority/routing.yaml', import.meta.url), 'utf8'),
)

t.test('finds the twelve Federal Reserve Banks in their districts', async (t) => {
  t.equal(Object.keys(published.reserve).length, 12)
  for (const [district, code] of Object.entries(published.reserve)) {
    const details = { kind: 'bank', district }
    t.match(checkRouting(code), { valid: true, type: 'aba', country: 'US', details, errors: [] }, code)
  }
})

t.test('accepts the published numbers of large banks and the Treasury', async (t) => {
  for (const code of published.banks) t.match(checkRouting(code), { valid: true, type: 'aba' }, code)
  for (const code of published.treasury) {
    t.match(checkRouting(code), { valid: true, details: { kind: 'us_government', district: null } }, code)
  }
})

t.test('finds every single wrong digit', async (t) => {
  for (const code of [...Object.values(published.reserve), ...published.banks, ...published.treasury]) {
    const wrong = Array.from(code).flatMap((digit, place) =>
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map(
        (step) => `${code.slice(0, place)}${(Number(digit) + step) % 10}${code.slice(place + 1)}`,
      ),
    )
    t.same(
      wrong.filter((twin) => checkRouting(twin)['valid'] === true),
      [],
      code,
    )
  }
})
