import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import express from 'express'
import * as ratecard from 'ratecard'
import { handlers } from './handlers.js'

const { BASE_URL, PORT = '4021', PAY_TO, FACILITATOR_URL, FACILITATOR_TOKEN } = process.env
const documents = ratecard.documentNames
const { catalog } = ratecard.loadCatalog('catalog.yaml', { handlers: Object.keys(handlers), documents })
const ledger = await ratecard.openLmdbLedger('ledger')
const shared = { ledger, owner: `express-${process.pid}`, now: Date.now, sleep, report: console.error }
const networks = ratecard.openX402Networks({
  ...shared,
  payTo: PAY_TO,
  facilitators: [{ url: FACILITATOR_URL, token: FACILITATOR_TOKEN }],
  rpcUrls: {},
  signerKeys: [],
  fetcher: fetch,
  caller: fetch,
})

const app = express()
app.get('/', (_, response) => response.send('An Express application with paid routes below /paid/'))

const server = createServer({ maxHeaderSize: 65_536, joinDuplicateHeaders: true }, app)
const port = await ratecard.listen(server, Number(PORT), '127.0.0.1')
const baseUrl = BASE_URL ?? `http://localhost:${port}`
const service = ratecard.createService({
  ...shared,
  server: ratecard.createHttpServer(),
  catalog,
  handlers,
  protocols: ({ service, payments: { x402 } }) => {
    const [offered, reachable] = [networks.of(x402), networks.reachable(x402)]
    return [ratecard.createX402({ service, baseUrl, offered, reachable, random: randomBytes })]
  },
  random: randomBytes,
  cache: new ratecard.Cache(ratecard.createMemoryCache(), Date.now),
  proxy: { fetcher: fetch, secret: (name) => process.env[name] },
  figures: () => new Map(),
  networks: () => networks.health(),
  baseUrl,
  mcpUrls: {},
  sandbox: false,
  trustProxy: false,
})
app.use(service.koa.callback())
console.log(`listening on ${baseUrl}`)

process.once('SIGTERM', () => {
  server.close(() => void service.idle().then(() => ledger.close()))
})
