import { serveWorker } from '../../../threads/serve-worker.ts'
import { price } from './pricing.ts'

serveWorker(price)
