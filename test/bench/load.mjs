// The load generator, a process of its own: keeps every connection busy with one request at a time.
import { connect } from 'node:net'
import { performance } from 'node:perf_hooks'

const CONNECTIONS = 32
/** What fetch of Node.js sends: nearly all buyers are programs built on it. */
const HEADERS = [
  'connection: keep-alive',
  'accept: */*',
  'accept-language: *',
  'sec-fetch-mode: cors',
  'user-agent: node',
  'accept-encoding: gzip, deflate',
].join('\r\n')

process.on(
  'message',
  ({
    ports,
    paths,
    payments,
    header = 'payment-signature',
    seconds,
    status,
    connections = CONNECTIONS,
    order = 'any',
  }) => {
    void run(ports, connections, { paths, payments, header, seconds, status, order }).then((result) =>
      process.send(result),
    )
  },
)

/** The end of a compressed document, which is sent in chunks (RFC 9112 §7.1). */
const END = '0\r\n\r\n'

/**
 * `payments`: one value of `header` for each path, if any is sent. The connections take turns with the ports, and with the paths:
 * with `order` `own`, each sends every path whose turn is its, one after the other.
 */
async function run(ports, connections, { paths, payments, header, seconds, status, order }) {
  const requests = paths.map((path, index) => {
    const payment = payments === undefined ? '' : `\r\n${header}: ${payments[index]}`
    return Buffer.from(`GET ${path} HTTP/1.1\r\nhost: localhost:${ports[0]}\r\n${HEADERS}${payment}\r\n\r\n`)
  })
  // Without `seconds`, every path once.
  const last = seconds === undefined ? requests.length : Infinity
  const counts = { sent: 0, answered: 0, unexpected: 0, expected: String(status) }
  const begun = performance.now()
  const until = seconds === undefined ? Infinity : begun + seconds * 1000
  const next = () => {
    if (counts.sent >= last || performance.now() >= until) return undefined
    const request = requests[counts.sent % requests.length]
    counts.sent += 1
    return request
  }
  const own = (place) => {
    let at = place - connections
    return () => {
      at += connections
      if (at < requests.length) counts.sent += 1
      return requests[at]
    }
  }
  await Promise.all(
    Array.from({ length: connections }, (_, place) =>
      converse(ports[place % ports.length], order === 'own' ? own(place) : next, counts),
    ),
  )
  return { ...counts, seconds: (performance.now() - begun) / 1000 }
}

function converse(port, next, counts) {
  return new Promise((resolve, reject) => {
    let head = ''
    /** Bytes of the body that are still to come; -1 while the head is read. */
    let missing = -1
    /** The last characters of a chunked body; undefined for a body with a length. */
    let tail
    const take = (size, buffer) => {
      if (tail !== undefined)
        tail = (tail + buffer.latin1Slice(Math.max(0, size - END.length), size)).slice(-END.length)
      else if (missing >= 0) missing -= size
      else {
        head += buffer.latin1Slice(0, size)
        const end = head.indexOf('\r\n\r\n')
        if (end === -1) return true
        if (head.slice(9, 12) !== counts.expected) counts.unexpected += 1
        const length = /\r\ncontent-length: (\d+)/i.exec(head)
        if (length !== null) missing = end + 4 + Number(length[1]) - head.length
        else tail = head.slice(end).slice(-END.length)
        head = ''
      }
      if (tail === undefined ? missing > 0 : tail !== END) return true
      missing = -1
      tail = undefined
      counts.answered += 1
      say()
      return true
    }
    const socket = connect({
      port,
      host: '127.0.0.1',
      onread: { buffer: Buffer.alloc(65_536), callback: take },
    })
    const say = () => {
      const request = next()
      if (request === undefined) socket.end()
      else socket.write(request)
    }
    socket.once('error', reject)
    socket.once('close', resolve)
    socket.once('connect', () => {
      socket.setNoDelay(true)
      say()
    })
  })
}
