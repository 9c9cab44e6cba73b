import t from 'tap'
import {
  channelClient,
  contractReader,
  fundByStranger,
  handmade,
  openChannelShop,
  send,
} from '../../../support/channels.ts'
import { at } from '../../../support/documents.ts'
import { depositNonce } from '../../../../src/engine/x402/batch-settlement-evm/typed-data.ts'
import { addressOf, randomKey, readHeader, type Challenge, type Hex } from '../../../support/payment.ts'

t.setTimeout(240_000)

const shop = await openChannelShop()
t.teardown(() => shop.close())
const contract = contractReader(shop.chain.rpcUrl)
const MISMATCH = 'invalid_batch_settlement_evm_cumulative_amount_mismatch'

/** What the watch of withdrawals and deposits asks a node, however many calls there are. */
const WATCH = [
  'eth_getTransactionReceipt',
  'eth_chainId',
  'eth_blockNumber',
  'eth_getBlockByNumber',
  'eth_getLogs',
]

const challenge = (response: Response): Challenge =>
  readHeader(response, 'payment-required') as unknown as Challenge

/** What a corrective 402 says of a channel. */
function correction(response: Response): Record<string, unknown> {
  const { error, accepts } = challenge(response)
  const offer = accepts.find(({ scheme }) => scheme === 'batch-settlement')
  return { error, ...offer?.extra }
}

t.test('sells by a deposit, and then by vouchers without asking a node', async (t) => {
  const buyer = channelClient(await shop.wallet(), shop.chain.rpcUrl)
  const first = await buyer.fetch(`${shop.url}/paid/work?n=1`)
  t.equal(first.status, 200, await first.text())
  const receipt = readHeader(first, 'payment-response')
  t.match(receipt, { success: true, transaction: /^0x/, amount: '100000' })
  t.match(receipt, { extra: { chargedAmount: '1000', channelState: { chargedCumulativeAmount: '1000' } } })
  const before = shop.node.calls().length
  for (let n = 2; n <= 20; n += 1) {
    const response = await buyer.fetch(`${shop.url}/paid/work?n=${n}`)
    t.equal(response.status, 200)
    t.match(await response.json(), { n })
    const { transaction, amount } = readHeader(response, 'payment-response')
    t.strictSame({ transaction, amount }, { transaction: '', amount: '' })
  }
  const asked = shop.node
    .calls()
    .slice(before)
    .filter((method) => !WATCH.includes(method))
  // The first look of the watch reads the channel once, by three calls.
  t.ok(asked.length <= 3 && asked.every((method) => method === 'eth_call'), asked.join())
})

t.test('sells work that is charged before it is begun', async (t) => {
  const buyer = channelClient(await shop.wallet(), shop.chain.rpcUrl)
  for (const n of [1, 2]) {
    const response = await buyer.fetch(`${shop.url}/paid/first?n=${n}`)
    t.equal(response.status, 200, await response.text())
  }
})

t.test('does the work that is owed for the next voucher for the same call, uncharged', async (t) => {
  const buyer = channelClient(await shop.wallet(), shop.chain.rpcUrl)
  const url = `${shop.url}/paid/first?n=7`
  const charged = (response: Response) =>
    at(readHeader(response, 'payment-response'), 'extra', 'channelState')
  t.equal((await buyer.fetch(`${shop.url}/paid/first?n=6`)).status, 200)
  shop.upstream.during(() => Promise.reject(new Error('as the test says')))
  t.match(await (await buyer.fetch(url)).json(), { charged: 'yes' })
  shop.upstream.during(async () => {})
  const again = await buyer.fetch(url)
  t.match(await again.json(), { n: 7 })
  t.match(charged(again), { chargedCumulativeAmount: '2000' }, 'for the first of the two payments')
  const next = await buyer.fetch(`${shop.url}/paid/first?n=8`)
  t.match(await next.json(), { n: 8 })
  t.match(charged(next), { chargedCumulativeAmount: '3000' })
})

