import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listening } from '../../support/listening.ts'

/**
 * What happens on the way to a node:
 *
 * - `open`: nothing
 * - `down`: connections are cut
 * - `deaf after sending`: transactions reach the node, and nothing that tells what became of them comes back
 */
export type Condition = 'open' | 'down' | 'deaf after sending'

export interface Way {
  readonly url: string
  readonly set: (next: Condition) => void
  readonly close: () => Promise<void>
}

/** What tells whether a transaction was taken, mined or has had its effect. */
const TELLING =
  /"eth_(?:sendRawTransaction\w*|getTransactionReceipt|getTransactionByHash|getLogs|getBlockReceipts)"/

/** Stands before a node. Reads the text of requests only, so that single calls and batches are treated alike. */
export async function openWay(node: string): Promise<Way> {
  let condition: Condition = 'open'
  const { url, close } = await listening(
    createServer((request, response) => {
      const pass = async (): Promise<void> => {
        const asked = await text(request)
        if (condition === 'down') throw new Error('down')
        const answer = await fetch(node, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: asked,
        })
        const told = await answer.text()
        if (condition === 'deaf after sending' && TELLING.test(asked)) throw new Error('deaf')
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(told)
      }
      pass().catch(() => request.socket.destroy())
    }),
  )
  return { url, close, set: (next) => (condition = next) }
}
