import { once } from 'node:events'
import { createServer as createPlain } from 'node:http'
import { createServer as createSecure } from 'node:https'
import type { Server } from 'node:net'
import type { Wire } from '../../sources/egress/connection.ts'
import { AUTHORITY, SITE_CERTIFICATE, SITE_KEY } from './certificates.ts'
import { startDns } from './dns.ts'
import { answerSites } from './sites.ts'

export interface StandInWeb {
  /** What leads every connection of an egress here. */
  readonly wire: Required<Omit<Wire, 'resolve'>>
  /** A name server, as `Dns` takes it. */
  readonly nameServer: string
  /** Where the list of registries is. */
  readonly rdapBootstrap: string
  /** Sends on to agencies, as doi.org does. */
  readonly doiResolver: string
  readonly stop: () => Promise<void>
}

/** A small Internet on this machine: name server, sites with and without TLS, registry. */
export async function startWeb(): Promise<StandInWeb> {
  const plain = createPlain(answerSites)
  const secure = createSecure({ key: SITE_KEY, cert: SITE_CERTIFICATE }, answerSites)
  const [dns, plainPort, securePort] = await Promise.all([startDns(), portOf(plain), portOf(secure)])
  return {
    wire: {
      divert: (port) => ({ address: '127.0.0.1', port: port === 443 ? securePort : plainPort }),
      ca: AUTHORITY,
    },
    nameServer: dns.server,
    rdapBootstrap: 'https://rdap.example.net/rdap/dns.json',
    doiResolver: 'https://doi.example.net',
    stop: async () => {
      for (const server of [plain, secure]) {
        server.close()
        server.closeAllConnections()
      }
      await dns.stop()
    },
  }
}

async function portOf(server: Server): Promise<number> {
  server.listen({ port: 0, host: '127.0.0.1', exclusive: true })
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}
