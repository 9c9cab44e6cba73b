import type { RequestListener } from 'node:http'
import { startWeb } from '../../../src/service/stand-ins/web/web.ts'
import { Dns } from '../../../src/service/sources/dns.ts'
import { Egress } from '../../../src/service/sources/egress.ts'
import { Rdap } from '../../../src/service/sources/rdap.ts'
import { SourceMetrics } from '../../../src/service/sources/source-metrics.ts'
import { openInternet } from './hostile-site.ts'

interface Teardown {
  teardown(work: () => Promise<void>): void
}

export interface Web {
  readonly egress: Egress
  readonly dns: Dns
  readonly rdap: Rdap
}

/** The parts that the handlers of the service use. */
interface WholeWeb extends Web {
  readonly rdapBootstrap: string
  readonly doiResolver: string
}

/** The web of the sandbox, until the test is over. */
export async function openWeb(
  t: Teardown,
  own: readonly string[] = [],
  now: () => Date = () => new Date(),
): Promise<WholeWeb> {
  const web = await startWeb()
  t.teardown(web.stop)
  const dns = new Dns([web.nameServer])
  const egress = new Egress(
    {
      agent: 'Ratecard',
      userAgent: 'Ratecard/1.0',
      policy: { own, allow: [] },
      wire: { resolve: (host) => dns.addresses(host), ...web.wire },
    },
    now,
  )
  const { rdapBootstrap, doiResolver } = web
  return { egress, dns, rdap: rdapOf(egress, rdapBootstrap), rdapBootstrap, doiResolver }
}

/** A registry client without a rate limit. */
export function rdapOf(egress: Egress, bootstrap: string): Rdap {
  return new Rdap(egress, bootstrap, new SourceMetrics(() => new Date()))
}

/** A site with the answers that a test sets, and the address of its pages. */
export async function openSite(
  t: Teardown,
  site: RequestListener,
): Promise<{ readonly egress: Egress; readonly url: string }> {
  const { egress, port } = await openInternet(t, {
    site: (request, response) => {
      if (request.url === '/robots.txt') response.writeHead(404).end()
      else site(request, response)
    },
  })
  return { egress, url: `http://www.site.com:${port}` }
}
