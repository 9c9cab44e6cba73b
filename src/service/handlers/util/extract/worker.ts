import { serveWorker } from '../../../threads/serve-worker.ts'
import { readPage } from './reading.ts'

serveWorker(readPage)
