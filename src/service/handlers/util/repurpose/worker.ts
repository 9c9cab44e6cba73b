import { serveWorker } from '../../../threads/serve-worker.ts'
import { cut } from './cutting.ts'

serveWorker(cut)
