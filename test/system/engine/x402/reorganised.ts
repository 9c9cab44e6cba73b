import t, { type Test } from 'tap'
import { createWalletClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { LATE_SETTLEMENT_MS } from '../../../../src/engine/base/money-times.ts'
import { base } from '../../../support/base-chain.ts'
import {
  addressOf,
  challengeOf,
  randomKey,
  send,
  sign,
  type Hex,
  type SignedPayment,
} from '../../../support/payment.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { runProgram } from '../../../support/server.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { askNode } from '../../../support/rpc-proxy.ts'
import { until } from '../../../support/until.ts'

/*
 * Buyers pay at once and are answered, most of them in one transaction; then the chain undoes the blocks and forgets their
 * transactions.
 */

interface Sale {
  readonly key: Hex
  readonly payment: SignedPayment
}

interface Row {
  readonly payment: string
  readonly payer: string
  readonly state: string
  readonly charged: string
  readonly transaction: string | null
}

/** A first payment lets the server find its batch contract; it goes alone. `seconds`: how long the payments are valid. */
async function sell(
  t: Test,
  shop: Shop,
  { buyers, seconds = 600 }: { readonly buyers: number; readonly seconds?: number },
): Promise<readonly Sale[]> {
  const work = `${shop.url}/paid/work`
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + seconds)
  const sales: Sale[] = []
  while (sales.length < buyers) {
    const key = await shop.wallet(10_000n)
    sales.push({ key, payment: await sign(await challengeOf(work), key, { validBefore }) })
  }
  const [first, ...others] = sales
  const pay = async ({ payment: { header } }: Sale, place: number): Promise<number> => {
    const answer = await send(`${work}?n=${place + 1}`, header)
    await answer.text()
    return answer.status
  }
  const statuses = first === undefined ? [] : [await pay(first, 98)]
  statuses.push(...(await Promise.all(others.map(pay))))
  t.strictSame(new Set(statuses), new Set([200]))
  return sales
}

/** Undoes all blocks that contain a payment of the shop, and none below: those have the buyers' money. */
async function undo(t: Test, shop: Shop): Promise<void> {
  const blocks = (await shop.onchain.uses()).map(({ block }) => Number(block))
  const { result: newest } = await askNode(shop.chain.rpcUrl, 'eth_blockNumber', [])
  // Other transactions of the server may have blocks of their own between them.
  await shop.onchain.undo(Number(newest) - Math.min(...blocks) + 1)
  t.strictSame(await shop.onchain.uses(), [], 'the chain knows none of them any more')
}

const chargesOf = async (shop: Shop, sales: readonly Sale[]): Promise<number[]> => {
  const uses = await shop.onchain.uses()
  return sales.map(({ key }) => uses.filter(({ payer }) => payer === addressOf(key)).length)
}

async function run<T>(shop: Shop, env: Readonly<Record<string, string>>, ...args: string[]): Promise<T> {
  const { server, node, payTo } = shop
  const ran = await runProgram(['payments', ...args, '--json', '--data-dir', server.dataDir], {
    PAY_TO: payTo,
    RPC_URL_8453: node.url,
    ...env,
  })
  t.equal(ran.code, 0, ran.stderr)
  return JSON.parse(ran.stdout) as T
}

interface Exported {
  readonly payment: string
  readonly payer: string
  readonly ratecard_receipt: string
}

function transactionIn(receipt: string): unknown {
  const claims = Buffer.from(receipt.split('.')[1] ?? '', 'base64url').toString()
  const { transaction }: { readonly transaction?: unknown } = JSON.parse(claims)
  return transaction
}

const absence = redisAbsence()
const redis = absence === undefined ? await startRedis() : undefined
t.teardown(() => redis?.stop())

for (const store of ['lmdb', 'redis'] as const)
  t.test(
    `charges each payment of a batch once whose block was undone while no process ran: ${store}`,
    { skip: store === 'redis' && absence !== undefined ? absence : false },
    async (t) => {
      const env: Readonly<Record<string, string>> =
        store === 'redis' && redis !== undefined ? { REDIS_URL: redis.url } : {}
      const shop = await openShop(async () => env)
      t.teardown(() => shop.close())
      const sales = await sell(t, shop, { buyers: 20 })
      const before = await run<readonly Row[]>(shop, env, 'list')
      t.ok(new Set(before.map(({ transaction }) => transaction)).size < 10, 'in batches')
      await shop.restart(() => undo(t, shop))
      await until('all are charged again', async () =>
        (await chargesOf(shop, sales)).every((charges) => charges === 1),
      )
      await until('the ledger knows it', async () =>
        (await run<readonly Row[]>(shop, env, 'list')).every(({ charged }) => charged === 'yes'),
      )
      t.strictSame(new Set(await chargesOf(shop, sales)), new Set([1]))
      const { networks } = await run<{ networks: readonly object[] }>(shop, env, 'reconcile')
      t.match(networks, [{ status: 'checked', agreed: 20, differences: [] }])
    },
  )

