import t, { type Test } from 'tap'
import { encodeFunctionData, parseAbi } from 'viem'
import { findTransfer } from '../../../../src/engine/protocols/x402/onchain-status.ts'
import { resume } from '../../../../src/engine/protocols/x402/settlement.ts'
import { startBase, witness } from '../../../support/base-chain.ts'
import { openNodeProxy, type NodeProxy } from '../../../support/node-proxy.ts'
import { addressOf, randomKey } from '../../../support/payment.ts'
import {
  authorize,
  newRecorder,
  openBench,
  openLedger,
  openMischief,
  recorded,
  settleOn,
  type QuickBench,
  type Recorder,
  type Signed,
} from '../../../support/settling.ts'
import { PAY_TO } from '../../../support/x402.ts'

const chain = await startBase()
t.teardown(() => chain.stop())
const ledger = await openLedger(t)
const mischief = openMischief(chain)
const onlooker = witness(chain)
t.afterEach(() => mischief.automine('on'))

const FAILED = { kind: 'failed', refusal: { code: 'settlement_failed' } }

/** A bench whose node a test can spoil. */
async function openSpoilt(t: Test): Promise<{ readonly bench: QuickBench; readonly proxy: NodeProxy }> {
  const proxy = await openNodeProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  return { proxy, bench: await openBench(chain, { ledger, url: proxy.url }) }
}

/** Does something when the outcome is asked for, again and again: the first, the second time… */
function atPolls(proxy: NodeProxy, events: readonly (() => Promise<unknown>)[]): void {
  let polls = 0
  proxy.onCall(async (method) => {
    if (method !== 'eth_getTransactionReceipt') return
    polls += 1
    await events[polls - 1]?.()
  })
}

const sentOver = (proxy: NodeProxy): number =>
  proxy.calls().filter((method) => method === 'eth_sendRawTransaction').length

const recordingAfter = (event: () => Promise<unknown>): Recorder => {
  const recorder = newRecorder()
  return {
    ...recorder,
    record: async (dispatch) => {
      await event()
      await recorder.record(dispatch)
    },
  }
}

t.test('names the transaction that has moved the money in the receipt', async (t) => {
  const bench = await openBench(chain, { ledger })
  const signed = await authorize(chain)
  const journal = newRecorder()
  const settlement = await settleOn(bench, signed, journal)
  const { hash } = recorded(journal)
  const receipt = { transaction: hash, network: 'eip155:8453', payer: signed.expected.from, amount: '10000' }
  t.strictSame(settlement, { kind: 'settled', receipt })
  t.equal(await mischief.charges(signed), 1)
})

t.test('refuses a buyer whose money goes while the payment waits, before it costs gas', async (t) => {
  const bench = await openBench(chain, { ledger })
  const [first, second] = [await authorize(chain), await authorize(chain)]
  const { from } = second.expected
  const emptying = recordingAfter(() => onlooker.drain(from, addressOf(randomKey()), 10_000n))
  const journal = newRecorder()
  const settlements = await Promise.all([settleOn(bench, first, emptying), settleOn(bench, second, journal)])
  t.match(settlements, [
    { kind: 'settled' },
    { kind: 'failed', refusal: { code: 'invalid_exact_evm_insufficient_balance' } },
  ])
  t.strictSame(journal.dispatches, [], 'nothing was even signed')
  t.equal(await mischief.charges(second), 0)
})

t.test('leaves a payment unsent whose time is nearly over when its turn comes', async (t) => {
  const bench = await openBench(chain, { ledger })
  const soon = BigInt(Math.floor(Date.now() / 1000) + 20)
  const [first, second] = [await authorize(chain), await authorize(chain, randomKey(), { validBefore: soon })]
  const journal = newRecorder()
  const settlements = await Promise.all([
    settleOn(
      bench,
      first,
      recordingAfter(async () => bench.wait(18_000)),
    ),
    settleOn(bench, second, journal),
  ])
  t.match(settlements, [{ kind: 'settled' }, { kind: 'failed', refusal: { code: 'deadline_too_short' } }])
  t.strictSame(journal.dispatches, [])
  t.equal(await mischief.charges(second), 0)
})

