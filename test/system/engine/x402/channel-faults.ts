import { signVoucher } from '@x402/evm/batch-settlement/client'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { privateKeyToAccount } from 'viem/accounts'
import {
  channelClient,
  claimNow,
  contractReader,
  handmade,
  openChannelShop,
  publishedVoucher,
  send,
  shopEnvironment,
  type HandmadeChannel,
  type PublishedVoucher,
} from '../../../support/channels.ts'
import { addressOf, randomKey, readHeader, type Challenge } from '../../../support/payment.ts'
import { runProgram } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'

t.setTimeout(400_000)

const shop = await openChannelShop()
t.teardown(() => shop.close())
const contract = contractReader(shop.chain.rpcUrl)

/** A channel with money in it, through which `count` calls were bought. */
async function used(count: number, key = randomKey()) {
  await shop.chain.mint(addressOf(key), 1_000_000n)
  const channel = await handmade(shop, key)
  const first = await send(shop, '/paid/work?n=1', await channel.deposit(1000, 100_000))
  if (first.status !== 200) throw new Error(await first.text())
  for (let n = 2; n <= count; n += 1) await send(shop, `/paid/work?n=${n}`, await channel.voucher(1000 * n))
  return { ...channel, key }
}

/** What a 402 says of the channel. */
function offered(response: Response): Challenge['accepts'][number] | undefined {
  const { accepts } = readHeader(response, 'payment-required') as unknown as Challenge
  return accepts.find(({ scheme }) => scheme === 'batch-settlement')
}

t.test('answers and shows a channel to nobody but its payer', async (t) => {
  const channel = await handmade(shop, await shop.wallet(), '/paid/first')
  shop.upstream.during(() => Promise.reject(new Error('as the test says')))
  const owed = await send(shop, '/paid/first?n=7', await channel.deposit(1000, 100_000))
  t.match(await owed.json(), { charged: 'yes' })
  shop.upstream.during(async () => {})
  const key = await shop.wallet()
  const stranger = await handmade(shop, key, '/paid/first')
  const signed = await signVoucher(privateKeyToAccount(key) as never, channel.id, '1000', 'eip155:8453')
  const forged = await stranger.voucher(1000, (payload) => void (payload['voucher'] = signed))
  const refused = await send(shop, '/paid/first?n=7', forged)
  t.equal(refused.status, 402, 'the answer is owed to somebody else')
  t.notMatch(offered(refused), { extra: { channelState: {} } })
  const owner = await send(shop, '/paid/first?n=7', await channel.voucher(1000))
  t.match(await owner.json(), { n: 7 })
})

t.test('sees a withdrawal again when the node failed at the first look', async () => {
  const channel = await used(2)
  let failed = 0
  shop.node.instead(async (method) => {
    if (method !== 'eth_call') return undefined
    failed += 1
    return { error: { code: -32000, message: 'header not found' } }
  })
  await channel.call('initiateWithdraw', 100_000n)
  await until('the node has failed', () => failed > 0)
  shop.node.instead(async () => undefined)
  await until('it is claimed', async () => (await contract.channel(channel.id)).claimed === 2000n)
})

t.test('claims again what a killed process has recorded and not sent', async () => {
  const channel = await used(2)
  const killed = new Promise<void>((resolve) => {
    shop.node.onCall(async (method) => {
      if (method !== 'eth_sendRawTransaction') return
      shop.node.onCall(async () => {})
      shop.server.process.kill('SIGKILL')
      resolve()
      throw new Error('the transaction does not reach the node')
    })
  })
  await channel.call('initiateWithdraw', 100_000n)
  await killed
  await shop.restart()
  await until('it is claimed', async () => (await contract.channel(channel.id)).claimed === 2000n)
})

t.test('sells metered calls of which two cost more than a new channel may owe', async (t) => {
  const buyer = channelClient(await shop.wallet(), shop.chain.rpcUrl)
  for (const n of [200, 100, 0, 300]) {
    const response = await buyer.fetch(`${shop.url}/paid/metered?n=${n}`)
    t.equal(response.status, 200, await response.text())
    t.match(readHeader(response, 'payment-response'), { extra: { chargedAmount: String(n * 100) } })
  }
})

