import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { readProblem } from '../../../support/http.ts'
import { callTool } from '../../../support/mcp.ts'
import {
  addressOf,
  challengeOf,
  randomKey,
  readHeader,
  send,
  type Challenge,
  type Hex,
} from '../../../support/payment.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { askNode } from '../../../support/rpc-proxy.ts'
import { runProgram } from '../../../support/server.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { signPermit, uptoFetch } from '../../../support/upto.ts'
import { until } from '../../../support/until.ts'

const CATALOG = fileURLToPath(new URL('../../../fixtures/payments/upto.yaml', import.meta.url))
const MUCH = 2n ** 255n

const absence = redisAbsence()
const redis = absence === undefined ? await startRedis() : undefined
t.teardown(() => redis?.stop())

async function wallet(shop: Shop): Promise<Hex> {
  const key = await shop.wallet()
  await shop.onchain.approvePermit2(addressOf(key), MUCH)
  return key
}

async function statementOf(t: Test, shop: Shop, env: Readonly<Record<string, string>>): Promise<unknown> {
  const { server, node, payTo } = shop
  const ran = await runProgram(['payments', 'reconcile', '--json', '--data-dir', server.dataDir], {
    PAY_TO: payTo,
    RPC_URL_8453: node.url,
    ...env,
  })
  t.equal(ran.code, 0, ran.stderr)
  return JSON.parse(ran.stdout)
}