t.test('keeps a payment waiting while the network asks for more than the operator allows', async (t) => {
  const gwei = 1_000_000_000n
  await mischief.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 5n * gwei })
  await mischief.mine()
  t.teardown(() => mischief.client.setNextBlockBaseFeePerGas({ baseFeePerGas: gwei }))
  const signed = await authorize(chain)
  const journal = newRecorder()
  const dear = await settleOn(await openBench(chain, { ledger }), signed, journal)
  t.match(dear, { kind: 'failed', refusal: { code: 'chain_unavailable', detail: /fees/ } })
  t.strictSame(journal.dispatches, [])
  t.equal(await mischief.charges(signed), 0)
  const generous = await openBench(chain, { ledger, limits: { maxFeePerGas: 7n * gwei } })
  t.match(await settleOn(generous, signed, journal), { kind: 'settled' })
  const { maxFeePerGas } = await mischief.client.getTransaction({ hash: hexOf(recorded(journal).hash) })
  t.equal(maxFeePerGas, 7n * gwei, 'all that is allowed, where twice the base fee would be more')
})

t.test('counts a payment under three blocks when three are required', async (t) => {
  const proxy = await openNodeProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const bench = await openBench(chain, { ledger, url: proxy.url, limits: { confirmations: 3 } })
  const signed = await authorize(chain)
  await mischief.automine('off')
  const journal = newRecorder()
  atPolls(proxy, [mischief.mine])
  const shallow = await settleOn(bench, signed, journal)
  t.match(shallow, { kind: 'unknown' })
  t.equal(await mischief.charges(signed), 1)
  const block = await mischief.newest()
  atPolls(proxy, [mischief.mine, mischief.mine])
  const settled = await resume(bench, signed.expected, recorded(journal), FAR, Date.now())
  t.match(settled, { kind: 'settled', receipt: { transaction: recorded(journal).hash } })
  t.equal((await mischief.newest()) - block, 2)
})

t.test('sends a payment once more when its block is undone, and charges once', async (t) => {
  const proxy = await openNodeProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const bench = await openBench(chain, { ledger, url: proxy.url, limits: { confirmations: 2 } })
  const signed = await authorize(chain)
  await mischief.automine('off')
  const journal = newRecorder()
  atPolls(proxy, [
    mischief.mine,
    async () => t.equal(await mischief.charges(signed), 1, 'it stood in a block'),
    () => mischief.reorg(1),
    async () => t.equal(await mischief.charges(signed), 0, 'the block is gone'),
    () => mischief.mine(2),
  ])
  const settlement = await settleOn(bench, signed, journal)
  t.match(settlement, { kind: 'settled', receipt: { transaction: recorded(journal).hash } })
  t.equal(sentOver(proxy), 2)
  t.equal(journal.dispatches.length, 1, 'the same bytes')
  t.equal(await mischief.charges(signed), 1)
})

t.test('settles a payment whose block is undone only once another block contains it', async (t) => {
  const proxy = await openNodeProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const bench = await openBench(chain, { ledger, url: proxy.url, limits: { confirmations: 2 } })
  const signed = await authorize(chain, randomKey(), { validBefore: 4_000_000_000n })
  await mischief.automine('off')
  const journal = newRecorder()
  const full = { error: { code: -32000, message: 'txpool is full' } }
  atPolls(proxy, [
    mischief.mine,
    async () => {
      // First, or the signer sends it again between the two.
      proxy.instead(async (method) => (method === 'eth_sendRawTransaction' ? full : undefined))
      await mischief.reorg(1)
    },
    () => mischief.mine(3),
  ])
  t.match(await settleOn(bench, signed, journal), { kind: 'unknown' })
  t.equal(await mischief.charges(signed), 0)
  proxy.instead(async () => undefined)
  atPolls(proxy, [async () => {}, () => mischief.mine(2)])
  const later = await resume(bench, signed.expected, recorded(journal), FAR, Date.now())
  t.match(later, { kind: 'settled' })
  t.equal(await mischief.charges(signed), 1)
})

