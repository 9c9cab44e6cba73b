import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { findBatch } from 'ratecard/chains/evm/kept-batch'
import { MULTICALL3 } from 'ratecard/chains/evm/multicall'
import { once } from '../../../../src/engine/base/once.ts'
import type { Journal, Settlement } from '../../../../src/engine/payment/settlement.ts'
import { resume } from '../../../../src/engine/x402/exact-evm/own-settler.ts'
import { startBase, onchainClient } from '../../../support/base-chain.ts'
import { openRpcProxy } from '../../../support/rpc-proxy.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'
import {
  authorize,
  newRecorder,
  openSettlementContext,
  openChainControl,
  recorded,
  settleOn,
  type SettlementOptions,
  type QuickSettlementContext,
  type Signed,
} from '../../../support/settlement-context.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'

/*
 * The first of several payments goes alone, at once; those that come while it is on its way share the next transaction.
 */

const chain = await startBase()
t.teardown(() => chain.stop())
const ledger = await openTemporaryLedger(t)
const chainControl = openChainControl(chain)
const onchain = onchainClient(chain)
t.afterEach(() => chainControl.automine('on'))

async function openBatching(options: Partial<SettlementOptions> = {}): Promise<QuickSettlementContext> {
  const context = await openSettlementContext(chain, { ledger, ...options })
  await context.multicall.look()
  return context
}

/** The faucet of the chain sends one transaction after the other. */
async function several(amount: number): Promise<Signed[]> {
  const signed: Signed[] = []
  while (signed.length < amount) signed.push(await authorize(chain))
  return signed
}

const transactionsOf = async ({ signerKeys: [key = '0x'] }: QuickSettlementContext): Promise<number> =>
  chainControl.client.getTransactionCount({ address: addressOf(key) })

/** Settles on a node that mines both transactions, the lone one and the batch, when `meanwhile` is done. */
async function settleInPool(
  t: Test,
  signed: readonly Signed[],
  meanwhile: () => Promise<unknown>,
  journals: readonly Journal[] = signed.map(() => newRecorder()),
): Promise<{ readonly context: QuickSettlementContext; readonly settlements: readonly Settlement[] }> {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const context = await openBatching({ url: proxy.url })
  const [key = '0x'] = context.signerKeys
  const address = addressOf(key)
  const before = await chainControl.client.getTransactionCount({ address })
  const mine = once(async () => {
    const sent = (): Promise<number> =>
      chainControl.client.getTransactionCount({ address, blockTag: 'pending' })
    while ((await sent()) < before + 2) await delay(5)
    await meanwhile()
    await chainControl.mine()
    await chainControl.automine('on')
    await chainControl.mine()
  })
  await chainControl.automine('off')
  // Who waits for a block asks for it.
  proxy.onCall(async (method) => {
    if (method === 'eth_getTransactionReceipt') await mine()
  })
  const settling = signed.map((each, place) =>
    settleOn(context, each, journals[place]).catch((): Settlement => ({
      kind: 'unknown',
      detail: 'rejected',
    })),
  )
  return { context, settlements: await Promise.all(settling) }
}

const settled = (settlements: readonly Settlement[]): string[] =>
  settlements.flatMap((each) => (each.kind === 'settled' ? [each.receipt.transaction] : []))

t.test('settles what waits in one transaction, and each payer its part of the gas', async (t) => {
  const context = await openBatching()
  const signed = await several(33)
  for (const { expected } of signed) context.payers.note({ payer: expected.from }, 'settled')
  const journals = signed.map(() => newRecorder())
  const settlements = await Promise.all(signed.map((each, place) => settleOn(context, each, journals[place])))
  t.equal(settled(settlements).length, 33)
  t.equal(await transactionsOf(context), 2)
  for (const each of signed) t.equal(await chainControl.charges(each), 1)
  const [alone, ...together] = settlements.flatMap((each) => (each.kind === 'settled' ? [each.receipt] : []))
  t.equal(new Set(together.map(({ transaction }) => transaction)).size, 1)
  const { transaction = '0x' } = together[0] ?? {}
  const mined = await chainControl.client.getTransactionReceipt({ hash: transaction as Hex })
  t.equal(mined.to?.toLowerCase(), MULTICALL3.toLowerCase())
  const cost = mined.gasUsed * mined.effectiveGasPrice
  t.strictSame(new Set(together.map(({ gasCost }) => gasCost)), new Set([String(cost / 32n)]))
  const single = await chainControl.client.getTransactionReceipt({ hash: alone?.transaction as Hex })
  t.ok(mined.gasUsed / 32n < (single.gasUsed * 65n) / 100n, `${mined.gasUsed / 32n} of ${single.gasUsed}`)
  const dispatches = journals.slice(1).map(recorded)
  t.strictSame(new Set(dispatches.map(({ members, raw }) => `${members} ${raw}`)), new Set(['32 undefined']))
  t.type(await findBatch(ledger, transaction), 'string', 'its bytes are kept once')
})

