import { decodePage } from '../../../html/charset.ts'
import { readHead } from '../../../html/head.ts'
import { parsePage } from '../../../html/tree.ts'
import { serveWorker } from '../../../threads/serve-worker.ts'

export interface FrontPageTask {
  readonly bytes: Uint8Array
  readonly contentType: string
}

function readFrontPage({ bytes, contentType }: FrontPageTask): ReturnType<typeof readHead> {
  return readHead(parsePage(decodePage(bytes, contentType).text).root)
}

serveWorker(readFrontPage)
