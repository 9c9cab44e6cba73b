import t, { type Test } from 'tap'
import { encodeAbiParameters, parseAbiParameters } from 'viem'
import type { Network } from '../../../../src/engine/base/networks.ts'
import { Chain } from '../../../../src/engine/chains/evm/chain.ts'
import { checkNetwork, checkToken, warningsOf } from '../../../../src/engine/x402/exact-evm/network-check.ts'
import { startEvmChain } from '../../../../src/sandbox/evm/chain.ts'
import { startBase } from '../../../support/base-chain.ts'
import { openRpcProxy, type ConnectionState } from '../../../support/rpc-proxy.ts'
import { addressOf, randomKey } from '../../../support/payment.ts'
import { networkNamed } from '../../../support/shipped-catalog.ts'

const base = networkNamed('base')
const chain = await startBase()
t.teardown(() => chain.stop())

const open = (url: string): Chain => new Chain(url, fetch)

/** Base as it would be if the table were wrong. */
function baseWith(token: Partial<Network['token']>): Network {
  return { ...base, token: { ...base.token, ...token } }
}

/** What an operator reads. */
async function told(t: Test, url: string, network: Network = base, signers = [addressOf(randomKey())]) {
  const check = await checkNetwork(network, url, signers, fetch)
  const lines = warningsOf(network, check)
  t.notMatch(lines.join('\n'), url, 'the endpoint may hold a key')
  return { lines, token: check.token }
}

t.test('stays silent about a sound network', async (t) => {
  const signer = addressOf(randomKey())
  await chain.setGas(signer, 10n ** 18n)
  t.strictSame(await told(t, chain.rpcUrl, base, [signer]), { lines: [], token: { kind: 'agrees' } })
})

t.test('names a token that signs under another domain, with that domain', async (t) => {
  t.strictSame(await checkToken(open(chain.rpcUrl), baseWith({ name: 'USDC' })), {
    kind: 'differs',
    detail: `the token at ${base.token.address} is "USD Coin" version "2", and offers say "USDC" version "2"`,
  })
  t.match(await checkToken(open(chain.rpcUrl), baseWith({ version: '1' })), { kind: 'differs' })
  const { lines, token } = await told(t, chain.rpcUrl, baseWith({ name: 'USDC' }), [])
  t.equal(token.kind, 'differs')
  t.equal(lines.length, 1)
  t.match(lines, [/^x402: Base \(eip155:8453\) cannot be offered: the token at 0x\w+ is "USD Coin" version/])
})

t.test('tells a missing or wrong token contract from a failing node', async (t) => {
  const nothing = { kind: 'differs', detail: /^no token with EIP-3009 answers at 0x/ }
  t.match(await checkToken(open(chain.rpcUrl), baseWith({ address: addressOf(randomKey()) })), nothing)
  const [reverting, silent, chatty] = [randomKey(), randomKey(), randomKey()].map(addressOf)
  if (reverting === undefined || silent === undefined || chatty === undefined) return t.fail('three')
  await chain.setCode(reverting, '0x60006000fd')
  await chain.setCode(silent, '0x00')
  // Answers every question with one word, which is no text.
  await chain.setCode(chatty, ('0x7f' + 'ff'.repeat(32) + '60005260206000f3') as `0x${string}`)
  for (const address of [reverting, silent, chatty])
    t.match(await checkToken(open(chain.rpcUrl), baseWith({ address })), nothing)
})

t.test('names an endpoint of another chain', async (t) => {
  const other = await startEvmChain({
    chainId: 137,
    asset: base.token.address,
    tokenName: 'USD Coin',
    tokenVersion: '2',
  })
  t.teardown(() => other.stop())
  t.strictSame(await checkToken(open(other.rpcUrl), base), {
    kind: 'differs',
    detail: 'RPC_URL_8453 leads to chain 137 and not to Base',
  })
})

t.test('escapes control characters in the name of a token', async (t) => {
  const strange = await startEvmChain({
    chainId: 8453,
    asset: base.token.address,
    tokenName: '\u001b[2J gone',
    tokenVersion: '2',
  })
  t.teardown(() => strange.stop())
  const { lines } = await told(t, strange.rpcUrl, base, [])
  t.match(lines, [/is "\\u001b\[2J gone" version "2"/])
})

t.test('keeps a network in the offer while its node fails', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  for (const way of ['down', 'failing', 'html'] satisfies ConnectionState[]) {
    proxy.set(way)
    const { lines, token } = await told(t, proxy.url)
    t.strictSame(token, { kind: 'unreachable' })
    t.strictSame(lines, ['x402: Base (eip155:8453): the RPC endpoint does not answer'])
  }
  proxy.set('open')
  let calls = 0
  proxy.onCall(async () => {
    calls += 1
    if (calls > 1) proxy.set('down')
  })
  const { token } = await told(t, proxy.url, baseWith({ name: 'USDC' }))
  t.strictSame(token, { kind: 'unreachable' }, 'a difference that cannot be explained is not believed')
})

t.test('states how long each signer can go on', async (t) => {
  const [full, low, empty] = [randomKey(), randomKey(), randomKey()].map(addressOf)
  if (full === undefined || low === undefined || empty === undefined) return t.fail('three')
  await chain.setGas(full, 10n ** 18n)
  await chain.setGas(low, 12_345_678_900_000_000n)
  const { lines, token } = await told(t, chain.rpcUrl, base, [full, low, empty, low])
  t.equal(token.kind, 'agrees')
  t.equal(lines.length, 2)
  t.match(lines, [
    new RegExp(
      `^x402: Base \\(eip155:8453\\): signer ${low} has 0\\.012345678 ETH, for [1-9]\\d* more payments`,
    ),
    new RegExp(
      `^x402: Base \\(eip155:8453\\): signer ${empty} has 0 ETH, not enough for a payment: send it more$`,
    ),
  ])
})

/** A contract that answers every call but `DOMAIN_SEPARATOR()` with these bytes. */
function answering(bytes: `0x${string}`): `0x${string}` {
  const length = ((bytes.length - 2) / 2).toString(16).padStart(4, '0')
  const refusing = '60003560e01c633644e51514601d57'
  return `0x${refusing}61${length}602360003961${length}6000f35b60006000fd${bytes.slice(2)}`
}

t.test('checks a token without DOMAIN_SEPARATOR by the domain it describes (ERC-5267)', async (t) => {
  const describe = (name: string): `0x${string}` =>
    encodeAbiParameters(parseAbiParameters('bytes1, string, string, uint256, address, bytes32, uint256[]'), [
      '0x0f',
      name,
      '2',
      8453n,
      address,
      `0x${'00'.repeat(32)}`,
      [],
    ])
  const address = addressOf(randomKey())
  await chain.setCode(address, answering(describe('USD Coin')))
  t.strictSame(await checkToken(open(chain.rpcUrl), baseWith({ address })), { kind: 'agrees' })
  await chain.setCode(address, answering(describe('Another Coin')))
  t.match(await checkToken(open(chain.rpcUrl), baseWith({ address })), { kind: 'differs' })
})
