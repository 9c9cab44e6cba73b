import { attend } from '../../../threads/attend.ts'
import { judge } from './judgement.ts'

attend(judge)
