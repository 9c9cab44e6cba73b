import { attend } from '../../../threads/attend.ts'
import { cut } from './cutting.ts'

attend(cut)
