import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createLocalSettler, resume } from '../../../../src/engine/x402/exact-evm/own-settler.ts'
import {
  settlementRequestOf,
  type SettlementRequest,
} from '../../../../src/engine/x402/exact-evm/settlement-request.ts'
import { readProblem } from '../../../support/http.ts'
import { openRpcProxy } from '../../../support/rpc-proxy.ts'
import { addressOf, challengeOf, randomKey, send, sign, type Hex } from '../../../support/payment.ts'
import {
  authorize,
  BASE,
  newRecorder,
  openSettlementContext,
  openChainControl,
  recorded,
  settleOn,
  type QuickSettlementContext,
  type Signed,
} from '../../../support/settlement-context.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'
import { openShop } from '../../../support/shop.ts'

const shop = await openShop()
t.teardown(() => shop.close())
const { chain } = shop
const chainControl = openChainControl(chain)
t.afterEach(() => chainControl.automine('on'))

const sent = (): Promise<number> => chainControl.client.getTransactionCount({ address: shop.signer })
const inPool = (): Promise<number> =>
  chainControl.client.getTransactionCount({ address: shop.signer, blockTag: 'pending' })

t.test(
  'charges a wallet with money for one call once, and spends gas once, when it pays 200 times at once',
  async (t) => {
    const key = await shop.wallet(10_000n)
    const challenge = await challengeOf(`${shop.url}/paid/work`)
    const payments = await Promise.all(Array.from({ length: 200 }, () => sign(challenge, key)))
    const [before, runs] = [await sent(), shop.upstream.runs()]
    await chainControl.automine('off')
    let mining = true
    const miner = (async () => {
      while (mining) {
        await delay(300)
        await chainControl.mine()
      }
    })()
    const answers = await Promise.all(
      payments.map(({ header }, n) => send(`${shop.url}/paid/work?n=${(n % 100) + 1}`, header)),
    )
    mining = false
    await miner
    t.strictSame(answers.filter(({ status }) => status === 200).length, 1)
    for (const answer of answers.filter(({ status }) => status !== 200))
      t.match(await readProblem(answer), { code: 'invalid_exact_evm_insufficient_balance', charged: 'no' })
    t.equal((await inPool()) - before, 1, 'one transaction')
    t.equal(shop.upstream.runs() - runs, 1, 'no work for the others')
    t.equal(await shop.onchain.charges(addressOf(key)), 1)
  },
)

t.test('answers every call of a wallet that sends ten at once and has the money for ten', async (t) => {
  const key = await shop.wallet(100_000n)
  const challenge = await challengeOf(`${shop.url}/paid/work`)
  const payments = await Promise.all(Array.from({ length: 10 }, () => sign(challenge, key)))
  const answers = await Promise.all(
    payments.map(({ header }, n) => send(`${shop.url}/paid/work?n=${(n % 100) + 1}`, header)),
  )
  t.strictSame(new Set(answers.map(({ status }) => status)), new Set([200]))
  t.equal(await shop.onchain.charges(addressOf(key)), 10)
})

/** Accepts any signature (ERC-1271), or burns all gas when the condition on the stack is true. */
const acceptUnless = (condition: string): Hex => {
  const accept = '631626ba7e60e01b60005260206000f3'
  const burn = ((condition.length + accept.length) / 2 + 3).toString(16).padStart(2, '0')
  return `0x${condition}60${burn}57${accept}5b60${burn}56`
}
const WALLETS: Readonly<Record<string, Hex>> = {
  // GASPRICE
  'burns gas whenever gas has a price': acceptUnless('3a'),
  // GAS, 655360, GT
  'needs more gas than a payment gets': acceptUnless('5a620a000011'),
}
for (const [what, code] of Object.entries(WALLETS))
  t.test(`refuses a contract wallet that ${what} before it costs gas or work`, async (t) => {
    const wallet = addressOf(randomKey())
    await chain.setCode(wallet, code)
    await chain.mint(wallet, 10_000n)
    const payment = await sign(await challengeOf(`${shop.url}/paid/work`), randomKey(), { from: wallet })
    const [before, runs] = [await sent(), shop.upstream.runs()]
    const answer = await send(`${shop.url}/paid/work?n=1`, payment.header)
    t.equal(answer.status, 402)
    t.match(await readProblem(answer), {
      code: /^invalid_exact_evm_/,
      charged: 'no',
    })
    t.equal(await sent(), before)
    t.equal(shop.upstream.runs(), runs)
  })

