import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A raw connection: what is written is what is sent. */
export async function dial(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname === 'localhost' ? '127.0.0.1' : hostname)
  await once(socket, 'connect')
  socket.on('error', () => undefined)
  return socket
}

export interface RawAnswer {
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
