import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import Koa from 'koa'
import mount from 'koa-mount'
import t, { type Test } from 'tap'
import { createRatecard, type Ratecard } from '../../../../src/engine/index.ts'
import { startBase } from '../../../support/base-chain.ts'
import { callTool } from '../../../support/mcp.ts'
import { addressOf, challengeOf, randomKey, stockFetch } from '../../../support/payment.ts'

const text = `catalog: 1
service: { name: Greetings, version: '1.0.0', contact: { email: shop@example.com }, updated: '2026-11-01' }
payments: { currency: USD, x402: { networks: [base] } }
mcp_servers: { tools: { title: Tools } }
routes:
  /paid/hello/{name}:
    price: 0.001
    summary: A greeting
    parameters: { name: { type: string, example: Ada } }
    example: { text: Hello Ada }
    sample: true
    tool: tools.hello
  /paid/fails: { price: 0.001, summary: Fails }
documents:
  index: /
  openapi: /openapi.json
  llms: /llms.txt
  agent-card: /.well-known/agent-card.json
  x402: /.well-known/x402.json
  x402-resources: /x402/resources.json
  docs: /docs
  docs-md: /docs.md
  docs-errors: /docs/errors
  privacy: /privacy
  categories: /categories.json
  ard: /.well-known/ard.json
  api-catalog: /.well-known/api-catalog
  robots: /robots.txt
  sitemap: /sitemap.xml
  security-txt: /.well-known/security.txt
  health: /health
  status: /status
  status-json: /status.json
  stats: /stats.json
`

const chain = await startBase()
t.teardown(() => chain.stop())
const [signer, buyer, payTo] = [randomKey(), randomKey(), addressOf(randomKey())]
await chain.setGas(addressOf(signer), 10n ** 18n)
await chain.mint(addressOf(buyer), 1_000_000n)

type Host = (app: Ratecard) => RequestListener

/** Serves below /shop in a host of its own; resolves to the address of the host. */
async function serve(t: Test, host: Host, basePath = '/shop'): Promise<string> {
  let answer: RequestListener = () => undefined
  const server = createServer((request, response) => answer(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has a port')
  const origin = `http://localhost:${address.port}`
  const app = await createRatecard({
    catalog: { text },
    baseUrl: origin,
    basePath,
    handlers: {
      hello: async ({ name }: { readonly name: string }) => ({ source: [], body: { text: `Hello ${name}` } }),
      fails: () => Promise.reject(new Error('a fault')),
    },
    payments: { x402: { payTo, rpcUrls: { base: chain.rpcUrl }, signerKeys: [signer] } },
    dataDir: t.testdir(),
    logger: { warn: () => undefined, error: () => undefined },
  })
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await app.close()
  })
  answer = host(app)
  return origin
}

const koaMount: Host = (app) => {
  const front = new Koa()
  front.use(mount('/shop', app.koa))
  const answer = front.callback()
  return (request, response) => void answer(request, response)
}

/** As `app.use('/shop', …)` of Express and connect. */
const express: Host = (app) => {
  const answer = app.callback()
  return (request, response) => {
    const { url = '/' } = request
    const prefixed = Object.assign(request, { originalUrl: url })
    prefixed.url = url.replace(/^\/shop/, '').replace(/^(?!\/)/, '/')
    answer(prefixed, response)
  }
}

const HOSTS: Readonly<Record<string, Host>> = {
  'a mount of Koa': koaMount,
  'a mount that removes the path, as that of Express': express,
  'a host that leaves the path as it is': (app) => app.callback(),
}

