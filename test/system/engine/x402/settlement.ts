import t, { type Test } from 'tap'
import { encodeFunctionData, parseAbi } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { findTransfer } from '../../../../src/engine/x402/exact-evm/onchain-status.ts'
import { resume } from '../../../../src/engine/x402/exact-evm/own-settler.ts'
import { startBase, onchainClient } from '../../../support/base-chain.ts'
import { openRpcProxy, type RpcProxy } from '../../../support/rpc-proxy.ts'
import { addressOf, randomKey } from '../../../support/payment.ts'
import {
  authorize,
  newRecorder,
  openSettlementContext,
  openChainControl,
  recorded,
  settleOn,
  type QuickSettlementContext,
  type Recorder,
  type Signed,
} from '../../../support/settlement-context.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'
import { PAY_TO } from '../../../support/shipped-catalog.ts'

const chain = await startBase()
t.teardown(() => chain.stop())
const ledger = await openTemporaryLedger(t)
const chainControl = openChainControl(chain)
const onchain = onchainClient(chain)
t.afterEach(() => chainControl.automine('on'))

const FAILED = { kind: 'failed', refusal: { code: 'settlement_failed' } }

/** A context with a proxy in front of its node. */
async function openSpoilt(
  t: Test,
): Promise<{ readonly context: QuickSettlementContext; readonly proxy: RpcProxy }> {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  return { proxy, context: await openSettlementContext(chain, { ledger, url: proxy.url }) }
}

/** Does something when the outcome is asked for, again and again: the first, the second time… */
function atPolls(proxy: RpcProxy, events: readonly (() => Promise<unknown>)[]): void {
  let polls = 0
  proxy.onCall(async (method) => {
    if (method !== 'eth_getTransactionReceipt') return
    polls += 1
    await events[polls - 1]?.()
  })
}

/** At every poll: on a busy machine, the signer sends a transaction again only after the next one. */
const MINING = Array.from({ length: 50 }, () => () => chainControl.mine(2))

const sentOver = (proxy: RpcProxy): number =>
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
  const context = await openSettlementContext(chain, { ledger })
  const signed = await authorize(chain)
  const journal = newRecorder()
  const settlement = await settleOn(context, signed, journal)
  const { hash } = recorded(journal)
  const receipt = { transaction: hash, network: 'eip155:8453', payer: signed.expected.from, amount: '10000' }
  t.match(settlement, { kind: 'settled', receipt: { ...receipt, gasCost: /^[1-9]\d+$/ } })
  t.equal(await chainControl.charges(signed), 1)
})

t.test('refuses a buyer whose money goes while the payment waits, before it costs gas', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const [first, second] = [await authorize(chain), await authorize(chain)]
  const { from } = second.expected
  const emptying = recordingAfter(() => onchain.drain(from, addressOf(randomKey()), 10_000n))
  const journal = newRecorder()
  const settlements = await Promise.all([
    settleOn(context, first, emptying),
    settleOn(context, second, journal),
  ])
  t.match(settlements, [
    { kind: 'settled' },
    { kind: 'failed', refusal: { code: 'invalid_exact_evm_insufficient_balance' } },
  ])
  t.strictSame(journal.dispatches, [], 'nothing was even signed')
  t.equal(await chainControl.charges(second), 0)
})

t.test('leaves a payment unsent whose time is nearly over when its turn comes', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const soon = BigInt(Math.floor(Date.now() / 1000) + 20)
  const [first, second] = [await authorize(chain), await authorize(chain, randomKey(), { validBefore: soon })]
  const journal = newRecorder()
  const settlements = await Promise.all([
    settleOn(
      context,
      first,
      recordingAfter(async () => context.wait(18_000)),
    ),
    settleOn(context, second, journal),
  ])
  t.match(settlements, [{ kind: 'settled' }, { kind: 'failed', refusal: { code: 'deadline_too_short' } }])
  t.strictSame(journal.dispatches, [])
  t.equal(await chainControl.charges(second), 0)
})