t.test('settles a hundred payments in one transaction', async (t) => {
  const context = await openBatching({ limits: { maxGasLoss: 10n ** 18n } })
  const signed = await several(101)
  for (const { expected } of signed) context.payers.note({ payer: expected.from }, 'settled')
  const settlements = await Promise.all(signed.map((each) => settleOn(context, each)))
  t.equal(settled(settlements).length, 101)
  t.equal(await transactionsOf(context), 2)
  for (const each of signed) t.equal(await chainControl.charges(each), 1)
})

t.test('divides payments into transactions of half a block', async (t) => {
  const { gasLimit } = await chainControl.client.getBlock()
  await chainControl.client.setBlockGasLimit({ gasLimit: 1_400_000n })
  t.teardown(() => chainControl.client.setBlockGasLimit({ gasLimit }))
  await chainControl.mine()
  const context = await openBatching()
  const signed = await several(10)
  for (const { expected } of signed) context.payers.note({ payer: expected.from }, 'settled')
  t.equal(settled(await Promise.all(signed.map((each) => settleOn(context, each)))).length, 10)
  // One alone, and nine at 70,000 gas each beside 60,000.
  t.equal(await transactionsOf(context), 2)
  const more = await several(12)
  for (const { expected } of more) context.payers.note({ payer: expected.from }, 'settled')
  t.equal(settled(await Promise.all(more.map((each) => settleOn(context, each)))).length, 12)
  t.ok((await transactionsOf(context)) >= 4)
})

t.test('settles one payment after the other where there is no batch contract', async (t) => {
  const code = await chainControl.client.getCode({ address: MULTICALL3 })
  await chain.setCode(MULTICALL3, '0x')
  const context = await openBatching()
  const signed = await several(5)
  t.equal(settled(await Promise.all(signed.map((each) => settleOn(context, each)))).length, 5)
  t.equal(await transactionsOf(context), 5)
  await chain.setCode(MULTICALL3, code ?? '0x')
})

t.test('settles a lone payment without asking for a batch', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const context = await openBatching({ url: proxy.url })
  const before = proxy.calls().length
  t.match(await settleOn(context, await authorize(chain)), { kind: 'settled' })
  const calls = proxy.calls().slice(before)
  t.equal(calls.filter((method) => method === 'eth_call').length, 1)
})

t.test('refuses a member that its simulation refuses, and settles the others together', async (t) => {
  const context = await openBatching()
  const signed = await several(5)
  const [, , poor] = signed
  if (poor === undefined) return
  await onchain.drain(poor.expected.from, addressOf(randomKey()), 10_000n)
  const settlements = await Promise.all(signed.map((each) => settleOn(context, each)))
  t.match(settlements[2], { kind: 'failed', refusal: { code: 'invalid_exact_evm_insufficient_balance' } })
  t.equal(settled(settlements).length, 4)
  t.equal(await transactionsOf(context), 2)
  t.equal(await chainControl.charges(poor), 0)
})

// Accepts every signature (ERC-1271).
const ACCEPTING = '0x631626ba7e60e01b60005260206000f3'
// JUMPDEST, PUSH1 0, JUMP: uses up all gas it is given.
const BURNING = '0x5b600056'

for (const [what, giveCode] of [
  ['with code', ({ expected: { from } }: Signed) => chain.setCode(from, ACCEPTING)],
  [
    'that delegates (EIP-7702)',
    async (signed: Signed) => chainControl.mined(chainControl.delegate(signed, ACCEPTING)),
  ],
] as const)
  t.test(`sends an account ${what} alone, with a gas limit of its own`, async (t) => {
    const context = await openBatching()
    const signed = await several(4)
    const [, wallet] = signed
    if (wallet === undefined) return
    await giveCode(wallet)
    const journals = signed.map(() => newRecorder())
    const settlements = await Promise.all(
      signed.map((each, place) => settleOn(context, each, journals[place])),
    )
    t.equal(settled(settlements).length, 4)
    t.strictSame(
      journals.map((journal) => recorded(journal).members),
      [undefined, undefined, 2, 2],
    )
  })

