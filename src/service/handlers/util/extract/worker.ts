import { attend } from '../../../threads/attend.ts'
import { readPage } from './reading.ts'

attend(readPage)
