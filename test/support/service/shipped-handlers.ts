import { fileURLToPath } from 'node:url'
import { Cache, createMemoryCache } from '../../../src/engine/cache/cache.ts'
import { loadCatalog } from '../../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../../src/engine/documents/all.ts'
import { createRevision } from '../../../src/engine/http/revision.ts'
import type { Arguments, EnvelopedAnswer } from '../../../src/engine/handler.ts'
import { wrapResponse } from '../../../src/engine/purchase/execution.ts'
import { execute, ANONYMOUS, type ExecutionDeps } from '../../../src/engine/purchase/execution.ts'
import type { Fault } from '../../../src/service/stand-ins/fault.ts'
import { startStandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { Memories } from '../../../src/service/memory/memories.ts'
import { createHandlers } from '../../../src/service/definition.ts'
import { STAND_IN_LISTS } from '../../../src/service/sources/sanctions/lists.ts'
import { MetricsBySource } from '../../../src/service/sources/source-metrics.ts'
import { enveloped } from '../handler-context.ts'
import { WORLD } from './sources.ts'
import { openWeb } from './stand-in-web.ts'

const CATALOG = fileURLToPath(new URL('../../../catalog.yaml', import.meta.url))
const { catalog } = loadCatalog(CATALOG, { handlers: undefined, documents: documentNames })

interface WholeService {
  /** The answer of a route with arguments as a handler gets them. */
  readonly serve: (path: string, args: Arguments) => Promise<EnvelopedAnswer>
  /** What a caller of the route is sent, previews cut. */
  readonly send: (path: string, args: Arguments) => Promise<unknown>
  /** Calls of the sources so far, by their address. */
  readonly asked: ReadonlyMap<string, number>
  /** Faults of the sources from now on, by path. */
  readonly faults: Record<string, Fault>
  readonly records: MetricsBySource
  /** Advances the clock of the caches. */
  readonly pass: (ms: number) => void
}

/** The shipped catalog with all its handlers and one cache, before stand-ins of every source. */
export async function openWholeService(
  t: { teardown(work: () => Promise<void>): void },
  faults: Record<string, Fault> = {},
): Promise<WholeService> {
  const { url, asked, stop } = await startStandIns({ faults })
  t.teardown(stop)
  const { egress, dns, rdapBootstrap, doiResolver } = await openWeb(t)
  const records = new MetricsBySource(WORLD.now)
  const handlers = createHandlers({
    runtime: WORLD,
    records,
    steamStore: `${url}/steam-store`,
    steamApi: `${url}/steam-api`,
    steamSpy: `${url}/steamspy`,
    twitchApi: `${url}/twitch-api`,
    twitchId: `${url}/twitch-id`,
    igdb: `${url}/igdb`,
    crossref: `${url}/crossref`,
    datacite: `${url}/datacite`,
    doiResolver,
    crossrefMailto: undefined,
    twitch: undefined,
    sanctions: { lists: STAND_IN_LISTS, directory: undefined, urls: {} },
    egress,
    dns,
    rdapBootstrap,
    search: { searxngUrl: `${url}/searxng`, brave: undefined },
    model: { baseUrl: `${url}/model`, apiKey: undefined, languageModel: 'stand-in' },
    memories: new Memories(),
    standIn: true,
  })
  const { operations } = createRevision({
    catalog,
    handlers,
    protocols: [],
    baseUrl: 'https://api.example.com',
    mcpUrls: {},
    sandbox: true,
    proxy: { fetcher: fetch, secret: (name) => name, report: () => undefined },
  })
  let passed = 0
  const now = () => Date.now() + passed
  const deps: ExecutionDeps = {
    cache: new Cache(createMemoryCache(), now),
    now,
    random: (bytes) => new Uint8Array(bytes),
  }
  const run = async (path: string, args: Arguments) => {
    const route = catalog.routes.find((each) => each.path === path)
    const served = route && operations.get(route.operation.handler)
    if (route === undefined || served === undefined) throw new Error(`no route ${path}`)
    const { operation } = route
    const work = {
      operation,
      handler: served.handler,
      args,
      caller: ANONYMOUS,
      timeLeft: 20_000,
      operations,
    }
    return { route, served, result: await execute(deps, { ...work, reuse: 'cached' }) }
  }
  return {
    serve: async (path, args) => enveloped((await run(path, args)).result.value),
    send: async (path, args) => {
      const { route, served, result } = await run(path, args)
      const stored = wrapResponse(route, result, served.preview, now())
      if (stored.kind === 'bytes') throw new Error('no answer of this service is bytes')
      return stored.kind === 'json' ? stored.value : stored.text
    },
    asked,
    faults,
    records,
    pass: (ms) => {
      passed += ms
    },
  }
}
