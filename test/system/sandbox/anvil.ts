import t from 'tap'
import { anvilBinary, startAnvil } from '../../../src/sandbox/anvil.ts'

async function chainId(rpcUrl: string): Promise<unknown> {
  const answer = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }),
  })
  return answer.json()
}

t.test('runs two nodes side by side on this machine only, and ends them', async (t) => {
  const nodes = await Promise.all([startAnvil(84532), startAnvil(8453, ['--accounts', '1'])])
  t.teardown(() => Promise.all(nodes.map((node) => node.stop())))
  const [first, second] = nodes
  t.match(first.rpcUrl, /^http:\/\/127\.0\.0\.1:\d+$/)
  t.not(first.rpcUrl, second.rpcUrl)
  t.match(await chainId(first.rpcUrl), { result: '0x14a34' })
  t.match(await chainId(second.rpcUrl), { result: '0x2105' })
  await first.stop()
  await t.rejects(chainId(first.rpcUrl))
  t.match(await chainId(second.rpcUrl), { result: '0x2105' })
  await t.resolves(first.stop(), 'ending it twice is harmless')
})

t.test('reports why a node fails to start', async (t) => {
  await t.rejects(startAnvil(84532, ['--no-such-flag']), /^anvil ended with code \d+ .*--no-such-flag/s)
})

t.test('names what to install when the binary is missing', async (t) => {
  t.throws(
    () => anvilBinary('sunos', 'x64'),
    /@foundry-rs\/anvil-sunos-amd64 is not installed\. Run: npm install --include=optional/,
  )
  t.match(anvilBinary(process.platform, process.arch), /bin[\\/]anvil(\.exe)?$/)
})