t.test('keeps a payment waiting while the network asks for more than the operator allows', async (t) => {
  const gwei = 1_000_000_000n
  await chainControl.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 5n * gwei })
  await chainControl.mine()
  t.teardown(() => chainControl.client.setNextBlockBaseFeePerGas({ baseFeePerGas: gwei }))
  const signed = await authorize(chain)
  const journal = newRecorder()
  const dear = await settleOn(await openSettlementContext(chain, { ledger }), signed, journal)
  t.match(dear, { kind: 'failed', refusal: { code: 'chain_unavailable', detail: /fees/ } })
  t.strictSame(journal.dispatches, [])
  t.equal(await chainControl.charges(signed), 0)
  const generous = await openSettlementContext(chain, { ledger, limits: { maxFeePerGas: 7n * gwei } })
  t.match(await settleOn(generous, signed, journal), { kind: 'settled' })
  const { maxFeePerGas } = await chainControl.client.getTransaction({ hash: hexOf(recorded(journal).hash) })
  t.equal(maxFeePerGas, 7n * gwei, 'all that is allowed, where twice the base fee would be more')
})

t.test('counts a payment under three blocks when three are required', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const context = await openSettlementContext(chain, { ledger, url: proxy.url, limits: { confirmations: 3 } })
  const signed = await authorize(chain)
  await chainControl.automine('off')
  const journal = newRecorder()
  atPolls(proxy, [chainControl.mine])
  const shallow = await settleOn(context, signed, journal)
  t.match(shallow, { kind: 'unknown' })
  t.equal(await chainControl.charges(signed), 1)
  const block = await chainControl.newest()
  atPolls(proxy, [chainControl.mine, chainControl.mine])
  const settled = await resume(context, signed.expected, recorded(journal), FAR, Date.now())
  t.match(settled, { kind: 'settled', receipt: { transaction: recorded(journal).hash } })
  t.equal((await chainControl.newest()) - block, 2)
})

t.test(
  'counts a payment that comes into a block at the end of its time under three more blocks',
  async (t) => {
    const proxy = await openRpcProxy(chain.rpcUrl)
    t.teardown(proxy.close)
    const context = await openSettlementContext(chain, { ledger, url: proxy.url })
    const now = Math.floor(Date.now() / 1000)
    const signed = await authorize(chain, randomKey(), { validBefore: BigInt(now + 30) })
    await chainControl.automine('off')
    const journal = newRecorder()
    let block = 0
    const mineLate = async (): Promise<void> => {
      context.wait(22_000)
      await chainControl.client.setNextBlockTimestamp({ timestamp: BigInt(now + 22) })
      await chainControl.mine()
      block = await chainControl.newest()
    }
    atPolls(proxy, [mineLate, chainControl.mine, chainControl.mine, chainControl.mine])
    t.match(await settleOn(context, signed, journal), {
      kind: 'settled',
      receipt: { transaction: recorded(journal).hash, block: { number: block } },
    })
    t.equal((await chainControl.newest()) - block, 3)
  },
)

t.test('sends a payment once more when its block is undone, and charges once', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const context = await openSettlementContext(chain, { ledger, url: proxy.url, limits: { confirmations: 2 } })
  const signed = await authorize(chain)
  await chainControl.automine('off')
  const journal = newRecorder()
  atPolls(proxy, [
    chainControl.mine,
    async () => t.equal(await chainControl.charges(signed), 1, 'it stood in a block'),
    () => chainControl.reorg(1),
    async () => t.equal(await chainControl.charges(signed), 0, 'the block is gone'),
    ...MINING,
  ])
  const settlement = await settleOn(context, signed, journal)
  t.match(settlement, { kind: 'settled', receipt: { transaction: recorded(journal).hash } })
  t.equal(sentOver(proxy), 2)
  t.equal(journal.dispatches.length, 1, 'the same bytes')
  t.equal(await chainControl.charges(signed), 1)
})

