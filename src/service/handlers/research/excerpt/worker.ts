import { serveWorker } from '../../../threads/serve-worker.ts'
import { selectSentences } from './selection.ts'

serveWorker(selectSentences)
