import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { checkVat } from '../../../../../../src/service/handlers/util/finid/vat.ts'

interface Numbers {
  readonly valid: readonly string[]
  readonly invalid: readonly string[]
}

const published: Readonly<Record<string, Numbers>> = parse(
  readFileSync(new URL('../../../../../fixtures/authority/vat.yaml', import.meta.url), 'utf8'),
)

t.test(
  'accepts the VAT numbers of existing companies in every member state and next to the union',
  async (t) => {
    const union = 'AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK'.split(
      ' ',
    )
    t.same(Object.keys(published).toSorted(), [...union, 'CH', 'GB', 'NO'].toSorted())
    for (const [country, { valid }] of Object.entries(published)) {
      for (const vat of valid) {
        t.match(
          checkVat(vat),
          { valid: true, format_valid: true, country, registered: null, errors: [] },
          vat,
        )
      }
    }
  },
)

t.test('finds a VAT number with a wrong check digit', async (t) => {
  for (const [country, { invalid }] of Object.entries(published)) {
    for (const vat of invalid) t.match(checkVat(vat), { valid: false, country }, vat)
  }
})
