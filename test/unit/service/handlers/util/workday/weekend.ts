import t from 'tap'
import { weekendOf } from '../../../../../../src/service/handlers/util/workday/weekend.ts'

t.test('ends the week on other days in some countries', async (t) => {
  t.strictSame(weekendOf('NP'), ['saturday'])
  t.strictSame(weekendOf('IR'), ['friday'])
  t.strictSame(weekendOf('BN'), ['friday', 'sunday'])
  t.strictSame(weekendOf('SA'), ['friday', 'saturday'])
})

t.test('ends it on Saturday and Sunday elsewhere, whatever the name', async (t) => {
  for (const country of ['AE', 'IN', 'US', 'constructor', '__proto__']) {
    t.strictSame(weekendOf(country), ['saturday', 'sunday'], country)
  }
})