for (const [what, prepare] of [
  ['is canceled', async (signed: Signed) => () => chainControl.cancel(signed)],
  [
    'spends its money',
    async ({ key }: Signed) => {
      const to = addressOf(randomKey())
      const everything = await authorize(chain, key, { to, value: 20_000n })
      return () => chainControl.submit(everything)
    },
  ],
] as const)
  t.test(`charges the others once when a member ${what} before the block`, async (t) => {
    const signed = await several(4)
    const [, , delegated] = signed
    if (delegated === undefined) return
    const { context, settlements } = await settleInPool(t, signed, await prepare(delegated))
    t.match(settlements[2], { kind: 'failed', refusal: { code: /^(invalid_exact_evm_|settlement_failed)/ } })
    t.equal(settled(settlements).length, 3)
    for (const each of signed.filter((other) => other !== delegated))
      t.equal(await chainControl.charges(each), 1)
    t.match(context.losses.totals, { reverts: 1 })
  })

t.test('records a member that somebody else has settled before the block, once', async (t) => {
  const signed = await several(4)
  const [, , other] = signed
  if (other === undefined) return
  const { settlements } = await settleInPool(t, signed, () => chainControl.submit(other))
  t.equal(settled(settlements).length, 4)
  t.equal(new Set(settled(settlements)).size, 3)
  for (const each of signed) t.equal(await chainControl.charges(each), 1)
})

t.test(
  'bounds what a payer can burn who delegates (EIP-7702) before the block, and charges the others once',
  async (t) => {
    const signed = await several(5)
    const [first, , burner] = signed
    if (first === undefined || burner === undefined) return
    const { context, settlements } = await settleInPool(t, signed, () =>
      chainControl.delegate(burner, BURNING),
    )
    t.equal(settlements[2]?.kind, 'failed')
    t.equal(settled(settlements).length, 4)
    for (const each of signed) t.equal(await chainControl.charges(each), each === burner ? 0 : 1)
    t.match(context.losses.totals, { reverts: 1 }, 'of one payer')
    const suspended = await context.losses.refuse(first.expected.from, 'new', 10n ** 18n)
    t.equal(suspended, undefined, 'nobody else is')
    t.ok(context.losses.totals.gasLost > 0n)
  },
)

t.test('attributes the gas of a batch to the last member, when that has used it', async (t) => {
  const signed = await several(5)
  const burner = signed[4]
  if (burner === undefined) return
  const { context, settlements } = await settleInPool(t, signed, () => chainControl.delegate(burner, BURNING))
  t.equal(settled(settlements).length, 4)
  const [, transaction = '0x'] = settled(settlements)
  const { gasUsed, effectiveGasPrice } = await chainControl.client.getTransactionReceipt({
    hash: transaction as Hex,
  })
  // Three others have used about 45,000 each.
  t.ok(gasUsed > 250_000n, `${gasUsed}`)
  t.ok(context.losses.totals.gasLost > (gasUsed - 210_000n) * effectiveGasPrice)
  t.ok(context.losses.totals.gasLost < gasUsed * effectiveGasPrice)
})

t.test(
  'holds no payer responsible for a batch that burned its gas, when the process that sent it is gone',
  async (t) => {
    const signed = await several(4)
    const [, , burner, innocent] = signed
    if (burner === undefined || innocent === undefined) return
    const journals = signed.map(() => {
      const journal = newRecorder()
      const once = async (...given: Parameters<typeof journal.record>): Promise<void> => {
        if (journal.dispatches.length > 0) throw new Error('the process is gone')
        await journal.record(...given)
      }
      return { ...journal, record: once }
    })
    const { context, settlements } = await settleInPool(
      t,
      signed,
      () => chain.setCode(burner.expected.from, BURNING),
      journals,
    )
    t.strictSame(settlements.map(({ kind }) => kind).slice(1), ['unknown', 'failed', 'unknown'])
    const [dispatch] = journals[3]?.dispatches ?? []
    if (dispatch?.kind !== 'own') return t.fail('a transaction')
    const later = await openBatching()
    const { expected, authorization } = innocent
    const found = await resume(later, expected, dispatch, Number(authorization.validBefore) * 1000, 0)
    t.match(found, { kind: 'failed' })
    t.equal(await later.losses.refuse(expected.from, 'new', 10n ** 18n), undefined)
    t.match(later.losses.totals, { gasLost: context.losses.totals.gasLost / 3n })
    t.match(await settleOn(later, innocent), { kind: 'settled' })
    t.equal(await chainControl.charges(innocent), 1)
  },
)

