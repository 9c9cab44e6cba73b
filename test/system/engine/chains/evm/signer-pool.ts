import t, { type Test } from 'tap'
import type { Ledger } from '../../../../../src/engine/ledger/ledger.ts'
import type { Settlement } from '../../../../../src/engine/payment/settlement.ts'
import { startBase } from '../../../../support/base-chain.ts'
import { openRpcProxy } from '../../../../support/rpc-proxy.ts'
import { addressOf, randomKey, type Hex } from '../../../../support/payment.ts'
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
} from '../../../../support/settlement-context.ts'
import { openTemporaryLedger } from '../../../../support/temporary-ledger.ts'

const chain = await startBase()
t.teardown(() => chain.stop())
const ledger = await openTemporaryLedger(t)
const chainControl = openChainControl(chain)

const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at)
/** One after the other, for the test token’s faucet is one account. */
async function payments(count: number): Promise<Signed[]> {
  const signed: Signed[] = []
  for (const _ of upTo(count)) signed.push(await authorize(chain))
  return signed
}

/** Two signers, and the way to the node, which counts. */
async function openPair(t: Test, options: Partial<SettlementOptions> = {}) {
  const keys = [randomKey(), randomKey()] as const
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const context = await openSettlementContext(chain, { ledger, url: proxy.url, keys, ...options })
  const asked = (name: string): number => proxy.calls().filter((method) => method === name).length
  return { context, proxy, keys, asked }
}

/** Settles, and shows which account has sent the transaction. */
async function settledBy(context: QuickSettlementContext, signed: Signed): Promise<string> {
  const journal = newRecorder()
  const { kind } = await settleOn(context, signed, journal)
  return kind === 'settled' ? recorded(journal).signer : kind
}

async function sentBy(key: Hex): Promise<number> {
  return chainControl.client.getTransactionCount({ address: addressOf(key), blockTag: 'latest' })
}

function kinds(settlements: readonly Settlement[]): string[] {
  return [...new Set(settlements.map(({ kind }) => kind))]
}

t.test('divides payments among two signers with consecutive nonces', async (t) => {
  const { context, keys } = await openPair(t)
  const signed = await payments(40)
  for (const { expected } of signed) context.payers.note({ payer: expected.from }, 'settled')
  const journals = signed.map(() => newRecorder())
  const settlements = await Promise.all(signed.map((each, place) => settleOn(context, each, journals[place])))
  t.strictSame(kinds(settlements), ['settled'])
  const signers = journals.map((journal) => recorded(journal).signer)
  for (const key of keys) t.equal(signers.filter((signer) => signer === addressOf(key)).length, 20)
  t.strictSame(await Promise.all(keys.map(sentBy)), [2, 2], 'the first of each alone, and those that waited')
})

t.test('alternates between signers when payments arrive one by one', async (t) => {
  const { context, keys } = await openPair(t)
  const senders: string[] = []
  for (const signed of await payments(4)) senders.push(await settledBy(context, signed))
  const [first, second] = keys.map(addressOf)
  t.strictSame(senders, [first, second, first, second])
})

t.test(
  'skips a signer without gas, checks it now and then, and uses it again when it is filled',
  async (t) => {
    const { context, keys, asked } = await openPair(t)
    const [empty, full] = keys.map(addressOf)
    if (empty === undefined || full === undefined) return t.fail('two signers')
    await chain.setGas(empty, 1_000_000_000n)
    for (const signed of await payments(6)) t.equal(await settledBy(context, signed), full)
    t.equal(asked('eth_getBalance'), 2, 'one look at each')
    t.match(context.reported, [
      new RegExp(`^x402: Base \\(eip155:8453\\): signer ${empty} has 0\\.000000001 ETH, not enough`),
    ])
    await chain.setGas(empty, 10n ** 18n)
    context.wait(31_000)
    const senders: string[] = []
    for (const signed of await payments(2)) senders.push(await settledBy(context, signed))
    t.strictSame(senders.toSorted(), [empty, full].toSorted())
  },
)

t.test('leaves the buyer uncharged and the payment waiting when every account is out of gas', async (t) => {
  const { context, keys } = await openPair(t)
  for (const key of keys) await chain.setGas(addressOf(key), 0n)
  const [signed] = await payments(1)
  if (signed === undefined) return t.fail('a payment')
  const journal = newRecorder()
  const settlement = await settleOn(context, signed, journal)
  t.match(settlement, { kind: 'failed', refusal: { code: 'chain_unavailable', detail: /fees/ } })
  t.strictSame(journal.dispatches, [])
  await chain.setGas(addressOf(keys[1]), 10n ** 18n)
  t.equal(await settledBy(context, signed), addressOf(keys[1]), 'at once: nobody else could do it')
})

