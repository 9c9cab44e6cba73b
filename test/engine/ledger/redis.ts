import t from 'tap'
import { testLedger } from '../../contract/ledger.ts'
import { redisAbsence, startRedis } from '../../support/redis.ts'

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  let places = 0
  testLedger('redis', () => `${redis.url}/${(places += 1)}`)
}