t.test(
  'goes on at the same price after a failed call and a lost answer, each with its own answer',
  async (t) => {
    let isLost = false
    const transport: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      // The 402 before the payment arrives; what was paid for does not.
      if (!isLost || response.status !== 200) return response
      await response.arrayBuffer()
      throw new TypeError('the answer is lost')
    }
    const buyer = channelClient(await shop.wallet(), shop.chain.rpcUrl, transport)
    for (const path of ['work', 'metered']) {
      const buy = (n: number): Promise<Response> => buyer.fetch(`${shop.url}/paid/${path}?n=${n}`)
      t.match(await (await buy(11)).json(), { n: 11 })
      shop.upstream.during(() => Promise.reject(new Error('as the test says')))
      t.match(await (await buy(12)).json(), { charged: 'no' })
      shop.upstream.during(async () => {})
      t.match(await (await buy(13)).json(), { n: 13 })
      isLost = true
      await t.rejects(buy(14))
      isLost = false
      t.match(await (await buy(15)).json(), { n: 15 })
      t.match(await (await buy(16)).json(), { n: 16 })
    }
  },
)

t.test('shows no voucher that nothing was charged for', async (t) => {
  const channel = await used(1)
  const metered = await handmade(shop, channel.key, '/paid/metered')
  const free = await send(shop, '/paid/metered?n=0', await metered.voucher(91_000))
  t.match(readHeader(free, 'payment-response'), { extra: { chargedAmount: '0' } })
  const stale = await send(shop, '/paid/work?n=9', await channel.voucher(1000))
  t.match(offered(stale), {
    extra: {
      channelState: { chargedCumulativeAmount: '1000' },
      voucherState: { signedMaxClaimable: '1000' },
    },
  })
})

/** Whether a 402 says where the channel stands. */
function isShown(response: Response): boolean {
  return ['channelState', 'voucherState'].some((name) => name in (offered(response)?.extra ?? {}))
}

/** A payment that an observer of the chain makes from a claim. */
function copyOf(
  channel: Pick<HandmadeChannel, 'id' | 'voucher'>,
  { ceiling, signature }: PublishedVoucher,
): Promise<string> {
  return channel.voucher(0, (payload) => {
    payload['voucher'] = { channelId: channel.id, maxClaimableAmount: String(ceiling), signature }
  })
}

t.test('sells nothing for a voucher that was copied from a claim', async (t) => {
  const channel = await used(2)
  t.equal((await claimNow(shop)).code, 0)
  const stranger = await handmade(shop, channel.key)
  const first = await publishedVoucher(shop.chain.rpcUrl, channel.id)
  t.equal(first.ceiling, 2000)
  const copy = await copyOf(stranger, first)
  const runs = shop.upstream.runs()
  const paths = [
    '/paid/work?n=2',
    '/paid/work?n=3',
    '/paid/other?n=2',
    '/paid/first',
    '/paid/metered',
    '/paid/counted',
  ]
  for (const path of paths) {
    const response = await send(shop, path, await copyOf(await handmade(shop, channel.key, path), first))
    t.equal(response.status, 402, path)
  }
  t.equal((await send(shop, '/paid/work?n=3', await channel.voucher(3000))).status, 200)
  t.equal((await send(shop, '/paid/work?n=2', copy)).status, 402, 'its channel has gone on')
  t.equal(shop.upstream.runs(), runs + 1, 'nothing was run but for the payer')
  t.equal((await claimNow(shop)).code, 0)
  t.equal((await contract.channel(channel.id)).claimed, 3000n)
})

t.test('shows nothing of a channel for a voucher that is put before another one', async (t) => {
  const [channel, other] = [await used(1), await used(1)]
  t.equal((await claimNow(shop)).code, 0)
  const { ceiling, signature } = await publishedVoucher(shop.chain.rpcUrl, channel.id)
  const maxClaimableAmount = String(ceiling)
  for (const channelId of [channel.id, other.id]) {
    const header = await other.voucher(0, (payload) => {
      payload['voucher'] = { channelId, maxClaimableAmount, signature }
    })
    const refused = await send(shop, '/paid/work', header)
    t.equal(refused.status, 402)
    t.notOk(isShown(refused), channelId)
  }
  const raised = await channel.voucher(0, (payload) => {
    payload['voucher'] = { channelId: channel.id, maxClaimableAmount: '2000', signature }
  })
  const refused = await send(shop, '/paid/work', raised)
  t.equal(refused.status, 402, 'it is signed for another ceiling')
  t.notOk(isShown(refused))
})

