import { testAnswers } from '../../contract/answers.ts'
import { testLedger } from '../../contract/ledger.ts'

let places = 0
const newPlace = (): string => `store ${(places += 1)}`

testLedger('simulated', newPlace, 'one process')
testAnswers('simulated', newPlace)
