import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { closeTogether } from '../../../support/http.ts'

/** When a process is killed: before a write reaches the store, or after it is done and before its reply. */
export type KillPoint = 'before' | 'after'

/** A proxy between one server and Redis that counts the commands that may write. */
export interface RedisProxy {
  readonly port: number
  /** Starts to count at 0; at the n-th write (0: never) traffic stops and `onKill` is called. Returns the count so far. */
  readonly arm: (n: number, point: KillPoint, onKill: () => void) => number
  readonly close: () => Promise<void>
}

/** Commands that only read. Everything else may write, scripts above all. */
const READS: ReadonlySet<string> = new Set(
  `auth client command config echo exists get hello hget hgetall hlen hmget hscan info llen lrange mget ping pttl quit
  scan script select smembers strlen time ttl type xrange zcard zrange zrangebyscore zrevrange zscore eval_ro evalsha_ro`.split(
    /\s+/,
  ),
)

const MARK = 'the write before this is done'
const ECHO = Buffer.from(`*2\r\n$4\r\nECHO\r\n$${MARK.length}\r\n${MARK}\r\n`)

export async function openRedisProxy(redis: number): Promise<RedisProxy> {
  let [count, target] = [0, 0]
  let point: KillPoint = 'before'
  let armed = false
  let onKill = (): void => undefined
  const ends = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(redis, '127.0.0.1')
    let state: 'open' | 'draining' | 'closed' = 'open'
    let echoed = ''
    closeTogether(ends, [client, upstream])
    const stop = (): void => {
      state = 'closed'
      onKill()
    }
    client.on(
      'data',
      split((command, name) => {
        if (state !== 'open') return
        if (armed && !READS.has(name)) count += 1
        const due = armed && !READS.has(name) && count === target
        if (due && point === 'before') return stop()
        upstream.write(command)
        if (!due) return
        state = 'draining'
        upstream.write(ECHO)
      }),
    )
    upstream.on('data', (bytes) => {
      if (state === 'open') client.write(bytes)
      if (state !== 'draining') return
      echoed += bytes.toString('latin1')
      if (echoed.includes(MARK)) stop()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    arm: (n, where, then) => {
      const before = count
      ;[count, target, point, onKill, armed] = [0, n, where, then, true]
      return before
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const end of ends) end.destroy()
      await closed
    },
  }
}

/** Splits what a client sends into commands, each with its name in lower case. */
function split(onCommand: (command: Buffer, name: string) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    for (let command = firstOf(rest); command !== undefined; command = firstOf(rest)) {
      rest = rest.subarray(command.length)
      onCommand(command.bytes, command.name)
    }
  }
}

interface Command {
  readonly bytes: Buffer
  readonly length: number
  readonly name: string
}

function firstOf(bytes: Buffer): Command | undefined {
  const line = (from: number): [text: string, next: number] | undefined => {
    const end = bytes.indexOf('\r\n', from)
    return end < 0 ? undefined : [bytes.toString('latin1', from, end), end + 2]
  }
  const head = line(0)
  if (head === undefined) return undefined
  let [name, at] = ['', head[1]]
  for (let part = 0; part < Number(head[0].slice(1)); part += 1) {
    const size = line(at)
    if (size === undefined) return undefined
    const end = size[1] + Number(size[0].slice(1))
    if (bytes.length < end + 2) return undefined
    if (part === 0) name = bytes.toString('latin1', size[1], end).toLowerCase()
    at = end + 2
  }
  return { bytes: bytes.subarray(0, at), length: at, name }
}
