import { attend } from '../../../threads/attend.ts'
import { selectSentences } from './selection.ts'

attend(selectSentences)