const ledger = await openTemporaryLedger(t)
const orderFor = ({ authorization, signature, expected }: Signed): SettlementRequest =>
  settlementRequestOf(
    { network: BASE, payTo: expected.to, timeoutSeconds: 60, testnet: false },
    {
      x402Version: 2,
      accepted: {
        scheme: 'exact',
        network: BASE.id,
        amount: '10000',
        asset: '',
        payTo: '',
        maxTimeoutSeconds: 60,
      },
      payload: { signature, authorization },
    },
  )

/** The payer withdraws the authorization in the block of its settlement, before it. */
async function revert(context: QuickSettlementContext, key: Hex): Promise<void> {
  const signed = await authorize(chain, key)
  await chainControl.automine('off')
  const settling = settleOn(context, signed)
  await chainControl.cancel(signed)
  const address = addressOf(context.signerKeys[0] ?? '0x')
  const pending = { address, blockTag: 'pending' } as const
  const count = await chainControl.client.getTransactionCount({ address })
  while ((await chainControl.client.getTransactionCount(pending)) === count) await delay(5)
  await chainControl.mine()
  await chainControl.automine('on')
  t.match(await settling, { kind: 'failed' })
}

t.test('refuses a payer whose transactions have reverted twice, for an hour, in every process', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  // The clock of the process that records the losses is ahead of the other one’s.
  context.wait(2_000)
  const key = randomKey()
  await revert(context, key)
  const settler = createLocalSettler(context)
  const next = orderFor(await authorize(chain, key))
  t.equal(await settler.simulate(next), undefined, 'once may be bad luck')
  settler.release(next)
  await revert(context, key)
  const other = createLocalSettler(await openSettlementContext(chain, { ledger, owner: 'two' }))
  for (const each of [settler, other]) {
    const refusal = await each.simulate(orderFor(await authorize(chain, key)))
    t.match(refusal, { code: 'payer_suspended', detail: /nothing was charged/ })
    const { retryAfter = 0 } = refusal ?? {}
    t.ok(retryAfter > 3_000 && retryAfter <= 3_600, String(retryAfter))
  }
  t.equal(await settler.simulate(orderFor(await authorize(chain))), undefined, 'others pay as before')
  t.match(context.losses.totals, { reverts: 2, isClosed: false })
  t.ok(context.losses.totals.gasLost > 0n)
  t.match(context.reported, [/reverted and cost 0\.0000\d+ ETH/, /reverted and cost/])
  context.wait(3_600_000)
  t.equal(
    await settler.simulate(orderFor(await authorize(chain, key, { validBefore: 4_000_000_000n }))),
    undefined,
  )
})

t.test(
  'closes the network, with a loud line, when reverted transactions have cost the budget of an hour',
  async (t) => {
    const own = await openTemporaryLedger(t)
    const context = await openSettlementContext(chain, { ledger: own, limits: { maxGasLoss: 1n } })
    const settler = createLocalSettler(context)
    await revert(context, randomKey())
    const refusal = await settler.simulate(orderFor(await authorize(chain)))
    t.match(refusal, { code: 'chain_unavailable', detail: /too many transactions have failed/ })
    t.ok((refusal?.retryAfter ?? 0) > 3_000)
    t.equal(context.losses.totals.isClosed, true)
    t.match(context.reported.at(-1), /Base \(eip155:8453\): CLOSED: .*max_gas_loss/)
    context.wait(3_601_000)
    const later = orderFor(await authorize(chain, randomKey(), { validBefore: 4_000_000_000n }))
    t.equal(await settler.simulate(later), undefined)
    t.match(context.reported.at(-1), /open again/)
  },
)

