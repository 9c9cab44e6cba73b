import { startPeer } from '../servers/peer.mjs'
import { freePort } from '../market.mjs'
import { ask, payStock } from './buyer.mjs'

/** Started while what settles for it is away, which comes back after the first unpaid request. */
export async function bootAlone(market) {
  const { node } = market
  market.kill()
  node.set('down')
  const rows = await boot(market, 'Started while the node is down', {}, async () => node.set('open'))
  const port = await freePort()
  const { settlerKey, chain } = market
  let facilitator
  const means = { facilitatorUrl: `http://127.0.0.1:${port}`, settlerKey: undefined, rpcUrl: undefined }
  rows.push(
    ...(await boot(market, 'Started while its facilitator over HTTP is down', means, async () => {
      facilitator = await startPeer('facilitator', { port, settlerKey, rpcUrl: chain.rpcUrl })
    })),
  )
  facilitator?.stop()
  await market.start()
  return rows
}

const STARTED_WITHIN_MS = 20_000

async function boot(market, words, means, bringBack) {
  const started = await within(STARTED_WITHIN_MS, market.start(means))
  const unpaid = started ? await request(market, ask) : '–'
  await bringBack()
  const paid = started ? await request(market, payStock, await market.wallet()) : '–'
  market.kill()
  return [
    [`${words}: starts`, started ? 'yes' : 'no'],
    ['… an unpaid request gets', unpaid],
    ['… the first payment once it is back gets', paid],
  ]
}

async function request(market, way, credential) {
  const { text } = await way(market, market.path('/paid/work'), credential)
  return market.alive() ? text : `${text}; the process has ended`
}

async function within(ms, starting) {
  const timer = AbortSignal.timeout(ms)
  const late = new Promise((resolve) => {
    timer.addEventListener('abort', () => resolve(false), { once: true })
  })
  return Promise.race([starting.then(() => true).catch(() => false), late])
}