for (const store of ['lmdb', 'redis'] as const)
  t.test(
    `charges payments by upto once, and finds them on the chain: ${store}`,
    {
      skip: store === 'redis' && absence !== undefined ? absence : false,
    },
    async (t) => {
      const env: Readonly<Record<string, string>> =
        store === 'redis' && redis !== undefined ? { REDIS_URL: redis.url } : {}
      const shop = await openShop(async () => ({ CATALOG, ...env }))
      t.teardown(() => shop.close())
      const received = async (): Promise<number> => (await shop.onchain.received(shop.payTo)).length

      await t.test('copies of one payment at two processes', async (t) => {
        const other = await shop.branch()
        const key = await wallet(shop)
        const { header } = await signPermit(await challengeOf(`${shop.url}/paid/work`), key)
        const bodies = await Promise.all(
          Array.from({ length: 20 }, async (_, place) => {
            const url = place % 2 === 0 ? shop.url : other.url
            for (;;) {
              const answer = await send(`${url}/paid/work?n=3`, header)
              if (answer.status !== 503) return `${answer.status} ${await answer.text()}`
              await delay(200)
            }
          }),
        )
        t.equal(new Set(bodies).size, 1)
        t.match(bodies[0], /^200 /)
        t.equal(await received(), 1)
        await other.stop()
      })

      await t.test('a tool', async (t) => {
        const url = `${shop.url}/mcp/tools`
        const asked = await callTool(url, 'work', { n: 4 })
        const payment = await signPermit(asked.content as unknown as Challenge, await wallet(shop))
        const bought = await callTool(url, 'work', { n: 4 }, { meta: { 'x402/payment': payment.payload } })
        t.equal(bought.isError, false)
        t.match(bought.meta['x402/payment-response'], { success: true, amount: '10000' })
        t.equal(await received(), 2)
      })

      await t.test('a payment whose process is killed, with the approval in it', async (t) => {
        const key = await shop.wallet()
        const challenge = await challengeOf(`${shop.url}/paid/work`)
        const { header } = await signPermit(challenge, key, { approval: { nonce: 0n } })
        await shop.onchain.setMining('manual')
        const lost = send(`${shop.url}/paid/work?n=5`, header).then(
          () => 'answered',
          () => 'lost',
        )
        await until('the node has its transaction', async () => {
          const { result } = await askNode(shop.chain.rpcUrl, 'txpool_status', [])
          return Number((result as { readonly pending: string }).pending) > 0
        })
        await shop.restart(async () => {
          await shop.onchain.mine()
          await shop.onchain.setMining('automatic')
        })
        t.equal(await lost, 'lost')
        for (;;) {
          const answer = await send(`${shop.url}/paid/work?n=5`, header)
          await answer.text()
          if (answer.status !== 503) {
            t.equal(answer.status, 200)
            break
          }
          await delay(500)
        }
        t.equal(await received(), 3)
      })

      await t.test('a payment whose block is undone while the server runs', async (t) => {
        t.equal((await uptoFetch(await wallet(shop))(`${shop.url}/paid/work?n=6`)).status, 200)
        t.equal(await received(), 4)
        await shop.onchain.undo(1)
        await until('it is charged again', async () => (await received()) === 4)
      })

      await t.test('payments that name the account of another process', async (t) => {
        const before = await received()
        const otherKey = randomKey()
        const account = addressOf(otherKey)
        await shop.chain.setGas(account, 10n ** 18n)
        const other = await shop.branch({ SETTLER_PRIVATE_KEY: otherKey })
        let third = other
        const signed = async (): Promise<string> =>
          (await signPermit(await challengeOf(`${other.url}/paid/work`), await wallet(shop))).header
        await t.test('are answered by any process, and settled by its own', async (t) => {
          const runs = shop.upstream.runs()
          const answer = await send(`${shop.url}/paid/work?n=7`, await signed())
          t.equal(answer.status, 200)
          const { transaction } = readHeader(answer, 'payment-response')
          const { result } = await askNode(shop.chain.rpcUrl, 'eth_getTransactionByHash', [transaction])
          t.equal((result as { readonly from: string }).from, account.toLowerCase())
          t.equal(shop.upstream.runs(), runs + 1)
          t.equal(await received(), before + 1)
        })

        await t.test('are charged once for copies at both', async (t) => {
          const header = await signed()
          const bodies = await Promise.all(
            Array.from({ length: 10 }, async (_, place) => {
              const url = place % 2 === 0 ? shop.url : other.url
              for (;;) {
                const answer = await send(`${url}/paid/work?n=8`, header)
                if (answer.status !== 503) return `${answer.status} ${await answer.text()}`
                await delay(200)
              }
            }),
          )
          t.equal(new Set(bodies).size, 1)
          t.match(bodies[0], /^200 /)
          t.equal(await received(), before + 2)
        })

        await t.test('are refused uncharged when the payer has left too little meanwhile', async (t) => {
          const key = await wallet(shop)
          const { header } = await signPermit(await challengeOf(`${other.url}/paid/work`), key)
          shop.upstream.during(() => shop.onchain.approvePermit2(addressOf(key), 0n))
          const answer = await send(`${shop.url}/paid/work?n=9`, header)
          shop.upstream.during(async () => {})
          t.equal(answer.status, 402)
          t.match(await readProblem(answer), { code: 'settlement_failed', charged: 'no' })
          t.equal(await received(), before + 2)
        })

        await t.test('are refused uncharged, before any work, once no process has the key', async (t) => {
          const runs = shop.upstream.runs()
          const header = await signed()
          await other.stop()
          const answer = await send(`${shop.url}/paid/work?n=10`, header)
          t.equal(answer.status, 402)
          t.match(await readProblem(answer), { code: 'upto_facilitator_mismatch', charged: 'no' })
          t.match(readHeader(answer, 'payment-required'), {
            accepts: [{ scheme: 'upto', extra: { facilitatorAddress: shop.signer } }, {}],
          })
          t.equal(shop.upstream.runs(), runs)
          t.equal(await received(), before + 2)
          await until('the operator is told', () =>
            shop.server.output().includes(`name ${account}, which no`),
          )
        })

        await t.test('are settled when their process is killed and starts again', async (t) => {
          const again = await shop.branch({ SETTLER_PRIVATE_KEY: otherKey })
          const challenge = await challengeOf(`${again.url}/paid/work`)
          const first = await signPermit(challenge, await wallet(shop))
          t.equal((await send(`${shop.url}/paid/work?n=11`, first.header)).status, 200)
          const { header } = await signPermit(challenge, await wallet(shop))
          shop.upstream.during(() => again.kill())
          const answer = send(`${shop.url}/paid/work?n=12`, header)
          await again.ended
          shop.upstream.during(async () => {})
          third = await shop.branch({ SETTLER_PRIVATE_KEY: otherKey })
          t.equal((await answer).status, 200)
          t.equal(await received(), before + 4)
        })

        await t.test('are charged once when both processes are killed after the hand-over', async (t) => {
          const challenge = await challengeOf(`${third.url}/paid/work`)
          const { header } = await signPermit(challenge, await wallet(shop))
          await third.kill()
          const lost = send(`${shop.url}/paid/work?n=13`, header).then(
            () => 'answered',
            () => 'lost',
          )
          const { dataDir } = shop.server
          await until('it is handed over', async () => {
            const list = ['payments', 'list', '--state', 'settling', '--json', '--data-dir', dataDir]
            return /"settling"/.test((await runProgram(list, env)).stdout)
          })
          await shop.restart(async () => {
            await shop.branch({ SETTLER_PRIVATE_KEY: otherKey })
          })
          t.equal(await lost, 'lost')
          await until('it is answered', async () => {
            const answer = await send(`${shop.url}/paid/work?n=13`, header)
            await answer.text()
            return answer.status === 200
          })
          t.equal(await received(), before + 5)
        })
      })

      await t.test('and each is found under its name', async (t) => {
        await until('the ledger agrees with the chain', async () => {
          const { networks } = (await statementOf(t, shop, env)) as {
            readonly networks: readonly {
              readonly agreed: number
              readonly transfers: object
              readonly differences: readonly object[]
            }[]
          }
          const [base] = networks
          return base?.agreed === 9 && base.differences.length === 0
        })
      })
    },
  )