t.test(
  'replaces transactions that a rising base fee leaves behind, lowest first, and charges once',
  async (t) => {
    const context = await openSettlementContext(chain, { ledger, limits: { maxFeePerGas: 20_000_000_000n } })
    await chainControl.setBaseFee(1n)
    await chainControl.automine('off')
    t.teardown(() => chainControl.setBaseFee(1n))
    const signed = [await authorizeMined(), await authorizeMined()]
    const journals = signed.map(newRecorder)
    const settling = Promise.all(signed.map((each, at) => settleOn(context, each, journals[at])))
    const address = addressOf(context.signerKeys[0] ?? '0x')
    while ((await chainControl.client.getTransactionCount({ address, blockTag: 'pending' })) < 2)
      await delay(5)
    await chainControl.setBaseFee(4n)
    t.equal(await chainControl.client.getTransactionCount({ address }), 0, 'they are not mined at this price')
    context.wait(3_000)
    while (context.reported.filter((line) => /replaced at a higher fee/.test(line)).length < 2)
      await delay(20)
    await chainControl.mine()
    await settling
    for (const [at, each] of signed.entries()) {
      // The clock of the context runs ahead: the buyer may have been told to ask again.
      const dispatch = recorded(journals[at] ?? newRecorder())
      const { expected } = each
      t.match(await resume(context, expected, dispatch, 4e12, Date.now()), { kind: 'settled' })
      t.equal(await chainControl.charges(each), 1)
    }
    t.equal(await chainControl.client.getTransactionCount({ address }), 2)
  },
)

t.test(
  'pauses sales while its lowest transaction is unmined at the highest fee, and resumes afterwards',
  async (t) => {
    const gwei = 1_000_000_000n
    const context = await openSettlementContext(chain, { ledger, limits: { maxFeePerGas: 3n * gwei } })
    const settler = createLocalSettler(context)
    await chainControl.setBaseFee(1n)
    await chainControl.automine('off')
    t.teardown(() => chainControl.setBaseFee(1n))
    const first = await authorizeMined()
    const settling = settleOn(context, first)
    while (context.signers.unmined.count === 0) await delay(5)
    await chainControl.setBaseFee(4n)
    context.wait(3_000)
    while (!context.reported.some((line) => /not mined at the highest fee/.test(line))) await delay(20)
    const refusal = await settler.simulate(orderFor(await authorizeMined()))
    t.match(refusal, { code: 'chain_unavailable', retryAfter: 10, detail: /nothing was charged/ })
    t.match(await settleOn(context, await authorizeMined()), {
      kind: 'failed',
      refusal: { code: 'chain_unavailable' },
    })
    t.ok(context.signers.unmined.age > 0)
    await chainControl.setBaseFee(1n)
    await settling
    while (context.signers.unmined.count > 0) {
      await chainControl.mine()
      await delay(50)
      context.wait(1_000)
    }
    t.equal(await settler.simulate(orderFor(await authorizeMined())), undefined)
  },
)

t.test('serves other payers while the simulation of one is slow', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const context = await openSettlementContext(chain, { ledger, url: proxy.url })
  const [slow, quick] = [await authorize(chain), await authorize(chain)]
  let release = (): void => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  proxy.instead(async (method, params) => {
    const [call] = params
    const isSlow = method === 'eth_call' && JSON.stringify(call).includes(slow.expected.nonce.slice(2))
    if (isSlow) await released
    return undefined
  })
  const [late, soon] = [settleOn(context, slow), settleOn(context, quick)]
  t.match(await soon, { kind: 'settled' }, 'while the other one is still being simulated')
  release()
  t.match(await late, { kind: 'settled' })
})

t.test(
  'sends a settled payment again when a reorganization has undone its block, and charges once',
  async (t) => {
    const context = await openSettlementContext(chain, { ledger })
    const signed = await authorize(chain, randomKey(), { validBefore: 4_000_000_000n })
    t.match(await settleOn(context, signed), { kind: 'settled' })
    await chainControl.automine('off')
    await chainControl.reorg(1)
    t.equal(await chainControl.charges(signed), 0, 'the block is gone')
    context.wait(21_000)
    while (!context.reported.some((line) => /reorganization has undone/.test(line))) await delay(20)
    await chainControl.mine()
    t.equal(await chainControl.charges(signed), 1)
    while (context.signers.unmined.count > 0) {
      context.wait(3_000)
      await delay(50)
    }
    const next = await authorizeMined()
    const settling = settleOn(context, next)
    const address = addressOf(context.signerKeys[0] ?? '0x')
    while ((await chainControl.client.getTransactionCount({ address, blockTag: 'pending' })) < 2)
      await delay(5)
    await chainControl.mine()
    await settling
    t.equal(await chainControl.charges(next), 1, 'the next payment has the nonce after it')
  },
)

/** As `authorize`, where blocks are made by hand. */
async function authorizeMined(): Promise<Signed> {
  const minted = authorize(chain, randomKey(), { validBefore: 4_000_000_000n })
  let done = false
  void minted.then(() => (done = true))
  while (!done) {
    await chainControl.mine()
    await delay(10)
  }
  return minted
}
