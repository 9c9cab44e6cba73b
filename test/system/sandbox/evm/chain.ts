import t from 'tap'
import { createServer } from 'node:http'
import { createPublicClient, http } from 'viem'
import { adoptEvmChain, startEvmChain } from '../../../../src/sandbox/evm/chain.ts'
import { openRpcProxy } from '../../../support/rpc-proxy.ts'

const OPTIONS = {
  chainId: 84532,
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  tokenName: 'USDC',
  tokenVersion: '2',
} as const
const SOMEBODY = '0x00000000000000000000000000000000deadbeef'

t.test('starts a chain with money where the tests ask for it', async (t) => {
  const chain = await startEvmChain(OPTIONS)
  t.teardown(() => chain.stop())
  const client = createPublicClient({ transport: http(chain.rpcUrl) })
  t.equal(await client.getChainId(), 84532)
  t.equal((await client.getBlock({ blockNumber: 0n })).hash, chain.genesis)
  t.equal(await chain.balance(SOMEBODY), 0n)
  await chain.mint(SOMEBODY, 3n)
  await chain.mint(SOMEBODY, 4n)
  t.equal(await chain.balance(SOMEBODY), 7n)
  await chain.setGas(SOMEBODY, 9n)
  t.equal(await client.getBalance({ address: SOMEBODY }), 9n)
  await chain.setCode(SOMEBODY, '0x6001')
  t.equal(await client.getCode({ address: SOMEBODY }), '0x6001')
})

t.test('mints with the next block when blocks have a time', async (t) => {
  const chain = await startEvmChain({ ...OPTIONS, blockTime: 1 })
  t.teardown(() => chain.stop())
  await chain.mint(SOMEBODY, 5n)
  t.equal(await chain.balance(SOMEBODY), 5n)
})

t.test('mints on a node that shows its last block before the receipts in it', async (t) => {
  const chain = await startEvmChain(OPTIONS)
  t.teardown(() => chain.stop())
  const node = await openRpcProxy(chain.rpcUrl)
  t.teardown(node.close)
  let asked = 0
  node.instead(async (method) =>
    method === 'eth_getTransactionReceipt' && (asked += 1) <= 3 ? { result: null } : undefined,
  )
  const adopted = await adoptEvmChain({ ...chain, rpcUrl: node.url })
  await adopted?.mint(SOMEBODY, 5n)
  t.equal(await adopted?.balance(SOMEBODY), 5n)
})

t.test('reuses a running chain only when it is the remembered one', async (t) => {
  const chain = await startEvmChain(OPTIONS)
  t.teardown(() => chain.stop())
  await chain.mint(SOMEBODY, 5n)
  t.equal(await adoptEvmChain({ ...chain, genesis: `0x${'00'.repeat(32)}` }), undefined)
  t.equal(await adoptEvmChain({ ...chain, chainId: 8453 }), undefined)
  const adopted = await adoptEvmChain(chain)
  await adopted?.mint(SOMEBODY, 1n)
  t.equal(await adopted?.balance(SOMEBODY), 6n)
  await adopted?.stop()
  t.equal(await adoptEvmChain(chain), undefined, 'gone')
})

t.test('tells another program on the remembered port from a chain', async (t) => {
  const other = createServer((_, response) => response.end('<html>hello</html>'))
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  t.teardown(() => other.close())
  const address = other.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const record = {
    rpcUrl: `http://127.0.0.1:${port}`,
    pid: process.pid,
    chainId: 84532,
    asset: OPTIONS.asset,
    genesis: `0x${'00'.repeat(32)}`,
  } as const
  t.equal(await adoptEvmChain(record), undefined)
})
