import { attend } from '../../../threads/attend.ts'
import { perform } from './operations.ts'

attend(perform)
