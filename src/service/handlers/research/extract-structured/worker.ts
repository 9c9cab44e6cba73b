import { serveWorker } from '../../../threads/serve-worker.ts'
import { judge } from './judgement.ts'

serveWorker(judge)
