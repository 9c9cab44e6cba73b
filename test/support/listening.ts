import { once } from 'node:events'
import type { Server } from 'node:http'

/** Lets a server of the test listen on a free port of this machine. */
export async function listening(server: Server): Promise<{
  readonly url: string
  readonly close: () => Promise<void>
}> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
