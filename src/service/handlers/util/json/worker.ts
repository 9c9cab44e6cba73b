import { serveWorker } from '../../../threads/serve-worker.ts'
import { perform } from './operations.ts'

serveWorker(perform)