t.test('settles a payment whose block is undone only once another block contains it', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const context = await openSettlementContext(chain, { ledger, url: proxy.url, limits: { confirmations: 2 } })
  const signed = await authorize(chain, randomKey(), { validBefore: 4_000_000_000n })
  await chainControl.automine('off')
  const journal = newRecorder()
  const full = { error: { code: -32000, message: 'txpool is full' } }
  atPolls(proxy, [
    chainControl.mine,
    async () => {
      // First, or the signer sends it again between the two.
      proxy.instead(async (method) => (method === 'eth_sendRawTransaction' ? full : undefined))
      await chainControl.reorg(1)
    },
    () => chainControl.mine(3),
  ])
  t.match(await settleOn(context, signed, journal), { kind: 'unknown' })
  t.equal(await chainControl.charges(signed), 0)
  proxy.instead(async () => undefined)
  atPolls(proxy, [async () => {}, ...MINING])
  const later = await resume(context, signed.expected, recorded(journal), FAR, Date.now())
  t.match(later, { kind: 'settled' })
  t.equal(await chainControl.charges(signed), 1)
})

t.test('accepts a stranger’s faster transaction in the same block as the buyer’s payment', async (t) => {
  const { context, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  await chainControl.automine('off')
  let theirs = ''
  atPolls(proxy, [
    async () => {
      theirs = await chainControl.submit(signed)
      await chainControl.mine()
    },
  ])
  const journal = newRecorder()
  const settlement = await settleOn(context, signed, journal)
  t.match(settlement, { kind: 'settled', receipt: { transaction: theirs } })
  const { hash } = recorded(journal)
  t.match(await chainControl.client.getTransactionReceipt({ hash: hexOf(hash) }), { status: 'reverted' })
  t.equal(await chainControl.charges(signed), 1)
})

t.test('accepts a stranger’s transaction before the broadcast, and spends no gas', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const signed = await authorize(chain)
  const theirs = await chainControl.mined(chainControl.submit(signed))
  const journal = newRecorder()
  t.match(await settleOn(context, signed, journal), { kind: 'settled', receipt: { transaction: theirs } })
  t.strictSame(journal.dispatches, [])
})

t.test('moves the money once with two transactions for one payment, and finds it from both', async (t) => {
  const contexts = [await openSettlementContext(chain, { ledger }), await openSpoilt(t)] as const
  const [one, { context: two, proxy }] = contexts
  const signed = await authorize(chain)
  await chainControl.automine('off')
  atPolls(proxy, [chainControl.mine])
  const settlements = await Promise.all([settleOn(one, signed), settleOn(two, signed)])
  const [first, second] = settlements
  t.match(first, { kind: 'settled' })
  t.match(second, { receipt: { transaction: first?.kind === 'settled' && first.receipt.transaction } })
  t.equal(await chainControl.charges(signed), 1)
})

t.test('fails a payment that is canceled during the work before it costs gas', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const signed = await authorize(chain)
  await chainControl.mined(chainControl.cancel(signed))
  const journal = newRecorder()
  t.match(await settleOn(context, signed, journal), FAILED)
  t.strictSame(journal.dispatches, [])
})

t.test('fails a payment that is canceled in the block of its settlement', async (t) => {
  const { context, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  await chainControl.automine('off')
  atPolls(proxy, [
    async () => {
      await chainControl.cancel(signed)
      await chainControl.mine()
    },
  ])
  t.match(await settleOn(context, signed), FAILED)
  t.equal(await chain.balance(signed.expected.from), 10_000n, 'not charged')
})

t.test('fails a payment whose nonce has moved money elsewhere', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const signed = await authorize(chain)
  const { nonce } = signed.expected
  const elsewhere = await authorize(chain, signed.key, { to: addressOf(randomKey()), nonce })
  await chainControl.mined(chainControl.submit(elsewhere))
  t.match(await settleOn(context, signed), FAILED)
})

