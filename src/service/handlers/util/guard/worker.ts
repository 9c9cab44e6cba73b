import { serveWorker } from '../../../threads/serve-worker.ts'
import { screen } from './screening.ts'

serveWorker(screen)
