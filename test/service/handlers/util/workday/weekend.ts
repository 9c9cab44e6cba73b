import t from 'tap'
import { weekendOf } from '../../../../../src/service/handlers/util/workday/weekend.ts'

t.test('the week ends on other days in some countries', async (t) => {
  t.strictSame(weekendOf('NP'), ['saturday'])
  t.strictSame(weekendOf('IR'), ['friday'])
  t.strictSame(weekendOf('BN'), ['friday', 'sunday'])
  t.strictSame(weekendOf('SA'), ['friday', 'saturday'])
})

t.test('everywhere else it ends on Saturday and Sunday, whatever the name', async (t) => {
  for (const country of ['AE', 'IN', 'US', 'constructor', '__proto__']) {
    t.strictSame(weekendOf(country), ['saturday', 'sunday'], country)
  }
})