t.test('sends a batch again that was recorded and never arrived, once for all its members', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const context = await openBatching({ url: proxy.url })
  const signed = await several(4)
  const journals = signed.map(() => newRecorder())
  let sent = 0
  proxy.instead(async (method) => {
    if (method !== 'eth_sendRawTransaction') return undefined
    sent += 1
    // The first payment goes alone; of the batch nothing arrives, nor of what follows.
    return sent === 1 ? undefined : { error: { code: -32005, message: 'rate limit' } }
  })
  const settlements = await Promise.all(signed.map((each, place) => settleOn(context, each, journals[place])))
  t.strictSame(
    settlements.map(({ kind }) => kind),
    ['settled', 'unknown', 'unknown', 'unknown'],
  )
  proxy.instead(async () => undefined)
  const later = await Promise.all(
    signed.slice(1).map(({ expected, authorization: { validBefore } }, place) => {
      const journal = journals[place + 1]
      if (journal === undefined) throw new Error('no journal')
      return resume(context, expected, recorded(journal), Number(validBefore) * 1000, Date.now() - 60_000)
    }),
  )
  t.equal(new Set(settled(later)).size, 1)
  t.equal(settled(later).length, 3)
  for (const each of signed) t.equal(await chainControl.charges(each), 1)
  t.match(later[0], { receipt: { gasCost: /^\d+$/ } })
})

t.test('forgets a batch that the node refuses, and settles its payments alone', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const context = await openBatching({ url: proxy.url })
  const signed = await several(4)
  const journals = signed.map(() => newRecorder())
  let sent = 0
  proxy.instead(async (method) => {
    if (method === 'eth_getTransactionByHash' && sent === 2) return { result: null }
    if (method !== 'eth_sendRawTransaction') return undefined
    sent += 1
    return sent === 2 ? { error: { code: -32000, message: 'exceeds block gas limit' } } : undefined
  })
  const settlements = await Promise.all(signed.map((each, place) => settleOn(context, each, journals[place])))
  t.equal(settled(settlements).length, 4)
  for (const each of signed) t.equal(await chainControl.charges(each), 1)
  const [batch, alone] = journals[1]?.dispatches ?? []
  if (batch?.kind !== 'own' || alone?.kind !== 'own') return t.fail('two transactions')
  t.match([batch.members, alone.members], [3, undefined])
  t.equal(await findBatch(ledger, batch.hash), undefined)
})

t.test('settles a batch that another process has sent, which took the signer over', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const key = randomKey()
  const context = await openBatching({ url: proxy.url, keys: [key] })
  const signed = await several(3)
  const journals = signed.map(() => newRecorder())
  const takeOver = once(async () => {
    context.wait(16_000)
    const name = `signer:8453:${addressOf(key).toLowerCase()}`
    t.ok(await ledger.lease(name, 'another', context.now(), context.now() + 60_000))
    await chainControl.automine('off')
    const raw = await findBatch(ledger, journals.slice(1).map(recorded)[0]?.hash ?? '')
    t.match(await context.chain.broadcast(raw as Hex), { kind: 'result' })
    let receipts = 0
    // Its block comes after it was looked for.
    proxy.onCall(async (method) => {
      if (method === 'eth_getTransactionReceipt' && ++receipts === 3) await chainControl.mine()
    })
  })
  const taking = journals.map((journal): Journal => ({
    record: async (transaction) => {
      await journal.record(transaction)
      if (transaction.kind === 'own' && transaction.members !== undefined) await takeOver()
    },
  }))
  const settlements = await Promise.all(signed.map((each, place) => settleOn(context, each, taking[place])))
  t.equal(settled(settlements).length, 3)
  for (const each of signed) t.equal(await chainControl.charges(each), 1)
})

t.test('settles a batch without the payment that fails to be recorded', async (t) => {
  const context = await openBatching()
  const signed = await several(5)
  const journals = signed.map((_, place) => {
    const journal = newRecorder()
    const fails = place === 2
    return fails ? { ...journal, record: () => Promise.reject(new Error('the store is away')) } : journal
  })
  const outcomes = await Promise.allSettled(
    signed.map((each, place) => settleOn(context, each, journals[place])),
  )
  t.strictSame(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  )
  t.equal(await transactionsOf(context), 2)
  for (const [place, each] of signed.entries()) t.equal(await chainControl.charges(each), place === 2 ? 0 : 1)
})
