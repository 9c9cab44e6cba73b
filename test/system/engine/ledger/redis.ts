import t from 'tap'
import { testAnswers } from '../../../contract/answers.ts'
import { testLedger } from '../../../contract/ledger.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  let places = 0
  const newPlace = (): string => `${redis.url}/${(places += 1)}`
  testLedger('redis', newPlace)
  testAnswers('redis', newPlace)
}
