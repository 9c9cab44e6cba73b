import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { closeTogether } from './http.ts'

/** Where the next 200 is cut off: before its first byte, or within its body. */
type Cut = 'before' | 'within'

/** A TCP proxy that resets both ends of a connection where a test says. */
interface BreakingProxy {
  readonly url: string
  cut(next: Cut): void
  /** Answers cut off so far. */
  readonly cuts: () => number
  readonly close: () => Promise<void>
}

export async function openBreakingProxy(server: string): Promise<BreakingProxy> {
  let next: Cut | undefined
  let cuts = 0
  const ends = new Set<Socket>()
  const proxy = createServer((client) => {
    const upstream = connect(Number(new URL(server).port), '127.0.0.1')
    closeTogether(ends, [client, upstream])
    client.on('data', (bytes) => upstream.write(bytes))
    upstream.on('data', (bytes) => {
      if (next === undefined || !bytes.subarray(0, 12).equals(Buffer.from('HTTP/1.1 200'))) {
        client.write(bytes)
        return
      }
      const where = next
      next = undefined
      cuts += 1
      const reset = (): void => {
        client.resetAndDestroy()
        upstream.resetAndDestroy()
      }
      // All of the head and a part of the body.
      if (where === 'within') client.write(bytes.subarray(0, bytes.indexOf('\r\n\r\n') + 12), reset)
      else reset()
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const address = proxy.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    cut: (where) => (next = where),
    cuts: () => cuts,
    close: async () => {
      const closed = once(proxy, 'close')
      proxy.close()
      for (const end of ends) end.destroy()
      await closed
    },
  }
}
