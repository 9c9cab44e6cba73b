import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { paymentId } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import { paymentKey } from '../../../../src/engine/protocols/x402/x402.ts'
import { challengeOf, readHeader, send, sign, type SignedPayment } from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'
import { networkNamed } from '../../../support/x402.ts'

const shop = await openShop()
t.teardown(() => shop.close())

const work = (n: number): string => `${shop.url}/paid/work?n=${n}`

async function fresh(): Promise<SignedPayment> {
  return sign(await challengeOf(`${shop.url}/paid/work`), await shop.wallet())
}

async function chargesOf({ authorization }: SignedPayment): Promise<number> {
  return (await shop.witness.uses()).filter(({ payer }) => payer === authorization.from).length
}

async function stateOf({ authorization }: SignedPayment): Promise<unknown> {
  const id = paymentId(paymentKey(networkNamed('base'), authorization))
  const response = await fetch(`${shop.url}/payments/${id}`)
  return ((await response.json()) as { state?: unknown }).state
}

t.test(
  'a power cut: work that was done and payments that were under way are finished after it, once',
  async (t) => {
    const [sent, unsent, unsettled] = [await fresh(), await fresh(), await fresh()]
    const runs = shop.workplace.runs()
    const until = async (holds: () => boolean): Promise<void> => {
      while (!holds()) await delay(10)
    }
    const called = (method: string): number => shop.node.calls().filter((each) => each === method).length

    await shop.witness.setMining('by hand')
    const receipts = called('eth_getTransactionReceipt')
    const cut = [send(work(11), sent.header)]
    await until(() => called('eth_getTransactionReceipt') > receipts)

    // Signed and written down, but never sent.
    const broadcasts = called('eth_sendRawTransaction')
    shop.node.onCall(async (method) => {
      if (method === 'eth_sendRawTransaction') shop.node.set('silent')
    })
    cut.push(send(work(12), unsent.header))
    await until(() => called('eth_sendRawTransaction') > broadcasts)
    shop.node.onCall(async () => {})
    shop.node.set('open')

    shop.workplace.during(async () => shop.node.set('silent'))
    cut.push(send(work(13), unsettled.header))
    // Its turn to be sent comes when the broadcast before it is given up.
    while ((await stateOf(unsettled)) !== 'fulfilled') await delay(10)

    const lost = Promise.allSettled(cut)
    await shop.restart()
    const given = (await lost).some((each) => each.status === 'fulfilled' && each.value.status === 200)
    t.notOk(given, 'nobody got what was bought')
    shop.node.set('open')
    await shop.witness.setMining('automatic')
    await shop.witness.mine()

    const payments = [sent, unsent, unsettled]
    const answers = await Promise.all(payments.map(({ header }, index) => send(work(11 + index), header)))
    t.strictSame(
      answers.map(({ status }) => status),
      [200, 200, 200],
    )
    t.strictSame(await Promise.all(payments.map(chargesOf)), [1, 1, 1])
    t.equal(shop.workplace.runs() - runs, 3, 'no work was done twice')
    const uses = await shop.witness.uses()
    for (const [index, answer] of answers.entries()) {
      const use = uses.find(({ payer }) => payer === payments[index]?.authorization.from)
      t.equal(readHeader(answer, 'payment-response')['transaction'], use?.transaction, 'the receipt is true')
    }
  },
)
