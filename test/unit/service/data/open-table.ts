import { readdirSync } from 'node:fs'
import t from 'tap'
import { openTable } from '../../../../src/service/data/open-table.ts'
import { servicePrices } from '../../../../src/service/handlers/services/quote/table.ts'
import { deliveryRules } from '../../../../src/service/handlers/util/delivery-orderby/table.ts'
import { guardRules } from '../../../../src/service/handlers/util/guard/rules.ts'
import { occasions } from '../../../../src/service/handlers/util/occasion/table.ts'
import { platformLimits } from '../../../../src/service/handlers/util/platform-spec/table.ts'
import { holidayCorrections } from '../../../../src/service/handlers/util/workday/corrections.ts'

t.test('reads every table that ships, with its date', async (t) => {
  for (const open of [
    servicePrices,
    deliveryRules,
    guardRules,
    occasions,
    platformLimits,
    holidayCorrections,
  ]) {
    const { version } = open()
    t.equal(new Date(version).toISOString().slice(0, 10), version)
  }
  const files = readdirSync(new URL('../../../../src/service/data/', import.meta.url))
  t.equal(
    files.filter((name) => name.endsWith('.yaml')).length,
    7,
    'this and the stop words, which a handler’s test reads',
  )
})

t.test('refuses a table of a wrong form, with the position', async (t) => {
  const wrong = openTable<{ readonly version: number }, number>(
    'delivery.yaml',
    { type: 'object', required: ['version'], properties: { version: { type: 'number' } } },
    ({ version }) => version,
  )
  t.throws(wrong, new Error('src/service/data/delivery.yaml differs at version: type'))
})

t.test('reads a table once', async (t) => {
  t.equal(occasions(), occasions())
})
