import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stockFetch } from '../../../support/payment.ts'
import { readSandboxFile, runProgram, startServer, type RunningServer } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'

t.setTimeout(240_000)

const SECRET_BYTES = Buffer.alloc(32, 9)
const SECRET = `whsec_${SECRET_BYTES.toString('base64')}`

interface Taken {
  readonly id: string
  readonly type: string
  readonly payment: unknown
  readonly isSigned: boolean
}

/** A receiver of webhooks, whose answers the test decides. */
async function openReceiver(t: Test, port = 0) {
  const taken: Taken[] = []
  const say: { status: number; when: (left: Promise<unknown>) => Promise<unknown> } = {
    status: 200,
    when: async () => {},
  }
  /** Requests that the sender has left before they were answered. */
  const left: string[] = []
  const server: Server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const { headers } = request
      const [id, at, signature] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
        String(headers[name]),
      )
      const expected = createHmac('sha256', SECRET_BYTES).update(`${id}.${at}.${body}`).digest('base64')
      const { type, data } = JSON.parse(body)
      response.on('close', () => {
        if (!response.writableFinished) left.push(id ?? '')
      })
      await say.when(once(response, 'close'))
      if (say.status === 200 && !response.destroyed)
        taken.push({ id: id ?? '', type, payment: data.payment, isSigned: signature === `v1,${expected}` })
      response.writeHead(say.status).end()
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  t.teardown(close)
  const { port: taking } = server.address() as AddressInfo
  return { taken, left, say, close, port: taking }
}

/** A catalog that sells a local upstream and tells a receiver. */
async function openCatalog(t: Test, receiver: number): Promise<string> {
  const upstream = createServer((_, response) =>
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"n":1}'),
  )
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.teardown(() => upstream.close())
  const { port } = upstream.address() as AddressInfo
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-webhooks-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'catalog.yaml')
  writeFileSync(
    file,
    `catalog: 1
service: { name: Shop, version: "1" }
payments: { currency: USD, x402: { networks: [base] } }
webhooks:
  - { url: "http://127.0.0.1:${receiver}/hook", secret: WEBHOOK_SECRET, events: [sale, refund_due] }
routes:
  /paid/number:
    price: 0.001
    summary: A number
    handler: proxy
    upstream: http://127.0.0.1:${port}/number
`,
  )
  return file
}

async function buy(server: RunningServer): Promise<string> {
  const answer = await stockFetch(readSandboxFile(server).evm.payerKey)(`${server.url}/paid/number`)
  const payment = answer.headers.get('ratecard-payment') ?? ''
  await answer.text()
  return payment
}

t.test('tells of each sale, signed, whatever becomes of receiver and server in between', async (t) => {
  const receiver = await openReceiver(t)
  const catalog = await openCatalog(t, receiver.port)
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const open = (): Promise<RunningServer> =>
    startServer({
      args: ['--sandbox', '--catalog', catalog],
      dataDir,
      env: { WEBHOOK_SECRET: SECRET },
    })
  const first = await open()
  const sold = [await buy(first)]
  await until('the first sale is told', () => receiver.taken.length === 1)
  receiver.say.status = 500
  sold.push(await buy(first))
  await receiver.close()
  sold.push(await buy(first))
  await first.kill()

  const second = await open()
  t.teardown(() => second.stop())
  sold.push(await buy(second))
  const back = await openReceiver(t, receiver.port)
  // A lost answer may be given again instead of being sold again.
  const payments = new Set(sold)
  const isTold = (): boolean =>
    new Set([...receiver.taken, ...back.taken].map(({ payment }) => payment)).size === payments.size
  await until('all sales are told', () => isTold())
  const told = [...receiver.taken, ...back.taken]
  t.strictSame(new Set(told.map(({ payment }) => payment)), payments)
  t.ok(payments.size >= 3)
  t.ok(told.every(({ isSigned, type }) => isSigned && type === 'sale'))
  t.equal(new Set(told.map(({ id }) => id)).size, payments.size, 'one id for each event')
  t.notMatch(second.output() + first.output(), SECRET)
})

t.test(
  'sells beside a receiver that answers too late, and tells it again until it answers in time',
  async (t) => {
    const receiver = await openReceiver(t)
    const server = await startServer({
      args: ['--sandbox', '--catalog', await openCatalog(t, receiver.port)],
      env: { WEBHOOK_SECRET: SECRET },
    })
    t.teardown(() => server.stop())
    let asked = 0
    // Answers as soon as the sender has left, and not before.
    receiver.say.when = (left) => {
      asked += 1
      return left
    }
    const first = await buy(server)
    await until('the receiver has the first sale', () => asked > 0)
    const second = await buy(server)
    await until('the sender has left', () => receiver.left.length > 0)
    t.equal(receiver.taken.length, 0, 'an answer that comes too late counts for nothing')
    receiver.say.when = async () => {}
    const told = (): Set<unknown> => new Set(receiver.taken.map(({ payment }) => payment))
    await until('both sales are told', () => told().size === 2)
    t.strictSame(told(), new Set([first, second]))
    t.ok(receiver.taken.every(({ isSigned }) => isSigned))
    const again = receiver.taken.find(({ payment }) => payment === first)
    t.equal(again?.id, receiver.left[0], 'under the same id')
    await server.said(/webhook sale to 127\.0\.0\.1:\d+: .*; it is sent again/)
  },
)

t.test('sends a test event to each receiver, and says what becomes of it', async (t) => {
  const receiver = await openReceiver(t)
  const catalog = await openCatalog(t, receiver.port)
  const args = ['webhooks', 'test', '--catalog', catalog]
  const good = await runProgram(args, { WEBHOOK_SECRET: SECRET })
  t.match(good, { code: 0, stdout: `http://127.0.0.1:${receiver.port}/hook: delivered\n` })
  t.match(receiver.taken, [{ type: 'test', isSigned: true }])
  receiver.say.status = 410
  t.match(await runProgram(args, { WEBHOOK_SECRET: SECRET }), {
    code: 1,
    stdout: /not delivered: it answers 410/,
  })
  t.match(await runProgram(args), { code: 1, stdout: /not sent before WEBHOOK_SECRET is set/ })
  const short = await runProgram([...args, '--json'], { WEBHOOK_SECRET: 'whsec_c2hvcnQ=' })
  t.match(JSON.parse(short.stdout), [{ delivered: false, reason: /24 to 64 bytes/ }])
})

t.test('sells without telling anybody while the secret is missing, and says so', async (t) => {
  const receiver = await openReceiver(t)
  const catalog = await openCatalog(t, receiver.port)
  const server = await startServer({ args: ['--sandbox', '--catalog', catalog] })
  t.teardown(() => server.stop())
  t.match(server.output(), /webhooks to 127\.0\.0\.1:\d+ are not sent before WEBHOOK_SECRET is set/)
  t.match(await buy(server), /^pay_/)
  t.equal(receiver.taken.length, 0)
})