t.test('notices an emptied account before anything is recorded', async (t) => {
  const { context, keys } = await openPair(t)
  const [first, ...rest] = await payments(5)
  if (first === undefined) return t.fail('a payment')
  for (const signed of rest.slice(0, 2)) await settledBy(context, signed)
  for (const key of keys.slice(0, 1)) await chain.setGas(addressOf(key), 0n)
  const journal = newRecorder()
  t.match(await settleOn(context, first, journal), { kind: 'settled' })
  t.strictSame(
    journal.dispatches.map((dispatch) => dispatch.kind === 'own' && dispatch.signer),
    [addressOf(keys[1])],
  )
  for (const signed of rest.slice(2)) t.equal(await settledBy(context, signed), addressOf(keys[1]))
  t.equal(await chainControl.charges(first), 1)
})

async function hold(over: Ledger, key: Hex, until: number): Promise<() => Promise<void>> {
  const name = `signer:8453:${addressOf(key).toLowerCase()}`
  const lease = await over.lease(name, 'another', Date.now(), until)
  return async () => {
    if (lease !== undefined) await over.release(lease, undefined)
  }
}

t.test('skips a signer that another process holds', async (t) => {
  const { context, keys } = await openPair(t)
  const release = await hold(ledger, keys[0], Date.now() + 3_600_000)
  const before = context.now()
  for (const signed of await payments(4)) t.equal(await settledBy(context, signed), addressOf(keys[1]))
  t.ok(context.now() - before < 15_000, 'less than one wait for a lease')
  await release()
})

t.test('waits for signers that are all held by other processes', async (t) => {
  const { context, keys } = await openPair(t)
  // The holder has died: its leases end while we wait, by the clock of the context.
  await hold(ledger, keys[0], context.now() + 5_000)
  await hold(ledger, keys[1], context.now() + 3_600_000)
  const [signed] = await payments(1)
  if (signed === undefined) return t.fail('a payment')
  t.equal(await settledBy(context, signed), addressOf(keys[0]))
})

t.test('two processes with the same two signers use each nonce once and settle everything', async (t) => {
  const keys = [randomKey(), randomKey()]
  const contexts = await Promise.all(
    ['one', 'two'].map((owner) => openSettlementContext(chain, { ledger, keys, owner })),
  )
  const signed = await payments(40)
  for (const { expected } of signed)
    for (const { payers } of contexts) payers.note({ payer: expected.from }, 'settled')
  const settlements = await Promise.all(
    signed.flatMap((each, at) => {
      const context = contexts[at % 2]
      return context === undefined ? [] : [settleOn(context, each)]
    }),
  )
  t.strictSame(kinds(settlements), ['settled'])
  const counts = await Promise.all(keys.map(sentBy))
  const transactions = settlements.map((each) => each.kind === 'settled' && each.receipt.transaction)
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    new Set(transactions).size,
  )
  t.ok(
    counts.every((count) => count > 0),
    `${counts.join(' and ')}`,
  )
})

t.test('gives up a payment that the ledger refuses, without trying another account', async (t) => {
  const { context, keys } = await openPair(t)
  const [signed] = await payments(1)
  if (signed === undefined) return t.fail('a payment')
  await t.rejects(
    settleOn(context, signed, { record: () => Promise.reject(new Error('the disk is full')) }),
    {
      message: 'the disk is full',
    },
  )
  t.strictSame(await Promise.all(keys.map(sentBy)), [0, 0])
})

t.test('warns of a signer that will soon be out of gas once in ten minutes', async (t) => {
  const key = randomKey()
  const context = await openSettlementContext(chain, { ledger, keys: [key] })
  /** With an authorization that is good for an hour, for the clock runs ahead of the chain's. */
  const settleLater = async (): Promise<string> => {
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + 3_600)
    return settledBy(context, await authorize(chain, randomKey(), { validBefore }))
  }
  // Two gwei of tip and base fee at the least, for 200,000 gas each.
  await chain.setGas(addressOf(key), 50n * 200_000n * 3_000_000_000n)
  for (const signed of await payments(3)) await settledBy(context, signed)
  const line =
    /^x402: Base \(eip155:8453\): signer 0x\w{40} has 0\.03 ETH, for \d+ more payments: send it more$/
  t.equal(context.reported.length, 1)
  t.match(context.reported[0], line)
  context.wait(599_000)
  t.equal(await settleLater(), addressOf(key))
  t.equal(context.reported.length, 1)
  context.wait(2_000)
  t.equal(await settleLater(), addressOf(key))
  t.equal(context.reported.length, 2)
})

t.test('warns once when the only signer is empty', async (t) => {
  const key = randomKey()
  const context = await openSettlementContext(chain, { ledger, keys: [key] })
  await chain.setGas(addressOf(key), 0n)
  for (const signed of await payments(3)) t.equal(await settledBy(context, signed), 'failed')
  t.equal(context.reported.length, 1)
  t.match(context.reported[0], /has 0 ETH, not enough for a payment/)
})

t.test('stays silent, and asks the node rarely, while there is enough gas', async (t) => {
  const { context, asked } = await openPair(t)
  for (const signed of await payments(8)) await settledBy(context, signed)
  t.strictSame(context.reported, [])
  t.equal(asked('eth_getBalance'), 2)
})
