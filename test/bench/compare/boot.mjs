import { startPeer } from '../servers/peer.mjs'
import { freePort } from '../shop.mjs'
import { ask, payStock } from './buyer.mjs'

/** Starts the seller while its node or facilitator is down; that comes back after the first unpaid request. */
export async function bootAlone(shop) {
  const { node } = shop
  shop.kill()
  node.set('down')
  const rows = await boot(shop, 'Started while the node is down', {}, async () => node.set('open'))
  const port = await freePort()
  const { signerKey, chain } = shop
  let facilitator
  const settings = { facilitatorUrl: `http://127.0.0.1:${port}`, signerKey: undefined, rpcUrl: undefined }
  rows.push(
    ...(await boot(shop, 'Started while its facilitator over HTTP is down', settings, async () => {
      facilitator = await startPeer('facilitator', { port, signerKey, rpcUrl: chain.rpcUrl })
    })),
  )
  facilitator?.stop()
  await shop.start()
  return rows
}

const STARTED_WITHIN_MS = 20_000

async function boot(shop, words, settings, bringBack) {
  const started = await within(STARTED_WITHIN_MS, shop.start(settings))
  const unpaid = started ? await request(shop, ask) : '–'
  await bringBack()
  const paid = started ? await request(shop, payStock, await shop.wallet()) : '–'
  shop.kill()
  return [
    [`${words}: starts`, started ? 'yes' : 'no'],
    ['… an unpaid request gets', unpaid],
    ['… the first payment once it is back gets', paid],
  ]
}

async function request(shop, call, credential) {
  const { text } = await call(shop, shop.path('/paid/work'), credential)
  return shop.alive() ? text : `${text}; the process has ended`
}

async function within(ms, starting) {
  const timer = AbortSignal.timeout(ms)
  const late = new Promise((resolve) => {
    timer.addEventListener('abort', () => resolve(false), { once: true })
  })
  return Promise.race([starting.then(() => true).catch(() => false), late])
}
