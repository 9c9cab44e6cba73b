/**
 * A receiver of webhooks that is away, slow and failing for a while, and a server that is killed and restarted meanwhile.
 * OUTAGE_SECONDS: how long all of it lasts together; an hour for a release.
 */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Webhook } from 'standardwebhooks'
import { listening } from '../support/http.ts'
import { stockFetch } from '../support/payment.ts'
import { randomBytes } from '../support/random.ts'
import { readSandboxFile, startServer, type RunningServer } from '../support/server.ts'
import { createReceiver } from './support/webhook-receiver.ts'

const OUTAGE_MS = Number(process.env['OUTAGE_SECONDS'] ?? 24) * 1_000
const SALES = 36
/** Waiting events that failed for long are sent again an hour later at most. */
const CATCH_UP_MS = OUTAGE_MS + 60_000
t.setTimeout(OUTAGE_MS + CATCH_UP_MS + 120_000)

const secret = `whsec_${Buffer.from(randomBytes(32)).toString('base64')}`

interface Taken {
  readonly id: string
  readonly type: string
  readonly payment: string
}

const taken: Taken[] = []

/** A receiver that verifies what comes; `answer` tells whether it takes it. */
function openReceiver(answer: (response: ServerResponse) => boolean): Server {
  return createReceiver(({ headers, body }, response) => {
    new Webhook(secret).verify(body, headers)
    const { type, data } = JSON.parse(body)
    if (answer(response)) taken.push({ id: headers['webhook-id'] ?? '', type, payment: data.payment })
  })
}

/** Sells what is answered, and what is charged before the work and has none. */
async function openShop(t: Test, receiver: string): Promise<string> {
  const upstream = await listening(
    createServer((request, response) =>
      request.url?.startsWith('/number/')
        ? response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"n":1}')
        : response.writeHead(404).end(),
    ),
  )
  t.teardown(() => upstream.close())
  const folder = t.testdir({
    'catalog.yaml': `catalog: 1
service: { name: Shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
webhooks: [{ url: '${receiver}/hook', secret: WEBHOOK_SECRET, events: [sale, refund_due] }]
routes:
  /number/{n}:
    price: 0.001
    handler: proxy
    upstream: '${upstream.url}/number/{n}'
    summary: A number
    parameters: { n: { type: integer, example: 1 } }
  /gone/{n}:
    price: 0.001
    settle: upfront
    handler: proxy
    upstream: '${upstream.url}/gone/{n}'
    summary: Is gone
    parameters: { n: { type: integer, example: 1 } }
`,
  })
  return join(folder, 'catalog.yaml')
}

t.test('tells of each event, in order per payment, over an outage and restarts', async (t) => {
  const accept = (response: ServerResponse): boolean => {
    response.writeHead(204).end()
    return true
  }
  const { url, port, close } = await listening(openReceiver(accept))
  await close()
  const catalog = await openShop(t, url)
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const args = ['--sandbox', '--catalog', catalog]
  let server: RunningServer | undefined
  t.teardown(() => server?.stop())
  const restart = async (): Promise<RunningServer> => {
    await server?.kill()
    server = await startServer({ args, dataDir, env: { WEBHOOK_SECRET: secret } })
    return server
  }
  let serving = await restart()
  /** Every payment, with the types of its events. */
  const expected = new Map<string, readonly string[]>()
  const sell = async (number: number): Promise<void> => {
    const isGone = number % 4 === 3
    const path = `${isGone ? '/gone' : '/number'}/${number}`
    const answer = await stockFetch(readSandboxFile(serving).evm.payerKey)(serving.url + path)
    await answer.text()
    t.equal(answer.status, isGone ? 404 : 200)
    const payment = answer.headers.get('ratecard-payment') ?? ''
    expected.set(payment, isGone ? ['sale', 'refund_due'] : ['sale'])
  }
  const phases: { readonly name: string; readonly receiver: Server | undefined }[] = [
    { name: 'is down', receiver: undefined },
    {
      name: 'answers 500',
      receiver: openReceiver((response) => {
        response.writeHead(500).end()
        return false
      }),
    },
    { name: 'is slow', receiver: openReceiver(() => false) },
  ]
  let number = 0
  for (const [index, { name, receiver }] of phases.entries()) {
    t.comment(`the receiver ${name}`)
    const open = receiver && (await listening(receiver, port))
    for (const end = (SALES * (index + 1)) / phases.length; number < end; number += 1) {
      await sell(number)
      await delay(OUTAGE_MS / SALES)
    }
    await open?.close()
    serving = await restart()
  }
  t.equal(taken.length, 0)
  const back = await listening(openReceiver(accept), port)
  t.teardown(() => back.close())
  const typesOf = (payment: string): string[] => [
    ...new Set(taken.filter((each) => each.payment === payment).map(({ type }) => type)),
  ]
  const isTold = (): boolean =>
    Array.from(expected).every(([payment, types]) => typesOf(payment).length === types.length)
  for (const end = Date.now() + CATCH_UP_MS; !isTold() && Date.now() < end;) await delay(200)
  t.equal(expected.size, SALES)
  t.ok(Array.from(expected.values()).some((types) => types.length === 2))
  for (const [payment, types] of expected) t.strictSame(typesOf(payment), types, payment)
  const ids = new Set(taken.map(({ id }) => id))
  t.equal(ids.size, Array.from(expected.values()).flat().length, 'each event has one id')
})
