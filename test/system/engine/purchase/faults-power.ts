import t from 'tap'
import { paymentId } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import { openBuyer } from '../../../support/buyer.ts'
import { addressOf, challengeOf, send, sign, type Hex, type SignedPayment } from '../../../support/payment.ts'
import { Secrets } from '../../../support/secrets.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const shop = await openShop()
t.teardown(() => shop.close())
const secrets = new Secrets()
secrets.add('an RPC endpoint', shop.node.url)
secrets.add('the signer’s key', shop.signerKey.slice(2))

const called = (method: string): number => shop.node.calls().filter((each) => each === method).length

interface Buyer {
  readonly key: Hex
  readonly path: string
  readonly payment: SignedPayment
}

async function newBuyer(n: number, route = '/paid/work'): Promise<Buyer> {
  const key = await shop.wallet()
  const payment = await sign(await challengeOf(`${shop.url}${route}`), key)
  secrets.addHeader(payment.header)
  return { key, path: `${route}?n=${n}`, payment }
}

const chargesOf = ({ key }: Buyer): Promise<number> => shop.onchain.charges(addressOf(key))

async function stateOf({ payment: { authorization } }: Buyer): Promise<string | undefined> {
  const { from, nonce } = authorization
  const id = paymentId(['x402', 'exact', 'eip155:8453', shop.chain.asset, from, nonce].join(':'))
  const response = await fetch(`${shop.url}/payments/${id}`)
  const { state } = (await response.json()) as { state?: string }
  return state
}

t.test('charges buyers once who sign again after a power cut at any moment', async (t) => {
  const upfront = await newBuyer(1, '/paid/deep')
  const working = await newBuyer(2)
  const awaited = await newBuyer(3)
  const forgotten = await newBuyer(4)
  const recorded = await newBuyer(5)
  const worked = await newBuyer(6)
  const cut: Promise<number>[] = []
  const pay = ({ path, payment }: Buyer): void => {
    cut.push(send(`${shop.url}${path}`, payment.header).then(({ status }) => status))
  }

  const runs = shop.upstream.runs()
  shop.upstream.during(() => new Promise(() => {}))
  pay(upfront)
  pay(working)
  await until('both are worked for', () => shop.upstream.runs() === runs + 2)
  shop.upstream.during(async () => {})

  await shop.onchain.setMining('manual')
  for (const each of [awaited, forgotten]) {
    const receipts = called('eth_getTransactionReceipt')
    pay(each)
    await until('its block is waited for', () => called('eth_getTransactionReceipt') > receipts + 3)
  }
  const broadcasts = called('eth_sendRawTransaction')
  shop.node.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') await new Promise(() => {})
  })
  pay(recorded)
  await until('it is written down', () => called('eth_sendRawTransaction') > broadcasts)
  // The signer is busy with the one before.
  pay(worked)
  await until('its work is done', async () => (await stateOf(worked)) === 'fulfilled')

  const answers = Promise.allSettled(cut)
  await shop.restart()
  shop.node.onCall(async () => {})
  for (const answer of await answers)
    t.not(answer.status === 'fulfilled' && answer.value, 200, 'nobody got what was bought')
  await shop.onchain.setMining('automatic')
  await shop.onchain.mine()

  const anew = [upfront, working, awaited, recorded, worked]
  const bought = await Promise.all(
    anew.map(({ key, path }) => openBuyer(key, secrets).buy(`${shop.url}${path}`)),
  )
  t.strictSame(
    bought.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
  t.strictSame(await Promise.all(anew.map(chargesOf)), [1, 1, 1, 1, 1])
  await until('it is settled though nobody asks', async () => (await stateOf(forgotten)) === 'settled')
  const late = await openBuyer(forgotten.key, secrets).buy(`${shop.url}${forgotten.path}`)
  t.equal(late.status, 200, 'the buyer who comes much later gets the same')
  t.strictSame(await Promise.all([...anew, forgotten].map(chargesOf)), [1, 1, 1, 1, 1, 1])
})

t.test('keeps secrets out of the logs and out of unpaid answers', async (t) => {
  secrets.scan(shop.output())
  t.strictSame(secrets.leaked(), [])
})