t.test('sells a POST once whose charged work has failed, when its client pays again', async (t) => {
  const buyer = channelClient(await shop.wallet(), shop.chain.rpcUrl)
  const order = (n: number): Promise<Response> =>
    buyer.fetch(`${shop.url}/paid/ordered?n=${n}`, { method: 'POST' })
  const charged = (response: Response) =>
    at(readHeader(response, 'payment-response'), 'extra', 'channelState')
  t.equal((await order(6)).status, 200)
  shop.upstream.during(() => Promise.reject(new Error('as the test says')))
  const failed = await order(7)
  t.match(await failed.json(), { charged: 'yes' })
  t.equal(failed.headers.get('payment-response'), null, 'the client signs the same voucher again')
  shop.upstream.during(async () => {})
  const again = await order(7)
  t.match(await again.json(), { n: 7 })
  t.match(charged(again), { chargedCumulativeAmount: '2000' })
  const next = await order(8)
  t.match(await next.json(), { n: 8 })
  t.match(charged(next), { chargedCumulativeAmount: '3000' })
})

t.test('sells another call after a POST whose charged work has failed', async (t) => {
  const buyer = channelClient(await shop.wallet(), shop.chain.rpcUrl)
  t.equal((await buyer.fetch(`${shop.url}/paid/ordered?n=6`, { method: 'POST' })).status, 200)
  shop.upstream.during(() => Promise.reject(new Error('as the test says')))
  const failed = await buyer.fetch(`${shop.url}/paid/ordered?n=7`, { method: 'POST' })
  t.match(await failed.json(), { charged: 'yes' })
  shop.upstream.during(async () => {})
  const other = await buyer.fetch(`${shop.url}/paid/work?n=8`)
  t.match(await other.json(), { n: 8 })
  const state = at(readHeader(other, 'payment-response'), 'extra', 'channelState')
  t.match(state, { chargedCumulativeAmount: '3000' }, 'a correction tells the client what was charged')
})

t.test('takes another voucher for a call whose money goes back', async (t) => {
  const key = await shop.wallet()
  const opened = await handmade(shop, key)
  t.equal((await send(shop, '/paid/work?n=1', await opened.deposit(1000, 100_000))).status, 200)
  const path = '/paid/missing'
  const voucher = await (await handmade(shop, key, path)).voucher(2000)
  const failed = await send(shop, path, voucher)
  t.match(await failed.json(), { charged: 'yes', refund: 'due' })
  const state = at(readHeader(failed, 'payment-response'), 'extra', 'channelState')
  t.match(state, { chargedCumulativeAmount: '2000' }, 'the client goes on with the next voucher')
  const again = await send(shop, path, voucher)
  t.equal(again.status, 402, 'one that has not heard of it is corrected')
  t.match(correction(again), { error: MISMATCH, channelState: { chargedCumulativeAmount: '2000' } })
})

t.test('tells of a deposit whose call has failed, so that its client makes no other', async (t) => {
  const key = await shop.wallet()
  const buyer = channelClient(key, shop.chain.rpcUrl)
  shop.upstream.during(() => Promise.reject(new Error('as the test says')))
  const failed = await buyer.fetch(`${shop.url}/paid/ordered?n=1`, { method: 'POST' })
  t.match(await failed.json(), { charged: 'yes' })
  t.match(readHeader(failed, 'payment-response'), { transaction: /^0x/, amount: '100000' })
  shop.upstream.during(async () => {})
  const other = await buyer.fetch(`${shop.url}/paid/work?n=2`)
  t.match(await other.json(), { n: 2 })
  const state = at(readHeader(other, 'payment-response'), 'extra', 'channelState')
  t.match(state, { balance: '100000', chargedCumulativeAmount: '2000' })
})

t.test('charges metered work what it has used, and at most its ceiling', async (t) => {
  const buyer = channelClient(await shop.wallet(), shop.chain.rpcUrl)
  let sum = 0
  for (const [n, charged] of [
    [7, 70],
    [900, 5000],
    [3, 30],
  ] as const) {
    const response = await buyer.fetch(`${shop.url}/paid/counted?n=${n}`)
    t.equal(response.status, 200, await response.text())
    sum += charged
    const extra = { chargedAmount: `${charged}`, channelState: { chargedCumulativeAmount: `${sum}` } }
    t.match(readHeader(response, 'payment-response'), { extra })
  }
})

t.test('charges one call for a voucher, and answers copies of it alike', async (t) => {
  const key = await shop.wallet()
  const channel = await handmade(shop, key)
  const header = await channel.deposit(1000, 100_000)
  const runs = shop.upstream.runs()
  const copies = await Promise.all(Array.from({ length: 20 }, () => send(shop, '/paid/work?n=7', header)))
  const answers = new Set(await Promise.all(copies.map((response) => response.text())))
  t.strictSame([...new Set(copies.map(({ status }) => status))], [200])
  t.equal(answers.size, 1)
  t.equal(shop.upstream.runs() - runs, 1)
  t.equal((await contract.channel(channel.id)).balance, 100_000n)
})

