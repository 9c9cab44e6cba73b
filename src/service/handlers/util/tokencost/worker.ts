import { attend } from '../../../threads/attend.ts'
import { price } from './pricing.ts'

attend(price)
