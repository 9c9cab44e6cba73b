import t from 'tap'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPublicClient, http } from 'viem'
import { adoptTempoChain, startTempoChain } from '../../../../src/sandbox/tempo/chain.ts'

const SOMEBODY = '0x00000000000000000000000000000000deadbeef'

t.test('starts a chain with money where the tests ask for it', async (t) => {
  const chain = await startTempoChain(42431)
  t.teardown(() => chain.stop())
  const client = createPublicClient({ transport: http(chain.rpcUrl) })
  t.equal(await client.getChainId(), 42431)
  t.equal((await client.getBlock({ blockNumber: 0n })).hash, chain.genesis)
  t.equal(chain.currency, '0x20c0000000000000000000000000000000000000')
  t.equal(await chain.balance(SOMEBODY), 0n)
  await chain.give(SOMEBODY, 3n)
  await chain.give(SOMEBODY, 4n)
  t.equal(await chain.balance(SOMEBODY), 7n)
})

t.test('keeps the clock of an idle sandbox going, so that it can be paid later', async (t) => {
  const chain = await startTempoChain(42431)
  t.teardown(() => chain.stop())
  const client = createPublicClient({ transport: http(chain.rpcUrl), cacheTime: 0 })
  const begun = await client.getBlock()
  let latest = begun
  while (latest.number === begun.number) {
    await sleep(100)
    latest = await client.getBlock()
  }
  t.ok(latest.timestamp > begun.timestamp)
})

t.test('reuses a running chain only when it is the remembered one', async (t) => {
  const chain = await startTempoChain(42431)
  t.teardown(() => chain.stop())
  await chain.give(SOMEBODY, 5n)
  t.equal(await adoptTempoChain({ ...chain, genesis: `0x${'00'.repeat(32)}` }), undefined)
  t.equal(await adoptTempoChain({ ...chain, chainId: 4217 }), undefined)
  const adopted = await adoptTempoChain(chain)
  await adopted?.give(SOMEBODY, 1n)
  t.equal(await adopted?.balance(SOMEBODY), 6n)
  await adopted?.stop()
  t.equal(await adoptTempoChain(chain), undefined, 'gone')
})
