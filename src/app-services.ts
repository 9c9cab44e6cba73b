import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { AppServices } from './cli/command.ts'
import type { Env } from './env.ts'
import { chooseEmbedder } from './service/memory/choose-embedder.ts'
import { StoreRefusal } from './service/memory/database.ts'
import { requestForget } from './service/memory/forget-requests.ts'
import { Memories } from './service/memory/memories.ts'
import { createHandlers } from './service/service.ts'
import { Dns } from './service/sources/dns.ts'
import { Egress } from './service/sources/egress.ts'
import type { Wire } from './service/sources/egress/connection.ts'
import { LISTS, STAND_IN_LISTS } from './service/sources/sanctions/lists.ts'
import { Sanctions } from './service/sources/sanctions.ts'
import { SourceRecords } from './service/sources/source-record.ts'
import type { Runtime } from './service/sources/world.ts'

/** How sites name us in their robots.txt. */
const AGENT = 'Ratecard'

/** The service that ships, over its real sources or their stand-ins. What it remembers is kept over reloads of the catalog. */
export function openServices(env: Env, version: string): AppServices {
  const world: Runtime = {
    fetch: (url, { headers, ...options }) =>
      fetch(url, { ...options, headers: { 'user-agent': userAgent, ...headers } }),
    now: () => new Date(),
    sleep: async (ms, signal) => {
      await delay(ms, undefined, { signal })
    },
    random: () => randomBytes(4).readUInt32BE() / 2 ** 32,
  }
  const userAgent = userAgentOf(env, version)
  const records = new SourceRecords(world.now, (line) => process.stderr.write(`${line}\n`))
  const memories = new Memories()
  const shared = { world, records, memories }
  const openEgress = (wire: Wire): Egress => {
    const own = env.baseUrl === undefined ? [] : [new URL(env.baseUrl).hostname]
    return new Egress({ agent: AGENT, userAgent, policy: { own, allow: env.egressAllow }, wire }, world.now)
  }
  return {
    handlers: () => {
      const { sources, sanctions, twitch, crossrefMailto, model, search } = env
      const dns = new Dns(env.dnsServers)
      return createHandlers({
        ...shared,
        ...sources,
        sanctions: { lists: LISTS, ...sanctions },
        twitch,
        egress: openEgress({ resolve: (host) => dns.addresses(host) }),
        dns,
        crossrefMailto,
        model,
        search,
        standIn: false,
      })
    },
    lists: () => new Sanctions({ lists: LISTS, ...env.sanctions }, world, records),
    figures: () => records.figures(),
    startStandIns: async () => {
      const { startStandIns } = await import('./service/stand-ins/stand-ins.ts')
      const { startWeb } = await import('./service/stand-ins/web/web.ts')
      const [standIns, web] = await Promise.all([startStandIns(), startWeb()])
      const dns = new Dns([web.nameServer])
      const handlers = createHandlers({
        ...shared,
        steamStore: `${standIns.url}/steam-store`,
        steamApi: `${standIns.url}/steam-api`,
        steamSpy: `${standIns.url}/steamspy`,
        twitchApi: `${standIns.url}/twitch-api`,
        twitchId: `${standIns.url}/twitch-id`,
        igdb: `${standIns.url}/igdb`,
        crossref: `${standIns.url}/crossref`,
        datacite: `${standIns.url}/datacite`,
        doiResolver: web.doiResolver,
        crossrefMailto: undefined,
        sanctions: {
          lists: STAND_IN_LISTS,
          directory: undefined,
          urls: {
            us_ofac_sdn: `${standIns.url}/sanctions/ofac.xml`,
            un_sc: `${standIns.url}/sanctions/un.xml`,
          },
        },
        twitch: undefined,
        egress: openEgress({ resolve: (host) => dns.addresses(host), ...web.wire }),
        dns,
        rdapBootstrap: web.rdapBootstrap,
        search: { searxngUrl: `${standIns.url}/searxng`, braveApiKey: undefined },
        model: { baseUrl: `${standIns.url}/model`, apiKey: undefined, languageModel: 'stand-in' },
        standIn: true,
      })
      return {
        handlers,
        sources: standIns.sources,
        stop: async () => {
          await Promise.all([standIns.stop(), web.stop()])
        },
      }
    },
    openMemories: async (place, models) => {
      const embedder = chooseEmbedder(models === 'in use' ? env.model : undefined, world, records)
      const title = await memories.open(place, embedder)
      return {
        title: `${title}, texts are found by ${embedder.semantic ? 'meaning' : 'their words'} (${embedder.name})`,
        warm: () => memories.warm(),
        upkeep: () => memories.upkeep(),
        close: () => memories.close(),
      }
    },
    forgetMemories: async (place, address) => {
      try {
        await memories.open(place, chooseEmbedder(undefined, world, records))
      } catch (fault) {
        if (place.kind === 'embedded' && fault instanceof StoreRefusal)
          return requestForget(place.directory, address)
        throw fault
      }
      try {
        return await (await memories.upkeep()).forget(address)
      } finally {
        await memories.close()
      }
    },
    openSandbox: async (directory, baseUrl, log) => {
      const { openSandbox } = await import('./sandbox/sandbox.ts')
      return openSandbox({
        directory,
        baseUrl,
        now: () => new Date(),
        random: (bytes) => randomBytes(bytes),
        log,
      })
    },
    testAddresses: async (directory) => {
      const { developmentAddresses, readSandboxAddresses } = await import('./sandbox/known-keys.ts')
      return new Set([...developmentAddresses, ...readSandboxAddresses(directory)])
    },
  }
}

/** What every source and site sees, with where its operator can be reached. */
function userAgentOf({ baseUrl, crossrefMailto }: Env, version: string): string {
  const contact = [baseUrl && `+${baseUrl}`, crossrefMailto && `mailto:${crossrefMailto}`].filter(Boolean)
  return [`${AGENT}/${version}`, ...(contact.length === 0 ? [] : [`(${contact.join('; ')})`])].join(' ')
}
