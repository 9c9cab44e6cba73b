import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'

export interface WiredDatabase {
  /** For a client of PostgreSQL. */
  readonly url: string
  stop(): Promise<void>
}

/** `SSLRequest`, PostgreSQL protocol 3.0. */
const SSL_REQUEST = 80_877_103
const [SYNC, QUERY, TERMINATE] = [0x53, 0x51, 0x58]

/**
 * PostgreSQL with pgvector where there is none: the embedded one behind the wire protocol, for any number of connections.
 * It has one session, so the connections take turns, each for one statement.
 */
export async function wireDatabase(): Promise<WiredDatabase> {
  const database = await PGlite.create({ extensions: { vector } })
  let turn: Promise<void> = Promise.resolve()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    const take = statements((statement) => {
      turn = turn.then(async () => {
        socket.write(await database.execProtocolRaw(statement))
      })
    }, socket)
    socket.on('data', take)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      await turn
      await database.close()
    },
  }
}

/** Cuts a stream into what the server answers as a whole: up to a sync or a simple query. */
function statements(carryOut: (statement: Buffer) => void, socket: Socket): (chunk: Buffer) => void {
  let [rest, begun] = [Buffer.alloc(0), false]
  let frames: Buffer[] = []
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const head = begun ? 1 : 0
      const length = rest.length < head + 4 ? Infinity : rest.readUInt32BE(head) + head
      if (rest.length < length) return
      const frame = rest.subarray(0, length)
      rest = rest.subarray(length)
      if (begun && frame[0] === TERMINATE) return void socket.end()
      if (!begun && frame.readUInt32BE(4) === SSL_REQUEST) {
        socket.write('N')
        continue
      }
      frames.push(frame)
      if (!begun || frame[0] === SYNC || frame[0] === QUERY) {
        carryOut(Buffer.concat(frames))
        frames = []
      }
      begun = true
    }
  }
}
