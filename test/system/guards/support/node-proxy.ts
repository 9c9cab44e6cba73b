import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listening } from '../../../support/http.ts'

/**
 * State of the connection to a node:
 *
 * - `open`: calls are passed on
 * - `down`: connections are cut
 * - `no reply after sending`: transactions reach the node; replies that show their outcome are cut off
 */
export type Condition = 'open' | 'down' | 'no reply after sending'

export interface NodeProxy {
  readonly url: string
  readonly set: (next: Condition) => void
  readonly close: () => Promise<void>
}

/** Methods that show whether a transaction was accepted or mined. */
const OUTCOME_METHODS =
  /"eth_(?:sendRawTransaction\w*|getTransactionReceipt|getTransactionByHash|getLogs|getBlockReceipts)"/

const NO_BATCHES = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not supported"}}'

/** A proxy in front of a node. It searches the text of a request, so that single calls and batches are treated alike. */
export async function openNodeProxy(node: string): Promise<NodeProxy> {
  let condition: Condition = 'open'
  const { url, close } = await listening(
    createServer((request, response) => {
      const pass = async (): Promise<void> => {
        const body = await text(request)
        if (condition === 'down') throw new Error('down')
        const answer = await fetch(node, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        })
        const reply = await answer.text()
        if (condition === 'no reply after sending' && OUTCOME_METHODS.test(body)) {
          // Calls that show no outcome are answered, once the client asks for each alone.
          if (!body.startsWith('[')) throw new Error('no reply')
          response.writeHead(400, { 'content-type': 'application/json' }).end(NO_BATCHES)
          return
        }
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(reply)
      }
      pass().catch(() => request.socket.destroy())
    }),
  )
  return { url, close, set: (next) => (condition = next) }
}
