import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { TYPES, zoneOf } from './zones.ts'

/** Starts a name server on this machine: as much of RFC 1035 as a resolver needs. */
export async function startDns(
  zones: typeof zoneOf = zoneOf,
  /** Changes what is answered to the question that ends at this byte. For tests. */
  spoil: (name: string, answer: Buffer, end: number) => Buffer = (_, answer) => answer,
): Promise<{ readonly server: string; readonly stop: () => Promise<void> }> {
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const answer = answerTo(query, zones, spoil)
    if (answer !== undefined) socket.send(answer, port, address)
  })
  socket.bind({ port: 0, address: '127.0.0.1', exclusive: true })
  await once(socket, 'listening')
  return {
    server: `127.0.0.1:${socket.address().port}`,
    stop: async () => {
      socket.close()
      await once(socket, 'close')
    },
  }
}

const HEADER = 12
const SERVER_FAILURE = 2
const NAME_ERROR = 3

function answerTo(
  query: Buffer,
  zones: typeof zoneOf,
  spoil: NonNullable<Parameters<typeof startDns>[1]>,
): Buffer | undefined {
  if (query.length < HEADER + 5) return undefined
  const labels: string[] = []
  let at = HEADER
  for (let length = query[at] ?? 0; length > 0 && at < query.length; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase())
    at += length + 1
  }
  const end = at + 5
  const type = query.readUInt16BE(at + 1)
  const name = labels.join('.')
  const found = zones(name)
  if (found === 'silent') return undefined
  const zone = found === 'failing' ? undefined : found
  const code = found === 'failing' ? SERVER_FAILURE : found === undefined ? NAME_ERROR : 0
  const kind = Object.entries(TYPES).find(([, number]) => number === type)?.[0] as
    keyof typeof TYPES | undefined
  const records = kind === undefined ? [] : (zone?.[kind] ?? [])
  const header = Buffer.alloc(HEADER)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8580 | code, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  const answer = [header, query.subarray(HEADER, end), ...records.map((data) => record(type, data))]
  return spoil(name, Buffer.concat(answer), end)
}

/** Owned by the name of the question, kept for a minute. */
function record(type: number, data: Buffer): Buffer {
  const start = Buffer.alloc(HEADER)
  start.writeUInt16BE(0xc00c, 0)
  start.writeUInt16BE(type, 2)
  start.writeUInt16BE(1, 4)
  start.writeUInt32BE(60, 6)
  start.writeUInt16BE(data.length, 10)
  return Buffer.concat([start, data])
}