t.test('takes the same voucher for another call after one that has failed', async (t) => {
  const key = await shop.wallet()
  const channel = await handmade(shop, key)
  t.equal((await send(shop, '/paid/work?n=1', await channel.deposit(1000, 100_000))).status, 200)
  shop.upstream.during(() => Promise.reject(new Error('as the test says')))
  const voucher = await channel.voucher(2000)
  const failed = await send(shop, '/paid/work?n=2', voucher)
  t.match(await failed.json(), { charged: 'no' })
  shop.upstream.during(async () => {})
  const other = await send(shop, '/paid/work?n=3', voucher)
  t.equal(other.status, 200)
  t.match(await other.json(), { n: 3 })
  const stale = await send(shop, '/paid/work?n=4', voucher)
  t.equal(stale.status, 402, 'its ceiling is used up')
  t.equal(stale.headers.get('payment-response'), null)
  t.match(correction(stale), {
    error: MISMATCH,
    channelState: { chargedCumulativeAmount: '2000', totalClaimed: '0' },
    voucherState: { signedMaxClaimable: '2000' },
  })
})

t.test('recovers a client of the SDK that has lost its state', async (t) => {
  const key = await shop.wallet()
  for (const n of [1, 2, 3]) {
    // Each of them begins without a memory, and with a node of its own.
    const response = await channelClient(key, shop.chain.rpcUrl).fetch(`${shop.url}/paid/work?n=${n}`)
    t.equal(response.status, 200, await response.text())
  }
})

t.test('refuses signatures that the contract cannot read, uncharged', async (t) => {
  const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const key = await shop.wallet()
  const channel = await handmade(shop, key)
  t.equal((await send(shop, '/paid/work', await channel.deposit(1000, 100_000))).status, 200)
  const change = (bend: (signature: string) => string) => (payload: Record<string, unknown>) => {
    const voucher = payload['voucher'] as { signature: string }
    payload['voucher'] = { ...voucher, signature: bend(voucher.signature) }
  }
  const bent: Record<string, (signature: string) => string> = {
    'v of 0 or 1': (signature) => signature.slice(0, 130) + (signature.endsWith('1b') ? '00' : '01'),
    'the larger s': (signature) => {
      const s = ORDER - BigInt(`0x${signature.slice(66, 130)}`)
      const v = signature.endsWith('1b') ? '1c' : '1b'
      return signature.slice(0, 66) + s.toString(16).padStart(64, '0') + v
    },
    '64 bytes': (signature) => signature.slice(0, 130),
    'another key': () => `0x${'11'.repeat(64)}1b`,
  }
  const runs = shop.upstream.runs()
  for (const [name, bend] of Object.entries(bent)) {
    const response = await send(shop, '/paid/work?n=2', await channel.voucher(2000, change(bend)))
    t.equal(response.status, 402, name)
    t.match(challenge(response), { error: 'invalid_batch_settlement_evm_voucher_signature' }, name)
    t.notMatch(correction(response), { channelState: {} }, 'its state is shown to its payer alone')
  }
  t.equal(shop.upstream.runs(), runs)
  t.equal((await send(shop, '/paid/work?n=2', await channel.voucher(2000))).status, 200)
})

t.test('refuses channels that it could not claim from, uncharged', async (t) => {
  const key = await shop.wallet()
  const refusals: [string, Parameters<typeof handmade>[3]][] = [
    ['voucher_signature', { payerAuthorizer: `0x${'0'.repeat(40)}` }],
    ['receiver_mismatch', { receiver: addressOf(randomKey()) } as never],
    ['receiver_mismatch', { receiverAuthorizer: addressOf(randomKey()) } as never],
    ['token_mismatch', { token: addressOf(randomKey()) } as never],
    ['withdraw_delay_mismatch', { withdrawDelay: 901 } as never],
  ]
  for (const [code, changes] of refusals) {
    const channel = await handmade(shop, key, '/paid/work', changes)
    const response = await send(shop, '/paid/work', await channel.deposit(1000, 100_000))
    t.match(challenge(response), { error: `invalid_batch_settlement_evm_${code}` })
  }
  const channel = await handmade(shop, key)
  const small = await send(shop, '/paid/work', await channel.deposit(1000, 99_999))
  t.match(challenge(small), { error: 'invalid_batch_settlement_evm_deposit_below_min_deposit' })
  const poor = await handmade(shop, await shop.wallet(50_000n))
  const unfunded = await send(shop, '/paid/work', await poor.deposit(1000, 100_000))
  t.match(challenge(unfunded), { error: 'invalid_batch_settlement_evm_insufficient_balance' })
  t.equal((await contract.channel(channel.id)).balance, 0n)
})