for (const [name, host] of Object.entries(HOSTS))
  t.test(`sells below its base path in ${name}`, async (t) => {
    const origin = await serve(t, host)
    const url = `${origin}/shop/paid/hello/Ada`
    t.match(await challengeOf(url), { resource: { url } })
    const paid = await stockFetch(buyer)(url)
    t.equal(paid.status, 200)
    t.match(await paid.json(), { text: 'Hello Ada' })
    const { content } = await callTool(`${origin}/shop/mcp/tools`, 'hello', { name: 'Ada' })
    t.match(content, { code: 'payment_required', accepts: [{ payTo }] })
    t.equal((await fetch(`${origin}/shop`)).status, 200)
    t.equal((await fetch(`${origin}/shop/?a=b`)).status, 200)
    t.equal((await fetch(`${origin}/shop/shop/paid/hello/Ada`)).status, 404)
    t.match(await (await fetch(`${origin}/shop/nothing`)).json(), {
      code: 'route_not_found',
      type: '/shop/docs/errors#route_not_found',
    })
  })

t.test('leaves what is not below its base path to the host', async (t) => {
  const origin = await serve(t, (app) => {
    const front = new Koa()
    front.use(mount('/shop', app.koa))
    front.use((ctx) => {
      ctx.body = `the host at ${ctx.url}`
    })
    const answer = front.callback()
    return (request, response) => void answer(request, response)
  })
  for (const path of ['/paid/hello/Ada', '/shop/own'])
    t.equal(await (await fetch(origin + path)).text(), `the host at ${path}`)
  const alone = await serve(t, (app) => app.callback())
  for (const path of ['/', '/paid/hello/Ada', '/shopping', '/openapi.json'])
    t.equal((await fetch(alone + path)).status, 404, path)
})

t.test(
  'refuses a request below another prefix than its base path, uncharged and with the reason',
  async (t) => {
    const origin = await serve(t, koaMount, '/store')
    const refused = await fetch(`${origin}/shop/paid/hello/Ada`)
    t.equal(refused.status, 500)
    t.match(await refused.json(), { charged: 'no', detail: /set basePath to the prefix/ })
  },
)

t.test('has its base path in every address of its pages and documents, all of which answer', async (t) => {
  const origin = await serve(t, koaMount)
  const open = [`${origin}/shop/`]
  const seen = new Set(open)
  const visit = (link: string, from: string): void => {
    const { href, hash } = new URL(link, from)
    const address = href.slice(0, href.length - hash.length)
    if (!address.startsWith(origin)) return
    t.ok(address === `${origin}/shop` || address.startsWith(`${origin}/shop/`), `${from} links to ${link}`)
    if (!seen.has(address)) open.push(address)
    seen.add(address)
  }
  for (let page = open.pop(); page !== undefined; page = open.pop())
    for (const accept of ['text/html', '*/*']) {
      const response = await fetch(page, { headers: { accept } })
      // Templates such as {name} are no addresses.
      const body = (await response.text()).replaceAll(/http:[^\s"]*\{[^\s"]*/g, '')
      // A server of tools is asked with POST.
      if (!page.includes('/mcp/')) t.ok([200, 402].includes(response.status), `${response.status} ${page}`)
      for (const [, link = ''] of body.matchAll(/(?:href|src|action)="([^"{]*)"/g)) visit(link, page)
      for (const [, link = ''] of body.matchAll(/(?:from |import\()'(\.?\/[^']+)'/g)) visit(link, page)
      for (const [, link = ''] of (response.headers.get('link') ?? '').matchAll(/<([^>]+)>/g))
        visit(link, page)
      for (const [link] of body.matchAll(new RegExp(`${origin}[^\\s"'<>\\\\)\`,;{}&]*`, 'g')))
        if (link !== origin) visit(link.replace(/[.:]+$/, ''), page)
    }
  t.match(await (await fetch(`${origin}/shop/robots.txt`)).text(), 'Disallow: /shop/paid/')
  for (const path of [
    '/docs',
    '/openapi.json',
    '/llms.txt',
    '/docs/paid_hello_name',
    '/mcp/tools',
    '/status',
    '/brand.css',
    '/page.js',
    '/pay.js',
    '/pay-solana.js',
    '/answer.js',
    '/favicon.svg',
  ])
    t.ok(seen.has(`${origin}/shop${path}`), `${path} is linked`)
})
