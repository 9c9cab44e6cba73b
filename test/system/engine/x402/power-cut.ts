import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { paymentId } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import { paymentKey } from '../../../../src/engine/x402/exact-evm/payment-key.ts'
import { challengeOf, readHeader, send, sign, type SignedPayment } from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'
import { networkNamed } from '../../../support/shipped-catalog.ts'

const shop = await openShop()
t.teardown(() => shop.close())

const work = (n: number): string => `${shop.url}/paid/work?n=${n}`

async function fresh(url = shop.url): Promise<SignedPayment> {
  return sign(await challengeOf(`${url}/paid/work`), await shop.wallet())
}

async function chargesOf({ authorization }: SignedPayment): Promise<number> {
  return (await shop.onchain.uses()).filter(({ payer }) => payer === authorization.from).length
}

function called(method: string): number {
  return shop.node.calls().filter((each) => each === method).length
}

async function stateOf({ authorization }: SignedPayment): Promise<unknown> {
  const id = paymentId(paymentKey(networkNamed('base'), authorization))
  const response = await fetch(`${shop.url}/payments/${id}`)
  return ((await response.json()) as { state?: unknown }).state
}

t.test('finishes done work and payments under way once after a power cut', async (t) => {
  const [sent, unsent, unsettled] = [await fresh(), await fresh(), await fresh()]
  const runs = shop.upstream.runs()

  await shop.onchain.setMining('manual')
  const receipts = called('eth_getTransactionReceipt')
  const cut = [send(work(11), sent.header)]
  await until('its block is waited for', () => called('eth_getTransactionReceipt') > receipts)

  // Signed and written down, but never sent.
  const broadcasts = called('eth_sendRawTransaction')
  shop.node.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') shop.node.set('silent')
  })
  cut.push(send(work(12), unsent.header))
  await until('it is about to be sent', () => called('eth_sendRawTransaction') > broadcasts)
  shop.node.onCall(async () => {})
  shop.node.set('open')

  shop.upstream.during(async () => shop.node.set('silent'))
  cut.push(send(work(13), unsettled.header))
  // Its turn to be sent comes when the broadcast before it is given up.
  while ((await stateOf(unsettled)) !== 'fulfilled') await delay(10)

  const lost = Promise.allSettled(cut)
  await shop.restart()
  const given = (await lost).some((each) => each.status === 'fulfilled' && each.value.status === 200)
  t.notOk(given, 'nobody got what was bought')
  shop.node.set('open')
  await shop.onchain.setMining('automatic')
  await shop.onchain.mine()

  const payments = [sent, unsent, unsettled]
  const answers = await Promise.all(payments.map(({ header }, index) => send(work(11 + index), header)))
  t.strictSame(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  t.strictSame(await Promise.all(payments.map(chargesOf)), [1, 1, 1])
  t.equal(shop.upstream.runs() - runs, 3, 'no work was done twice')
  const uses = await shop.onchain.uses()
  for (const [index, answer] of answers.entries()) {
    const use = uses.find(({ payer }) => payer === payments[index]?.authorization.from)
    t.equal(readHeader(answer, 'payment-response')['transaction'], use?.transaction, 'the receipt is true')
  }
})

t.test(
  'sends a payment again at the start whose block was undone after a power cut, and charges it once',
  async (t) => {
    shop.upstream.during(async () => {})
    const payment = await fresh()
    t.equal((await send(work(21), payment.header)).status, 200)
    t.equal(await chargesOf(payment), 1)
    await shop.onchain.setMining('manual')
    await shop.server.kill()
    await shop.onchain.undo(1)
    t.equal(await chargesOf(payment), 0, 'the block is gone')
    const sent = called('eth_sendRawTransaction')
    const { url } = await shop.branch()
    await until('it is sent again', () => called('eth_sendRawTransaction') > sent)
    // Blocks are a second apart at least, and the payment expires.
    await until('the payment is charged again', async () => {
      await shop.onchain.mine()
      return (await chargesOf(payment)) === 1
    })
    await shop.onchain.setMining('automatic')
    const next = await fresh(url)
    t.equal(
      (await send(`${url}/paid/work?n=22`, next.header)).status,
      200,
      'the next payment has the nonce after it',
    )
    t.equal(await chargesOf(next), 1)
  },
)
