// Paid calls by MPP on a local chain of Tempo: every transaction signed beforehand, sent and awaited by the server.
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { addressOf, randomKey } from '../support/payment.ts'
import { openRpcProxy } from '../support/rpc-proxy.ts'
import { mppChallengeOf, signTempo, startTempo, TEMPO_CHAIN } from '../support/tempo.ts'
import { printTable, show, showRange } from './figures.mjs'
import { startOurs } from './servers/ours.mjs'
import { startGenerator } from './start-generator.mjs'
import { processorSeconds } from './usage.mjs'

const BUYERS = 32
const WARM_UP_CALLS = 640
/** What is signed at once: a transaction is valid for 25 seconds. */
const SIGNED = 160
const fileOf = (path) => fileURLToPath(new URL(path, import.meta.url))

/** Resolves to one run a round. */
export async function measureMpp({ paidRounds, calls }) {
  const generator = startGenerator()
  const chain = await startTempo()
  const node = await openRpcProxy(chain.rpcUrl)
  const server = await startOurs(fileOf('paid/mpp.yaml'), {
    args: ['--handlers', fileOf('paid/handlers')],
    env: {
      BASE_URL: 'https://api.example.com',
      MPP_RECIPIENT: addressOf(randomKey()),
      MPP_SECRET_KEY: randomKey().slice(2),
      [`RPC_URL_${TEMPO_CHAIN}`]: node.url,
    },
  })
  const wallets = []
  let sold = 0
  /** Only what is sent is counted, not the challenges before. */
  const buy = async (amount) => {
    const total = { answered: 0, unexpected: 0, cost: 0, methods: new Map() }
    for (let first = 0; first < amount; first += SIGNED) {
      const paths = []
      const payments = []
      while (payments.length < Math.min(SIGNED, amount - first)) {
        const path = `/paid/answer?n=${(sold += 1)}`
        const challenge = await mppChallengeOf(`http://127.0.0.1:${server.port}${path}`)
        paths.push(path)
        payments.push(await signTempo(chain.rpcUrl, wallets[payments.length % BUYERS], challenge))
      }
      const before = processorSeconds(server.pid)
      const seen = node.calls().length
      generator.send({
        ports: [server.port],
        paths,
        payments,
        header: 'authorization',
        status: 200,
        connections: BUYERS,
      })
      const [{ answered, unexpected }] = await once(generator, 'message')
      total.answered += answered
      total.unexpected += unexpected
      total.cost += (processorSeconds(server.pid) - before) * 1e3
      for (const method of node.calls().slice(seen))
        total.methods.set(method, (total.methods.get(method) ?? 0) + 1)
    }
    return { ...total, cost: total.cost / total.answered }
  }
  try {
    while (wallets.length < BUYERS) wallets.push(await chain.wallet())
    await buy(WARM_UP_CALLS)
    const runs = []
    for (let round = 0; round < paidRounds; round += 1) runs.push(await buy(calls))
    return runs
  } finally {
    generator.kill()
    server.stop()
    await node.close()
    await chain.stop()
  }
}

export function reportMpp(runs) {
  const [last] = runs.slice(-1)
  printTable(
    `Paid calls by MPP, ${BUYERS} at once: median (range over the rounds)`,
    ['ms of processor', 'unpaid'],
    [
      [
        showRange(
          runs.map(({ cost }) => cost),
          2,
        ),
        String(runs.reduce((sum, { unexpected }) => sum + unexpected, 0)),
      ],
    ],
  )
  const methods = [...last.methods].sort(([one], [other]) => one.localeCompare(other))
  printTable(
    'RPC methods a call, in the last round',
    methods.map(([method]) => method),
    [methods.map(([, count]) => show(count / last.answered, 2))],
  )
}