t.test('accepts a stranger’s faster transaction in the same block as the buyer’s payment', async (t) => {
  const { bench, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  await mischief.automine('off')
  let theirs = ''
  atPolls(proxy, [
    async () => {
      theirs = await mischief.submit(signed)
      await mischief.mine()
    },
  ])
  const journal = newRecorder()
  const settlement = await settleOn(bench, signed, journal)
  t.match(settlement, { kind: 'settled', receipt: { transaction: theirs } })
  const { hash } = recorded(journal)
  t.match(await mischief.client.getTransactionReceipt({ hash: hexOf(hash) }), { status: 'reverted' })
  t.equal(await mischief.charges(signed), 1)
})

t.test('accepts a stranger’s transaction before the broadcast, and spends no gas', async (t) => {
  const bench = await openBench(chain, { ledger })
  const signed = await authorize(chain)
  const theirs = await mischief.mined(mischief.submit(signed))
  const journal = newRecorder()
  t.match(await settleOn(bench, signed, journal), { kind: 'settled', receipt: { transaction: theirs } })
  t.strictSame(journal.dispatches, [])
})

t.test('moves the money once with two transactions for one payment, and finds it from both', async (t) => {
  const benches = [await openBench(chain, { ledger }), await openSpoilt(t)] as const
  const [one, { bench: two, proxy }] = benches
  const signed = await authorize(chain)
  await mischief.automine('off')
  atPolls(proxy, [mischief.mine])
  const settlements = await Promise.all([settleOn(one, signed), settleOn(two, signed)])
  const [first, second] = settlements
  t.match(first, { kind: 'settled' })
  t.strictSame(first, second)
  t.equal(await mischief.charges(signed), 1)
})

t.test('fails a payment that is canceled during the work before it costs gas', async (t) => {
  const bench = await openBench(chain, { ledger })
  const signed = await authorize(chain)
  await mischief.mined(mischief.cancel(signed))
  const journal = newRecorder()
  t.match(await settleOn(bench, signed, journal), FAILED)
  t.strictSame(journal.dispatches, [])
})

t.test('fails a payment that is canceled in the block of its settlement', async (t) => {
  const { bench, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  await mischief.automine('off')
  atPolls(proxy, [
    async () => {
      await mischief.cancel(signed)
      await mischief.mine()
    },
  ])
  t.match(await settleOn(bench, signed), FAILED)
  t.equal(await chain.balance(signed.expected.from), 10_000n, 'not charged')
})

t.test('fails a payment whose nonce has moved money elsewhere', async (t) => {
  const bench = await openBench(chain, { ledger })
  const signed = await authorize(chain)
  const { nonce } = signed.expected
  const elsewhere = await authorize(chain, signed.key, { to: addressOf(randomKey()), nonce })
  await mischief.mined(mischief.submit(elsewhere))
  t.match(await settleOn(bench, signed), FAILED)
})

t.test('counts one transfer for one answer, however its transaction is built', async (t) => {
  const bench = await openBench(chain, { ledger })
  const key = randomKey()
  const [paid, unpaid] = [await authorize(chain, key), await authorize(chain, key)]
  // Signed under the nonce of the payment that is not to be paid.
  const decoy = await authorize(chain, key, { to: addressOf(key), nonce: unpaid.expected.nonce })
  const before = (await onlooker.received(PAY_TO)).length
  const transaction = await mischief.mined(mischief.submitTogether([decoy, paid]))
  const receipt = await mischief.client.getTransactionReceipt({ hash: transaction })
  t.match(receipt, { status: 'success' })
  t.equal(await mischief.charges(paid), 2, 'both nonces are used')
  t.equal((await onlooker.received(PAY_TO)).length - before, 1, 'and one transfer has reached us')
  t.match(await settleOn(bench, paid), { kind: 'settled', receipt: { transaction } })
  t.match(await settleOn(bench, unpaid), FAILED)
})

t.test('settles its own transactions on a node without logs', async (t) => {
  const { bench, proxy } = await openSpoilt(t)
  const refused = { error: { code: -32000, message: 'this method is not for you' } }
  proxy.instead(async (method) => (method === 'eth_getLogs' ? refused : undefined))
  t.match(await settleOn(bench, await authorize(chain)), { kind: 'settled' })
  const reverted = await authorize(chain)
  await mischief.automine('off')
  atPolls(proxy, [
    async () => {
      await blacklist(reverted)
      await mischief.mine()
    },
  ])
  t.match(await settleOn(bench, reverted), FAILED)
  t.equal(await mischief.charges(reverted), 0)
  await mischief.automine('on')
  const foreign = await authorize(chain)
  const theirs = await mischief.mined(mischief.submit(foreign))
  t.match(await settleOn(bench, foreign), { kind: 'unknown' }, 'used, and by whom is not known')
  proxy.instead(async () => undefined)
  t.match(await findTransfer(bench, foreign.expected, FAR, Date.now()), {
    kind: 'settled',
    receipt: { transaction: theirs },
  })
})

t.test('fails an unsettled payment once its time is over', async (t) => {
  const bench = await openBench(chain, { ledger })
  const { expected } = await authorize(chain)
  await mischief.mine()
  const { timestamp } = await mischief.client.getBlock()
  const newest = Number(timestamp) * 1000
  t.match(await findTransfer(bench, expected, newest + 1_000, newest), { kind: 'unknown' })
  t.match(await findTransfer(bench, expected, newest, newest), FAILED)
})

t.test('reports unknown while a stranger’s transaction lacks confirmations', async (t) => {
  const bench = await openBench(chain, { ledger, limits: { confirmations: 2 } })
  const signed = await authorize(chain)
  const theirs = await mischief.mined(mischief.submit(signed))
  const { timestamp } = await mischief.client.getBlock()
  const over = Number(timestamp) * 1000 - 60_000
  t.match(await findTransfer(bench, signed.expected, over, over), { kind: 'unknown' })
  await mischief.mine()
  t.match(await findTransfer(bench, signed.expected, over, over), {
    kind: 'settled',
    receipt: { transaction: theirs },
  })
})

t.test('sends a transaction again to a node that has lost its pool', async (t) => {
  const { bench, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  await mischief.automine('off')
  const journal = newRecorder()
  t.match(await settleOn(bench, signed, journal), { kind: 'unknown' })
  await mischief.client.request({ method: 'anvil_dropAllTransactions' } as never)
  await mischief.mine()
  t.equal(await mischief.charges(signed), 0)
  atPolls(proxy, [async () => {}, mischief.mine])
  t.match(await resume(bench, signed.expected, recorded(journal), FAR, Date.now()), { kind: 'settled' })
  t.equal(sentOver(proxy), 2)
  t.equal(await mischief.charges(signed), 1)
})

t.test('fails an unsent transaction once its nonce is taken', async (t) => {
  const { bench, proxy } = await openSpoilt(t)
  const [lost, next] = [await authorize(chain), await authorize(chain)]
  proxy.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') proxy.set('down')
  })
  const journal = newRecorder()
  t.match(await settleOn(bench, lost, journal), { kind: 'unknown' })
  proxy.onCall(async () => {})
  proxy.set('open')
  t.match(await settleOn(bench, next), { kind: 'settled' })
  t.match(await resume(bench, lost.expected, recorded(journal), FAR, Date.now()), FAILED)
  t.equal(await mischief.charges(lost), 0)
  t.match(await settleOn(bench, lost, journal), { kind: 'settled' }, 'it is still good')
  const [old] = journal.dispatches
  if (old?.kind !== 'own') return t.fail('recorded')
  t.match(
    await resume(bench, lost.expected, old, FAR, Date.now()),
    { kind: 'settled', receipt: { transaction: recorded(journal).hash } },
    'and its first transaction finds the second',
  )
  t.equal(await mischief.charges(lost), 1)
})

t.test('answers the buyer once, with one charge, when a silent node answers again', async (t) => {
  const { bench, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  proxy.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') proxy.set('broken_after_send')
    // As after a pause: the transaction has arrived, every question about it has been cut off, and the next is answered.
    if (method === 'eth_getTransactionReceipt') proxy.set('open')
  })
  t.match(await settleOn(bench, signed, newRecorder()), { kind: 'settled' })
  t.equal(await mischief.charges(signed), 1)
})

t.test('fails an unsent transaction once the payment is over, and may send it before', async (t) => {
  const { bench, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  proxy.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') proxy.set('down')
  })
  const journal = newRecorder()
  t.match(await settleOn(bench, signed, journal), { kind: 'unknown' })
  const sent = sentOver(proxy)
  proxy.onCall(async () => {})
  proxy.set('open')
  const { timestamp } = await mischief.client.getBlock()
  const over = await resume(bench, signed.expected, recorded(journal), Number(timestamp) * 1000, Date.now())
  t.match(over, FAILED)
  t.equal(sentOver(proxy), sent, 'what can only revert is not sent')
  t.match(await resume(bench, signed.expected, recorded(journal), FAR, Date.now()), { kind: 'settled' })
  t.equal(await mischief.charges(signed), 1)
})

const FAR = 64_060_588_800_000

async function blacklist({ expected: { from } }: Signed): Promise<void> {
  const abi = parseAbi(['function blacklist(address account)'])
  await mischief.rush({ to: chain.asset, data: encodeFunctionData({ abi, args: [from] }) })
}

function hexOf(text: string): `0x${string}` {
  return `0x${text.slice(2)}`
}