t.test('counts one transfer for one answer, however its transaction is built', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const key = randomKey()
  const [paid, unpaid] = [await authorize(chain, key), await authorize(chain, key)]
  // Signed under the nonce of the payment that is not to be paid.
  const decoy = await authorize(chain, key, { to: addressOf(key), nonce: unpaid.expected.nonce })
  const before = (await onchain.received(PAY_TO)).length
  const transaction = await chainControl.mined(chainControl.submitTogether([decoy, paid]))
  const receipt = await chainControl.client.getTransactionReceipt({ hash: transaction })
  t.match(receipt, { status: 'success' })
  t.equal(await chainControl.charges(paid), 2, 'both nonces are used')
  t.equal((await onchain.received(PAY_TO)).length - before, 1, 'and one transfer has reached us')
  t.match(await settleOn(context, paid), { kind: 'settled', receipt: { transaction } })
  t.match(await settleOn(context, unpaid), FAILED)
})

t.test('settles its own transactions on a node without logs', async (t) => {
  const { context, proxy } = await openSpoilt(t)
  const refused = { error: { code: -32000, message: 'this method is not for you' } }
  proxy.instead(async (method) => (method === 'eth_getLogs' ? refused : undefined))
  t.match(await settleOn(context, await authorize(chain)), { kind: 'settled' })
  const reverted = await authorize(chain)
  await chainControl.automine('off')
  atPolls(proxy, [
    async () => {
      await blacklist(reverted)
      await chainControl.mine()
    },
  ])
  t.match(await settleOn(context, reverted), FAILED)
  t.equal(await chainControl.charges(reverted), 0)
  await chainControl.automine('on')
  const foreign = await authorize(chain)
  const theirs = await chainControl.mined(chainControl.submit(foreign))
  t.match(await settleOn(context, foreign), { kind: 'unknown' }, 'used, and by whom is not known')
  proxy.instead(async () => undefined)
  t.match(await findTransfer(context, foreign.expected, FAR, Date.now()), {
    kind: 'settled',
    receipt: { transaction: theirs },
  })
})

t.test('fails an unsettled payment once its time is over', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const { expected } = await authorize(chain)
  await chainControl.mine()
  const { timestamp } = await chainControl.client.getBlock()
  const newest = Number(timestamp) * 1000
  t.match(await findTransfer(context, expected, newest + 1_000, newest), { kind: 'unknown' })
  t.match(await findTransfer(context, expected, newest, newest), FAILED)
})

t.test('reports unknown while a stranger’s transaction lacks confirmations', async (t) => {
  const context = await openSettlementContext(chain, { ledger, limits: { confirmations: 2 } })
  const signed = await authorize(chain)
  const theirs = await chainControl.mined(chainControl.submit(signed))
  const { timestamp } = await chainControl.client.getBlock()
  const over = Number(timestamp) * 1000 - 60_000
  t.match(await findTransfer(context, signed.expected, over, over), { kind: 'unknown' })
  await chainControl.mine()
  t.match(await findTransfer(context, signed.expected, over, over), {
    kind: 'settled',
    receipt: { transaction: theirs },
  })
})

