import { attend } from '../../../threads/attend.ts'
import { screen } from './screening.ts'

attend(screen)
