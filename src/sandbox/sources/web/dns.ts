import { createSocket } from 'node:dgram'
import { once } from 'node:events'

/** Types of records by number (RFC 1035, 3596, 8659). */
const TYPES = { a: 1, ns: 2, mx: 15, txt: 16, aaaa: 28, caa: 257 } as const

/** Data of the records of one name, ready for the wire. */
type Zone = Readonly<Partial<Record<keyof typeof TYPES, readonly Buffer[]>>>

const ADDRESS = Buffer.from([93, 184, 215, 14])
const ADDRESS_V6 = Buffer.from('26062800021fcb07682080daaf6b8b2c', 'hex')

const HOST: Zone = { a: [ADDRESS], aaaa: [ADDRESS_V6] }
const DOMAIN: Zone = {
  ...HOST,
  ns: [wireName('a.iana-servers.net'), wireName('b.iana-servers.net')],
  mx: [Buffer.concat([Buffer.from([0, 10]), wireName('mail.example.com')])],
  txt: [wireText('v=spf1 -all'), wireText('sandbox=1')],
  caa: [Buffer.concat([Buffer.from([0, 5]), Buffer.from('issueca.example.net')])],
}

/** The names that IANA keeps for examples; every other name does not exist here. */
function zoneOf(name: string): Zone | undefined {
  if (/^example\.(?:com|net|org)$/.test(name)) return DOMAIN
  if (/^_dmarc\.example\.(?:com|net|org)$/.test(name)) return { txt: [wireText('v=DMARC1; p=reject')] }
  if (/^(?:www|rdap|mail|news|shop|old)\.example\.(?:com|net|org)$/.test(name)) return HOST
  return undefined
}

/** Starts a name server on this machine: as much of RFC 1035 as a resolver needs. */
export async function startDns(): Promise<{ readonly server: string; readonly stop: () => Promise<void> }> {
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const answer = answerTo(query)
    if (answer !== undefined) socket.send(answer, port, address)
  })
  socket.bind(0, '127.0.0.1')
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
const NAME_ERROR = 3

function answerTo(query: Buffer): Buffer | undefined {
  if (query.length < HEADER + 5) return undefined
  const labels: string[] = []
  let at = HEADER
  for (let length = query[at] ?? 0; length > 0 && at < query.length; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase())
    at += length + 1
  }
  const end = at + 5
  const type = query.readUInt16BE(at + 1)
  const zone = zoneOf(labels.join('.'))
  const kind = Object.entries(TYPES).find(([, number]) => number === type)?.[0] as
    keyof typeof TYPES | undefined
  const records = kind === undefined ? [] : (zone?.[kind] ?? [])
  const header = Buffer.alloc(HEADER)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8580 | (zone === undefined ? NAME_ERROR : 0), 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, query.subarray(HEADER, end), ...records.map((data) => record(type, data))])
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

function wireName(name: string): Buffer {
  return Buffer.concat([...name.split('.').map(wireText), Buffer.from([0])])
}

function wireText(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])
}