t.test('sends a transaction again to a node that has lost its pool', async (t) => {
  const { context, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  await chainControl.automine('off')
  const journal = newRecorder()
  t.match(await settleOn(context, signed, journal), { kind: 'unknown' })
  await chainControl.client.request({ method: 'anvil_dropAllTransactions' } as never)
  await chainControl.mine()
  t.equal(await chainControl.charges(signed), 0)
  atPolls(proxy, [async () => {}, chainControl.mine])
  t.match(await resume(context, signed.expected, recorded(journal), FAR, Date.now()), { kind: 'settled' })
  t.equal(sentOver(proxy), 2)
  t.equal(await chainControl.charges(signed), 1)
})

t.test('knows the gas of a transaction that is mined while it is looked up', async (t) => {
  const { context, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  await chainControl.automine('off')
  const journal = newRecorder()
  t.match(await settleOn(context, signed, journal), { kind: 'unknown' })
  proxy.onCall(async (method) => {
    if (method === 'eth_getBlockByNumber') await chainControl.mine()
  })
  const settlement = await resume(context, signed.expected, recorded(journal), FAR, Date.now())
  t.match(settlement, { kind: 'settled', receipt: { gasCost: /^[1-9]\d+$/ } })
  t.equal(await chainControl.charges(signed), 1)
})

t.test('fails an unsent transaction once its nonce is taken', async (t) => {
  const { context, proxy } = await openSpoilt(t)
  const [lost, next] = [await authorize(chain), await authorize(chain)]
  proxy.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') proxy.set('down')
  })
  const journal = newRecorder()
  t.match(await settleOn(context, lost, journal), { kind: 'unknown' })
  proxy.onCall(async () => {})
  proxy.set('open')
  t.match(await settleOn(context, next), { kind: 'settled' })
  t.match(await resume(context, lost.expected, recorded(journal), FAR, Date.now()), FAILED)
  t.equal(await chainControl.charges(lost), 0)
  t.match(await settleOn(context, lost, journal), { kind: 'settled' }, 'it is still good')
  const [old] = journal.dispatches
  if (old?.kind !== 'own') return t.fail('recorded')
  t.match(
    await resume(context, lost.expected, old, FAR, Date.now()),
    { kind: 'settled', receipt: { transaction: recorded(journal).hash } },
    'and its first transaction finds the second',
  )
  t.equal(await chainControl.charges(lost), 1)
})

t.test('sends a payment again whose account nonce has gone to another transaction', async (t) => {
  const { context, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  const [key = '0x'] = context.signerKeys
  proxy.onCall(async (method) => {
    if (method !== 'eth_sendRawTransaction') return
    proxy.onCall(async () => {})
    const account = privateKeyToAccount(key)
    await chainControl.mined(chainControl.client.sendTransaction({ account, to: account.address }))
  })
  const journal = newRecorder()
  t.match(await settleOn(context, signed, journal), { kind: 'settled' })
  t.match(journal.dispatches, [{ nonce: 0 }, { nonce: 1 }])
  t.equal(await chainControl.charges(signed), 1)
})

t.test('answers the buyer once, with one charge, when a silent node answers again', async (t) => {
  const { context, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  proxy.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') proxy.set('broken_after_send')
    // As after a pause: the transaction has arrived, every question about it has been cut off, and the next is answered.
    if (method === 'eth_getTransactionReceipt') proxy.set('open')
  })
  t.match(await settleOn(context, signed, newRecorder()), { kind: 'settled' })
  t.equal(await chainControl.charges(signed), 1)
})

t.test('fails an unsent transaction once the payment is over, and may send it before', async (t) => {
  const { context, proxy } = await openSpoilt(t)
  const signed = await authorize(chain)
  proxy.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') proxy.set('down')
  })
  const journal = newRecorder()
  t.match(await settleOn(context, signed, journal), { kind: 'unknown' })
  const sent = sentOver(proxy)
  proxy.onCall(async () => {})
  proxy.set('open')
  const { timestamp } = await chainControl.client.getBlock()
  const over = await resume(context, signed.expected, recorded(journal), Number(timestamp) * 1000, Date.now())
  t.match(over, FAILED)
  t.equal(sentOver(proxy), sent, 'what can only revert is not sent')
  t.match(await resume(context, signed.expected, recorded(journal), FAR, Date.now()), { kind: 'settled' })
  t.equal(await chainControl.charges(signed), 1)
})

const FAR = 64_060_588_800_000

async function blacklist({ expected: { from } }: Signed): Promise<void> {
  const abi = parseAbi(['function blacklist(address account)'])
  await chainControl.rush({ to: chain.asset, data: encodeFunctionData({ abi, args: [from] }) })
}

function hexOf(text: string): `0x${string}` {
  return `0x${text.slice(2)}`
}
