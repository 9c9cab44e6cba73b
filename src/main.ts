#!/usr/bin/env node
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { check } from './cli/check.ts'
import { dataStatus, updateData } from './cli/data.ts'
import type { Command, Shop } from './cli/command.ts'
import { init } from './cli/init.ts'
import { addRoute } from './cli/new.ts'
import { exportMemories } from './cli/memory.ts'
import { forgetWallet } from './cli/memory.ts'
import { reindexMemories } from './cli/memory.ts'
import { pay } from './cli/pay.ts'
import { exportPayments } from './cli/payments/export.ts'
import { listPayments } from './cli/payments/list.ts'
import { prunePayments } from './cli/payments/prune.ts'
import { reconcilePayments } from './cli/payments/reconcile.ts'
import { showPayment } from './cli/payments/show.ts'
import { plan } from './cli/plan.ts'
import { print } from './cli/print.ts'
import { routes } from './cli/routes.ts'
import { runCommand } from './cli/run.ts'
import { serve } from './cli/serve.ts'
import { figures } from './cli/figures.ts'
import { types } from './cli/types.ts'
import { doctor } from './cli/doctor.ts'
import { documentNames, once } from './engine/index.ts'
import { readEnv } from './env.ts'
import { chooseEmbedder } from './service/memory/choose-embedder.ts'
import { Memories } from './service/memory/memories.ts'
import { createHandlers } from './service/service.ts'
import { Dns } from './service/sources/dns.ts'
import { Egress } from './service/sources/egress.ts'
import type { Wire } from './service/sources/egress/connection.ts'
import { LISTS, STAND_IN_LISTS } from './service/sources/sanctions/lists.ts'
import { Sanctions } from './service/sources/sanctions.ts'
import { SourceRecords } from './service/sources/source-record.ts'
import type { World } from './service/sources/world.ts'

const commands: readonly Command[] = [
  init,
  serve,
  check,
  routes,
  plan,
  addRoute,
  print,
  types,
  pay,
  listPayments,
  showPayment,
  reconcilePayments,
  exportPayments,
  prunePayments,
  figures,
  doctor,
  updateData,
  dataStatus,
  reindexMemories,
  forgetWallet,
  exportMemories,
]

const env = () => readEnv(process.env)
const version = readVersion()

const world: World = {
  fetch: (url, { headers, ...options }) =>
    fetch(url, { ...options, headers: { 'user-agent': userAgent(), ...headers } }),
  now: () => new Date(),
  sleep: async (ms: number, signal: AbortSignal) => {
    await delay(ms, undefined, { signal })
  },
  random: () => randomBytes(4).readUInt32BE() / 2 ** 32,
}

/** One for all handlers this process ever makes: a reload of the catalog does not forget what the sources did. */
const records = new SourceRecords(world.now, (line) => process.stderr.write(`${line}\n`))

/** What the handlers of this process remember, over reloads too. */
const memories = new Memories()

/** How sites name us in their robots.txt. */
const AGENT = 'Ratecard'

/** What every source and site sees, with where its operator reaches ours. */
const userAgent = once(() => {
  const { baseUrl, crossrefMailto } = env()
  const contact = [baseUrl && `+${baseUrl}`, crossrefMailto && `mailto:${crossrefMailto}`].filter(Boolean)
  return [`${AGENT}/${version}`, ...(contact.length === 0 ? [] : [`(${contact.join('; ')})`])].join(' ')
})

function createEgress(wire: Wire): Egress {
  const { baseUrl, egressAllow: allow } = env()
  const own = baseUrl === undefined ? [] : [new URL(baseUrl).hostname]
  return new Egress({ agent: AGENT, userAgent: userAgent(), policy: { own, allow }, wire }, world.now)
}

const shop: Shop = {
  handlers: () => {
    const { sources, sanctions, twitch, crossrefMailto, dnsServers, model, search } = env()
    const dns = new Dns(dnsServers)
    return createHandlers({
      world,
      records,
      ...sources,
      sanctions: { lists: LISTS, ...sanctions },
      twitch,
      egress: createEgress({ resolve: (host) => dns.addresses(host) }),
      dns,
      crossrefMailto,
      model,
      search,
      memories,
      standIn: false,
    })
  },
  lists: () => new Sanctions({ lists: LISTS, ...env().sanctions }, world, records),
  figures: () => records.figures(),
  startStandIns: async () => {
    const { startStandIns } = await import('./sandbox/sources/stand-ins.ts')
    const { startWeb } = await import('./sandbox/sources/web/web.ts')
    const [standIns, web] = await Promise.all([startStandIns(), startWeb()])
    const dns = new Dns([web.nameServer])
    const handlers = createHandlers({
      world,
      records,
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
      egress: createEgress({ resolve: (host) => dns.addresses(host), ...web.wire }),
      dns,
      rdapBootstrap: web.rdapBootstrap,
      search: { searxngUrl: `${standIns.url}/searxng`, braveApiKey: undefined },
      model: { baseUrl: `${standIns.url}/model`, apiKey: undefined, languageModel: 'stand-in' },
      memories,
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
    const { model } = env()
    const embedder = chooseEmbedder(models === 'in use' ? model : undefined, world, records)
    const title = await memories.open(place, embedder)
    return {
      title: `${title}, texts are found by ${embedder.semantic ? 'meaning' : 'their words'} (${embedder.name})`,
      warm: () => memories.warm(),
      upkeep: () => memories.upkeep(),
      close: () => memories.close(),
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
  playAddresses: async (directory) => {
    const { developmentAddresses, readSandboxAddresses } = await import('./sandbox/known-keys.ts')
    return new Set([...developmentAddresses, ...readSandboxAddresses(directory)])
  },
}

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return String(version)
}

process.stdout.on('error', (fault: NodeJS.ErrnoException) => {
  // The reader has had enough, as `head` does: no mistake of ours.
  if (fault.code !== 'EPIPE') throw fault
  process.exit(0)
})

process.exitCode = await runCommand({
  commands,
  argv: process.argv.slice(2),
  env,
  terminal: {
    out: (line) => process.stdout.write(`${line}\n`),
    err: (line) => process.stderr.write(`${line}\n`),
    reader: process.stdout.isTTY ? 'person' : 'program',
    logReader: process.stderr.isTTY ? 'person' : 'program',
    // Back to the start of the line, and the rest of it erased.
    progress: (line) => process.stderr.isTTY && process.stderr.write(`\r${line}\u001b[K`),
  },
  shop,
  version,
  known: () => ({ handlers: Object.keys(shop.handlers()), documents: documentNames }),
})
