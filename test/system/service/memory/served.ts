import t from 'tap'
import { privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage } from 'viem/siwe'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/engine/base/json.ts'
import { schemaDifferences } from '../../../support/service/answer-shape.ts'
import { callTool, listTools, type ToolResult } from '../../../support/mcp.ts'
import { addressOf, sign, type Challenge, type Hex } from '../../../support/payment.ts'
import { runProgram } from '../../../support/server.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const toText = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

t.test('sells memories to wallets on the server that an operator runs', async (t) => {
  // The shipped catalog instead of the one for tests.
  const shop = await openShop(async () => ({ CATALOG: '' }))
  t.teardown(shop.close)
  const url = (): string => `${shop.url}/mcp/memory`
  const call = async (name: string, args: Json, meta: JsonObject = {}): Promise<ToolResult> => {
    const result = await callTool(url(), name, args, { meta })
    if (!result.isError) t.strictSame(schemaDifferences(name, result.content), [], 'as its schema says')
    return result
  }
  /** Signed for what the tool asks; sent by any client. */
  const pay = async (key: Hex, name: string, args: Json): Promise<JsonObject> => {
    const asked = await call(name, args)
    const { payload } = await sign(asked.content as unknown as Challenge, key)
    return { 'x402/payment': payload }
  }
  const buy = async (key: Hex, name: string, args: Json): Promise<ToolResult> =>
    call(name, args, await pay(key, name, args))
  const textsOf = (result: ToolResult, member: string): string[] => {
    const list = result.content[member]
    return Array.isArray(list) ? list.filter(isJsonObject).map(({ text }) => toText(text)) : []
  }
  const prove = async (key: Hex): Promise<JsonObject> => {
    const { content } = await call('memory_delete', { all: true })
    const extensions = content['extensions'] as { 'sign-in-with-x': { info: Record<string, string> } }
    const { domain = '', uri = '', nonce = '', issuedAt = '' } = extensions['sign-in-with-x'].info
    const account = privateKeyToAccount(key)
    const fields = { domain, uri, nonce, version: '1', address: account.address } as const
    const message = createSiweMessage({ ...fields, chainId: 8453, issuedAt: new Date(issuedAt) })
    const signature = await account.signMessage({ message })
    const proof = { ...fields, chainId: 'eip155:8453', type: 'eip191', issuedAt, signature }
    return { 'sign-in-with-x': proof }
  }
  // A new store takes its time to be made; a caller meanwhile waits, and is told so after that.
  await until('the store is made', async () => !(await call('memory_stats', {})).isError)

  t.test('stores a memory for its own payment only', async (t) => {
    const key = await shop.wallet()
    const args = { text: 'The harbour opens at dawn', tags: ['harbour'] }
    const unpaid = await call('memory_write', args)
    t.ok(unpaid.isError)
    t.equal((unpaid.content as unknown as Challenge).accepts[0]?.amount, '1000')
    const payment = await pay(key, 'memory_write', args)
    const twenty = await Promise.all(Array.from({ length: 20 }, () => call('memory_write', args, payment)))
    const ids = twenty.filter(({ isError }) => !isError).map(({ content }) => content['id'])
    t.ok(ids.length > 0)
    t.equal(new Set(ids).size, 1)
    t.equal(await shop.onchain.charges(addressOf(key)), 1)
    const exported = await buy(key, 'memory_export', {})
    t.strictSame(textsOf(exported, 'memories'), [args.text])
    t.equal(exported.content['next_cursor'], null)
    t.equal(await shop.onchain.charges(addressOf(key)), 2)
  })

  t.test('states the price of a memory before the call', async (t) => {
    const prices = (await listTools(url())).map(({ name, description }) => [
      name,
      /Price: \S+|Free/.exec(toText(description))?.[0],
    ])
    t.strictSame(prices, [
      ['memory_write', 'Price: $0.001'],
      ['memory_search', 'Price: $0.002'],
      ['memory_export', 'Price: $0.01'],
      ['memory_stats', 'Free'],
      ['memory_delete', 'Free'],
    ])
  })

  t.test('removes a memory whose payment failed', async (t) => {
    const key = await shop.wallet()
    const payment = await pay(key, 'memory_write', { text: 'This was never paid for' })
    shop.node.onCall(async (method) => {
      if (method === 'eth_sendRawTransaction')
        await shop.onchain.drain(addressOf(key), shop.payTo, 100_000_000n)
    })
    const unsettled = await call('memory_write', { text: 'This was never paid for' }, payment)
    shop.node.onCall(async () => {})
    t.ok(unsettled.isError)
    t.match(unsettled.content, { charged: 'no' })
    t.notOk('id' in unsettled.content)
    await shop.chain.mint(addressOf(key), 1_000_000n)
    t.notOk((await buy(key, 'memory_write', { text: 'This was' })).isError)
    const exported = await buy(key, 'memory_export', {})
    t.strictSame(textsOf(exported, 'memories'), ['This was'])
    t.equal(await shop.onchain.charges(addressOf(key)), 2)
  })

  t.test('writes once under an idempotency key, whatever pays for the call', async (t) => {
    const key = await shop.wallet()
    const args = { text: 'The lamp is lit at dusk', idempotency_key: 'lamp-1' }
    const first = await buy(key, 'memory_write', args)
    t.match(first.content, { repeated: false })
    await shop.restart()
    await until('the store is open', async () => !(await call('memory_stats', {})).isError)
    const second = await buy(key, 'memory_write', args)
    t.match(second.content, { id: first.content['id'] })
    t.equal(second.meta['ratecard/charged'], 'earlier')
    const other = await buy(key, 'memory_write', { ...args, text: 'The lamp is lit at noon' })
    t.ok(other.isError)
    t.match(other.content, { code: 'idempotency_conflict', charged: 'yes' })
    t.equal(await shop.onchain.charges(addressOf(key)), 1, 'whatever pays, one key is one charge')
    t.strictSame(textsOf(await buy(key, 'memory_export', {}), 'memories'), [args.text])
  })

  t.test('keeps wallets apart', async (t) => {
    const [mine, yours] = [await shop.wallet(), await shop.wallet()]
    await buy(mine, 'memory_write', { text: 'My account is with Northbank' })
    await buy(yours, 'memory_write', { text: 'Your account is with Southbank' })
    const found = await buy(yours, 'memory_search', { query: 'My account is with Northbank' })
    t.strictSame(textsOf(found, 'results'), ['Your account is with Southbank'])
    t.equal(found.content['embedder'], 'hash-v1+use-lite-en')
    const named = await call('memory_search', { query: 'Northbank', wallet: addressOf(mine) })
    t.ok(named.isError)
    t.equal(await shop.onchain.charges(addressOf(yours)), 2)
  })

  t.test('charges nothing for a wrong call, and leaves the payment unspent', async (t) => {
    const key = await shop.wallet()
    const payment = await pay(key, 'memory_write', { text: 'x' })
    for (const args of [{}, { text: 7 }, { text: 'a\u0000b' }, { text: 'x', tags: ['t'.repeat(65)] }])
      t.ok((await call('memory_write', args, payment)).isError, JSON.stringify(args))
    t.equal(await shop.onchain.charges(addressOf(key)), 0)
    t.notOk((await call('memory_write', { text: 'x' }, payment)).isError)
    t.equal(await shop.onchain.charges(addressOf(key)), 1)
  })

  t.test('shows and deletes memories only with proof of the wallet', async (t) => {
    const [owner, stranger] = [await shop.wallet(), await shop.wallet()]
    const { content } = await buy(owner, 'memory_write', { text: 'Something that was wrong' })
    const args = { id: toText(content['id']) }
    const open = await call('memory_stats', {})
    t.equal(open.content['wallet'], undefined)
    const own = await call('memory_stats', {}, await prove(owner))
    t.match(own.content['wallet'], { memories: 1 })
    t.ok((await call('memory_delete', args)).isError)
    const theirs = await call('memory_delete', args, await prove(stranger))
    t.equal(theirs.content['code'], 'not_found')
    t.ok((await call('memory_delete', {}, await prove(owner))).isError, 'nothing named')
    const deleted = await call('memory_delete', args, await prove(owner))
    t.equal(deleted.content['deleted'], 1)
    const left = await call('memory_stats', {}, await prove(owner))
    t.match(left.content['wallet'], { memories: 0 })
    t.equal(await shop.onchain.charges(addressOf(owner)), 1)
  })

  t.test('serves everything but memory from a second process', async (t) => {
    const { code, stderr } = await runProgram(['memory', 'export', '--data-dir', shop.server.dataDir])
    t.equal(code, 1)
    t.match(stderr, /open in another process \(\d+\).*DATABASE_URL/s)
    const second = await shop.branch()
    t.match(second.output(), /memory: not served by this process: .*DATABASE_URL/)
    const paidRoute = await fetch(`${second.url}/paid/util/json?input=%7Ba%3A1`)
    t.equal(paidRoute.status, 402)
    const remembering = await callTool(`${second.url}/mcp/memory`, 'memory_write', { text: 'a note' })
    t.ok(remembering.isError)
    t.match(remembering.content, { code: 'not_configured', charged: 'no' })
  })

  t.test('keeps every answered memory through a power cut, for its wallet only', async (t) => {
    const key = await shop.wallet()
    const acknowledged: string[] = []
    for (const round of [1, 2]) {
      const writes = Array.from({ length: 12 }, async (_, number) => {
        const args = { text: `Round ${round}, note ${number}` }
        // Most connections break off.
        const result = await buy(key, 'memory_write', args).catch(() => undefined)
        if (result?.isError === false) acknowledged.push(args.text)
      })
      await until('some are answered', () => acknowledged.length >= round * 4)
      await shop.restart()
      await Promise.all(writes)
    }
    t.ok(acknowledged.length >= 8)
    // Those that were being paid are finished when the lease of the dead process is over.
    await until('every payment has its memory', async () => {
      const stats = await call('memory_stats', {}, await prove(key))
      const wallet = stats.content['wallet']
      if (!isJsonObject(wallet)) return false
      const charged = await shop.onchain.charges(addressOf(key))
      t.ok(Number(wallet['memories']) <= charged, 'every memory was paid for')
      return wallet['memories'] === charged
    })
    const told = textsOf(await buy(key, 'memory_export', {}), 'memories')
    t.strictSame(
      acknowledged.filter((text) => !told.includes(text)),
      [],
      'everything that was answered is kept',
    )
  })

  t.test('lets the operator export and forget a wallet', async (t) => {
    const key = await shop.wallet()
    await buy(key, 'memory_write', { text: 'I live in the lighthouse', tags: ['home'] })
    const run = (name: string, ...more: string[]) =>
      runProgram(['memory', name, '--data-dir', shop.server.dataDir, ...more])
    const leaver = await shop.wallet()
    await buy(leaver, 'memory_write', { text: 'I leave the lighthouse' })
    const gone = await run('forget', '--wallet', addressOf(leaver))
    t.match(gone, { code: 0, stdout: /^forgot 1 memories/ }, 'while the server has the store open')
    t.strictSame(textsOf(await buy(leaver, 'memory_export', {}), 'memories'), [])
    await shop.server.stop()
    const own = ['--wallet', addressOf(key)]
    const { stdout } = await run('export', ...own)
    t.match(JSON.parse(stdout), {
      wallet: `eip155:${addressOf(key).toLowerCase()}`,
      text: 'I live in the lighthouse',
      tags: ['home'],
      embedder: 'hash-v1+use-lite-en',
    })
    t.match(await run('forget', ...own), { code: 0, stdout: /^forgot 1 memories/ })
    t.match(await run('reindex'), { code: 0, stdout: /^reindexed 0 memories/ })
    t.match(await run('forget', '--wallet', 'me'), { code: 64, stderr: /address/ })
  })
})
