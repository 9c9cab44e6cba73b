import { once } from 'node:events'
import type { Server } from 'node:http'
import { type Socket, connect } from 'node:net'
import { isJsonObject, type JsonObject } from '../../src/engine/base/json.ts'

/** Lets a server of the test listen on a port of this machine, a free one by default. */
export async function listening(
  server: Server,
  atPort = 0,
): Promise<{
  readonly url: string
  readonly port: number
  readonly close: () => Promise<void>
}> {
  server.listen(atPort, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Ties both sides of a proxied connection: when one is closed, so is the other. `open`: all sides that are open. */
export function closeTogether(open: Set<Socket>, sides: readonly Socket[]): void {
  for (const side of sides) {
    open.add(side)
    side.on('error', () => undefined)
    side.once('close', () => {
      open.delete(side)
      for (const each of sides) each.destroy()
    })
  }
}

/** A raw connection, which sends exactly what is written. */
export async function dial(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname === 'localhost' ? '127.0.0.1' : hostname)
  await once(socket, 'connect')
  socket.on('error', () => undefined)
  return socket
}

interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Sends bytes and reads until the server closes the connection. */
export async function exchange(url: string, bytes: string | Buffer): Promise<RawAnswer> {
  const socket = await dial(url)
  socket.write(bytes)
  return readAnswer(socket)
}

/** Everything up to the end of the connection, as one answer. */
export async function readAnswer(socket: Socket): Promise<RawAnswer> {
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  if (!socket.closed) await once(socket, 'close')
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [line = '', ...lines] = head.split('\r\n')
  const headers = lines.map((each): [string, string] => {
    const colon = each.indexOf(':')
    return [each.slice(0, colon).toLowerCase(), each.slice(colon + 1).trim()]
  })
  return {
    status: Number(line.split(' ')[1]),
    headers: Object.fromEntries(headers),
    body: rest.join('\r\n\r\n'),
  }
}

/**
 * What must reach no buyer: libraries, stacks, revert data, addresses of our own machines. A random identifier in base64
 * may hold the letters of a name, but not as a word of its own.
 */
const INNARDS =
  /\bviem\b|Error:|\bat \S+[.:]\w+:\d|node_modules|08c379a0|0x[0-9a-f]{200,}|127\.0\.0\.1|node\.go/i

/** An error body, shown to hold nothing of the service's innards; throws when it does. */
export async function readProblem(response: Response): Promise<JsonObject> {
  const text = await response.text()
  const value: unknown = JSON.parse(text)
  if (!isJsonObject(value)) throw new Error(`${response.status} carries no object: ${text}`)
  // The example program of a 402 names viem on purpose.
  const { client: _, ...said } = value
  const headers = [...response.headers].map(([, header]) => header).join('\n')
  const receipt = Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString('utf8')
  const leak = INNARDS.exec([JSON.stringify(said), headers, receipt].join('\n'))
  if (leak !== null) throw new Error(`${response.status} lets out "${leak[0]}": ${text}`)
  return value
}

/** A live document as JSON. */
export async function askJson(url: string): Promise<JsonObject> {
  const response = await fetch(url)
  const value: unknown = await response.json()
  if (response.status !== 200 || !isJsonObject(value)) throw new Error(`${url} answered ${response.status}`)
  return value as JsonObject
}