t.test('charges a copied voucher at most what its payer has signed, once', async (t) => {
  const channel = await used(1)
  const metered = await handmade(shop, channel.key, '/paid/metered')
  // It is signed for 91,000, of which 90,000 are charged.
  t.equal((await send(shop, '/paid/metered?n=890', await metered.voucher(91_000))).status, 200)
  await until('it is claimed', async () => {
    await claimNow(shop)
    return (await contract.channel(channel.id)).claimed === 90_000n
  })
  const copied = await publishedVoucher(shop.chain.rpcUrl, channel.id)
  t.equal(copied.ceiling, 91_000)
  const copy = await copyOf(channel, copied)
  const dear = await copyOf(metered, copied)
  t.equal((await send(shop, '/paid/metered?n=1', dear)).status, 402, 'it is signed for less than that')
  const runs = shop.upstream.runs()
  const codes: number[] = []
  for (const n of [5, 6, 7]) codes.push((await send(shop, `/paid/work?n=${n}`, copy)).status)
  t.strictSame(codes, [200, 402, 402])
  t.equal(shop.upstream.runs(), runs + 1)
  const next = await send(shop, '/paid/work?n=8', await channel.voucher(92_000))
  t.equal(next.status, 200, 'the channel goes on')
  t.equal((await claimNow(shop)).code, 0)
  t.equal((await contract.channel(channel.id)).claimed, 92_000n)
})

t.test('sells no copied voucher that was signed for more, once its channel has gone on', async (t) => {
  const channel = await used(1)
  const counted = await handmade(shop, channel.key, '/paid/counted')
  // It is signed for 6,000, of which 5,000 are charged.
  t.equal((await send(shop, '/paid/counted?n=400', await counted.voucher(6000))).status, 200)
  t.equal((await claimNow(shop)).code, 0)
  const copied = await publishedVoucher(shop.chain.rpcUrl, channel.id)
  t.equal(copied.ceiling, 6000)
  // The payer signs the same bytes for this call.
  t.equal((await send(shop, '/paid/work?n=2', await channel.voucher(6000))).status, 200)
  const runs = shop.upstream.runs()
  t.equal((await send(shop, '/paid/work?n=3', await copyOf(channel, copied))).status, 402)
  t.equal(shop.upstream.runs(), runs)
})

t.test('does not send a claim for what a withdrawal leaves in the channel', async (t) => {
  const channel = await used(1)
  const before = shop.node.calls().length
  const seen = (method: string): number =>
    shop.node
      .calls()
      .slice(before)
      .filter((each) => each === method).length
  await channel.call('initiateWithdraw', 1n)
  await until('the chain was watched twice', () => seen('eth_getLogs') > 1)
  t.equal((await contract.channel(channel.id)).claimed, 0n)
  t.equal((await send(shop, '/paid/work?n=2', await channel.voucher(2000))).status, 200)
})

t.test('goes on where the chain is, after a backup that is older', async (t) => {
  const channel = await used(3)
  const file = join(t.testdir(), 'backup')
  const run = (command: 'backup' | 'restore') =>
    runProgram(['ledger', command, file, '--data-dir', shop.server.dataDir], shopEnvironment(shop))
  t.equal((await run('backup')).code, 0)
  for (const n of [4, 5]) await send(shop, `/paid/work?n=${n}`, await channel.voucher(1000 * n))
  t.equal((await claimNow(shop)).code, 0)
  await shop.restart(async () => {
    rmSync(shop.server.dataDir, { recursive: true })
    mkdirSync(shop.server.dataDir)
    const restored = await run('restore')
    t.equal(restored.code, 0, restored.stderr)
  })
  const buyer = channelClient(channel.key, shop.chain.rpcUrl)
  const response = await buyer.fetch(`${shop.url}/paid/work?n=6`)
  t.equal(response.status, 200, await response.text())
  t.equal((await claimNow(shop)).code, 0)
  t.equal((await contract.channel(channel.id)).claimed, 6000n)
})

t.test('pays out to the earlier payee what is claimed of its channels', async (t) => {
  const channel = await used(2)
  t.equal((await claimNow(shop)).code, 0)
  const before = await shop.chain.balance(shop.payTo)
  t.equal((await send(shop, '/paid/work?n=3', await channel.voucher(3000))).status, 200)
  t.equal((await claimNow(shop, { PAY_TO: addressOf(randomKey()) })).code, 0)
  t.equal(await shop.chain.balance(shop.payTo), before + 1000n)
})