t.test('charges each payment once whose block is undone while the server runs', async (t) => {
  const shop = await openShop()
  t.teardown(() => shop.close())
  const sales = await sell(t, shop, { buyers: 6 })
  await undo(t, shop)
  await until('all are charged again', async () =>
    (await chargesOf(shop, sales)).every((charges) => charges === 1),
  )
})

t.test('settles members of a batch again whose account nonce was used by another transaction', async (t) => {
  const env = { RECEIPT_PRIVATE_KEY: randomKey(), BASE_URL: 'https://api.example.com' }
  const shop = await openShop(async () => env)
  t.teardown(() => shop.close())
  const sales = await sell(t, shop, { buyers: 5 })
  const [, canceled] = sales
  if (canceled === undefined) return
  const rest = sales.filter((sale) => sale !== canceled)
  const before = await run<readonly Exported[]>(shop, env, 'export')
  const spent = new Set((await shop.onchain.uses()).map(({ transaction }) => transaction)).size
  await shop.restart(async () => {
    await undo(t, shop)
    await shop.onchain.cancel(canceled.key, canceled.payment.authorization.nonce)
    const account = privateKeyToAccount(shop.signerKey)
    const wallet = createWalletClient({ account, chain: base, transport: http(shop.chain.rpcUrl) })
    for (let nonce = 0; nonce < spent; nonce += 1)
      await wallet.sendTransaction({ to: account.address, nonce })
  })
  await until('the others are charged again', async () =>
    (await chargesOf(shop, rest)).every((charges) => charges === 1),
  )
  const rowOf = async (): Promise<Row | undefined> =>
    (await run<readonly Row[]>(shop, {}, 'list')).find(({ payer }) => payer === addressOf(canceled.key))
  await until('the ledger knows of the one that is not', async () => (await rowOf())?.charged === 'no')
  await until('it knows of the others', async () =>
    (await run<readonly Row[]>(shop, {}, 'list')).every(
      ({ charged, payer }) => charged === 'yes' || payer === addressOf(canceled.key),
    ),
  )
  const { payment = '' } = (await rowOf()) ?? {}
  t.match(await run(shop, {}, 'show', payment), {
    charged: 'no',
    undone: { transaction: /^0x/ },
    means: /answered.*undone by a reorganization.*not charged/s,
  })
  await shop.server.said(new RegExp(`payment ${payment} was answered, then undone by a reorganization`))
  const { networks } = await run<{ networks: readonly object[] }>(shop, {}, 'reconcile')
  t.match(networks, [{ status: 'checked', differences: [] }])
  t.strictSame(new Set(await chargesOf(shop, rest)), new Set([1]))

  await t.test(
    'and states the transaction that has charged it in the receipts of from then on',
    async (t) => {
      const now = await run<readonly Exported[]>(shop, env, 'export')
      t.equal(now.length, rest.length)
      const uses = await shop.onchain.uses()
      for (const { payment, payer, ratecard_receipt: receipt } of now) {
        const [use] = uses.filter((each) => each.payer === payer)
        t.equal(transactionIn(receipt), use?.transaction)
        const earlier = before.find((each) => each.payment === payment)?.ratecard_receipt ?? ''
        t.not(transactionIn(earlier), use?.transaction, 'that of before names the one that was undone')
      }
    },
  )
})

t.test('charges a payment again whose block is undone shortly before it expires', async (t) => {
  const shop = await openShop()
  t.teardown(() => shop.close())
  // A settlement that leaves less time counts only under blocks that are not undone.
  const seconds = LATE_SETTLEMENT_MS / 1_000 + 7
  const sales = await sell(t, shop, { buyers: 1, seconds })
  await undo(t, shop)
  await until('it is charged again', async () =>
    (await chargesOf(shop, sales)).every((charges) => charges === 1),
  )
})