t.test('does no work for a deposit that its payer has canceled', async (t) => {
  const key = await shop.wallet()
  const channel = await handmade(shop, key)
  const header = await channel.deposit(1000, 100_000)
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString())
  const { salt } = payload.deposit.authorization.erc3009Authorization
  await shop.onchain.cancel(key, depositNonce(channel.id, salt))
  const runs = shop.upstream.runs()
  const refused = await send(shop, '/paid/work', header)
  t.match(correction(refused), { error: MISMATCH, channelState: { balance: '0' } })
  t.equal(shop.upstream.runs(), runs)
})

t.test('does not take somebody for the payer whose channel he has funded', async (t) => {
  const victim = addressOf(await shop.wallet())
  const key = await shop.wallet()
  const channel = await handmade(shop, key, '/paid/work', { payer: victim, payerAuthorizer: addressOf(key) })
  await fundByStranger(shop, channel.config, 100_000n)
  const response = await send(shop, '/paid/work?n=3', await channel.voucher(1000))
  t.equal(response.status, 200)
  t.match(await response.json(), { payer: addressOf(key) })
})

t.test('takes no second deposit for a call that is paid for, and gives its answer', async (t) => {
  const channel = await handmade(shop, await shop.wallet(), '/paid/first')
  shop.upstream.during(() => Promise.reject(new Error('as the test says')))
  const owed = await send(shop, '/paid/first?n=5', await channel.deposit(1000, 100_000))
  t.match(await owed.json(), { charged: 'yes' })
  shop.upstream.during(async () => {})
  // Its salt is another one.
  const answered = await send(shop, '/paid/first?n=5', await channel.deposit(1000, 100_000))
  t.match(await answered.json(), { n: 5 })
  t.equal((await contract.channel(channel.id)).balance, 100_000n)
})

t.test('has a client of the SDK add a deposit to a channel that holds less than it knew', async (t) => {
  const key = await shop.wallet()
  const buyer = channelClient(key, shop.chain.rpcUrl)
  t.equal((await buyer.fetch(`${shop.url}/paid/work?n=1`)).status, 200)
  const channel = await handmade(shop, key)
  t.equal((await send(shop, '/paid/work', await channel.refund(1000))).status, 200)
  const response = await buyer.fetch(`${shop.url}/paid/work?n=2`)
  t.equal(response.status, 200, response.statusText)
  t.match(await response.json(), { n: 2 })
  t.equal((await contract.channel(channel.id)).balance, 101_000n)
})

t.test('pays for five refunds of a payer in a day', async (t) => {
  const channel = await handmade(shop, await shop.wallet())
  const codes: string[] = []
  for (let n = 1; n <= 6; n += 1) {
    const bought = await send(shop, `/paid/work?n=${n}`, await channel.deposit(1000 * n, 100_000))
    t.equal(bought.status, 200)
    await bought.arrayBuffer()
    const refunded = await send(shop, '/paid/work', await channel.refund(1000 * n))
    const { code = 'refunded' } = (await refunded.json()) as { code?: string }
    codes.push(code)
  }
  t.strictSame(codes, [...Array.from({ length: 5 }, () => 'refunded'), 'payer_limit_reached'])
  t.strictSame(await contract.channel(channel.id), { balance: 105_000n, claimed: 5000n })
})

t.test('sells nothing on an empty channel, and tells the payer to add a deposit', async (t) => {
  const key = await shop.wallet()
  const channel = await handmade(shop, key)
  const nothing = await send(shop, '/paid/work', await channel.voucher(1000))
  t.match(correction(nothing), { error: MISMATCH, channelState: { balance: '0' } })
  const foreign: Hex = `0x${'ab'.repeat(32)}`
  const other = await handmade(shop, key, '/paid/work', { salt: foreign })
  const unknown = await send(shop, '/paid/work', await other.voucher(1000))
  t.match(correction(unknown), { error: MISMATCH, channelState: { channelId: other.id, totalClaimed: '0' } })
})
