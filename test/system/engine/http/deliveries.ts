import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import t from 'tap'
import { BackgroundTasks } from '../../../../src/engine/http/background-tasks.ts'
import { BuyerConnections } from '../../../../src/engine/http/buyer-connections.ts'
import { Deliveries } from '../../../../src/engine/http/deliveries.ts'
import type { PaymentRecord } from '../../../../src/engine/ledger/payment-record.ts'
import { collectGarbage } from '../../../support/garbage.ts'
import { listening } from '../../../support/http.ts'
import { purchaseOf, receiptOf } from '../../../support/ledger-fixture.ts'
import { makeRecord, nextRecord } from '../../../support/payment-records.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'
import { until } from '../../../support/until.ts'

/** Keeps this process from reading what its connections bring. */
function block(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600)
}

/** A client in a process of its own: it leaves while the server is blocked, or once it has the answer. */
const CLIENT = `
const socket = require('node:net').connect(process.argv[1])
socket.on('error', () => {})
socket.write('GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
if (process.argv[2] === 'early') setTimeout(() => socket.destroy(), 200)
else socket.on('data', () => socket.destroy())
`

type Serve = (request: IncomingMessage, response: ServerResponse, record: PaymentRecord) => Promise<void>

t.test('counts no answer as delivered whose client left just before it was written', async (t) => {
  const ledger = await openTemporaryLedger(t)
  const tasks = new BackgroundTasks()
  t.teardown(() => tasks.end())
  const deliveries = new Deliveries({
    leaseContext: { ledger, owner: 'test', now: Date.now },
    tasks,
    buyers: new BuyerConnections(),
    trustProxy: false,
    report: (fault) => t.fail(String(fault)),
  })
  /** Sells one answer to one client; resolves to the key of its record. */
  const sell = async (key: string, leaves: 'early' | 'afterwards', serve: Serve): Promise<string> => {
    const reserved = makeRecord(key, Date.now(), 'test')
    const record = nextRecord(reserved, { state: 'settled', receipt: receiptOf(purchaseOf()) })
    await ledger.insert(reserved)
    await ledger.replace(reserved, record)
    const server = createServer((request, response) => void serve(request, response, record))
    const { url, close } = await listening(server)
    t.teardown(close)
    const client = spawn(process.execPath, ['-e', CLIENT, new URL(url).port, leaves])
    await once(client, 'exit')
    return key
  }
  const before = await sell('before', 'early', async (req, res, record) => {
    block()
    await deliveries.watch({ req, res }, record)
    res.end('answer')
  })
  const meanwhile = await sell('meanwhile', 'early', async (req, res, record) => {
    await deliveries.watch({ req, res }, record)
    block()
    res.end('answer')
  })
  const delivered = await sell('delivered', 'afterwards', async (req, res, record) => {
    await deliveries.watch({ req, res }, record)
    res.end('answer')
  })
  await until(
    'the last answer counts as delivered',
    async () => (await ledger.get(delivered))?.state === 'sent',
  )
  for (const key of [before, meanwhile]) t.equal((await ledger.get(key))?.state, 'settled', key)
})

for (const { connection, trustProxy } of [
  { connection: 'a further request has confirmed it', trustProxy: false },
  { connection: 'a proxy has taken it', trustProxy: true },
])
  t.test(`keeps no response in memory while its delivery waits, once ${connection}`, async (t) => {
    const ledger = await openTemporaryLedger(t)
    const tasks = new BackgroundTasks()
    const deliveries = new Deliveries({
      leaseContext: { ledger, owner: 'test', now: Date.now },
      tasks,
      buyers: new BuyerConnections(),
      trustProxy,
      report: (fault) => t.fail(String(fault)),
    })
    const responses: WeakRef<ServerResponse>[] = []
    const server = createServer((req, res) => {
      responses.push(new WeakRef(res))
      const reserved = makeRecord(`payment ${responses.length}`, Date.now(), 'test')
      const record = nextRecord(reserved, { state: 'settled', receipt: receiptOf(purchaseOf()) })
      void (async () => {
        deliveries.confirm(req.socket)
        await ledger.insert(reserved)
        await ledger.replace(reserved, record)
        await deliveries.watch({ req, res }, record)
        res.end('answer')
      })()
    })
    const { url, close } = await listening(server)
    const left = once(server, 'connection').then(([socket]) => once(socket, 'close'))
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let count = 0; count < 20; count += 1) {
      const [answer]: IncomingMessage[] = await once(get(url, { agent }), 'response')
      answer?.resume()
      if (answer !== undefined) await once(answer, 'end')
    }
    for (let turn = 0; turn < 10; turn += 1) {
      await setImmediate()
      collectGarbage()
    }
    // The waits last for seconds: what they keep would still be there. Node.js keeps the first and the last answer.
    const kept = responses.filter((response) => response.deref() !== undefined)
    t.ok(kept.length <= 3, `${kept.length} of ${responses.length} are kept`)
    agent.destroy()
    await left
    await close()
    await tasks.end()
  })
