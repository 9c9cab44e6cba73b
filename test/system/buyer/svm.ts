import t, { type Test } from 'tap'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit'
import { encodeBase58 } from '../../../src/engine/base/base58.ts'
import { createSvmAccount } from '../../../src/engine/base/svm-signature.ts'
import type { JsonObject } from '../../../src/engine/base/json.ts'
import { adoptSvmChain, startSvmChain, type SvmChain } from '../../../src/sandbox/svm/chain.ts'
import { openBridge } from '../../support/bridge.ts'
import { writeShop } from '../../support/catalogs.ts'
import { at } from '../../support/documents.ts'
import { listening } from '../../support/http.ts'
import { runLine, type Ran } from '../../support/run-command.ts'
import { nodeCommand, startServer } from '../../support/server.ts'
import { svmFacilitator, svmTokenAccount } from '../../support/svm.ts'

const SELLER = fileURLToPath(new URL('../../fixtures/svm/official-seller.ts', import.meta.url))
const DEVNET = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'
const USDC = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU'

const SANDBOX_HEAD = `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base-sepolia, solana-devnet] } }
mcp_servers: { game: { title: Greetings } }
`

const chain = await startSvmChain()
t.teardown(() => chain.stop())
const [buyer, seller] = [createSvmAccount(randomBytes(32)), createSvmAccount(randomBytes(32))]
const key = encodeBase58(buyer.pair)
const feePayerSeed = randomBytes(32)
const feePayer = createSvmAccount(feePayerSeed)
await chain.giveTokens(buyer.address, 1_000_000n)
await chain.giveTokens(seller.address, 0n)
await chain.setLamports(feePayer.address, 1_000_000_000n)

const official = await startSeller(t)

/** An official server and facilitator, in a process of their own. */
async function startSeller(t: Test): Promise<string> {
  const words = [SELLER, chain.rpcUrl, seller.address, feePayerSeed.toString('hex')]
  const child = spawn(...nodeCommand(['--import', 'tsx', ...words]), { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  return String(line).trim()
}

function pay(argv: readonly string[], variables: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const usual = {
    SOLANA_PAYER_PRIVATE_KEY: key,
    RPC_URL_SOLANA_DEVNET: chain.rpcUrl,
    DATA_DIR: t.testdirName,
  }
  return runLine(['pay', ...argv], { variables: { ...usual, ...variables } })
}

async function held({ call }: Pick<SvmChain, 'call'>, owner: string): Promise<bigint> {
  const found = await call('getTokenAccountBalance', [await svmTokenAccount(owner)])
  const amount = at(found, 'value', 'amount')
  return BigInt(typeof amount === 'string' ? amount : -1)
}

const earned = (): Promise<bigint> => held(chain, seller.address)

t.test('pays an official seller from a key in either form, and shows what was charged', async (t) => {
  for (const form of [key, JSON.stringify([...buyer.pair])]) {
    const before = await earned()
    const { code, out, err } = await pay([`${official}/paid`, '--max', '0.02', '--json'], {
      SOLANA_PAYER_PRIVATE_KEY: form,
    })
    t.equal(code, 0, err)
    t.match(JSON.parse(out), {
      status: 200,
      charged: 'yes',
      protocol: 'x402',
      network: DEVNET,
      amount: '0.010000',
      transaction: /^[1-9A-HJ-NP-Za-km-z]{80,90}$/,
      body: { answer: true },
    })
    t.equal(await earned(), before + 10_000n)
  }
  const { err } = await pay([`${official}/paid`, '--max', '0.02'])
  t.match(err, `0.01 USD in USDC on Solana Devnet (${DEVNET}) to ${seller.address}`)
  t.match(err, `signed by ${buyer.address}`)
  t.notMatch(err, key)
})

t.test(
  'signs nothing over the limit, without a key, without a node, or with a key that is none',
  async (t) => {
    const before = await earned()
    t.match(await pay([`${official}/paid`, '--max', '0.009']), { code: 3, err: /the price is over --max/ })
    t.match(await pay([`${official}/paid`]), { code: 3, err: /a real wallet needs --max USD/ })
    t.match(await pay([`${official}/paid`, '--max', '1'], { SOLANA_PAYER_PRIVATE_KEY: '' }), {
      code: 4,
      err: /no wallet: set SOLANA_PAYER_PRIVATE_KEY/,
    })
    t.match(await pay([`${official}/paid`, '--max', '1'], { RPC_URL_SOLANA_DEVNET: 'http://127.0.0.1:1' }), {
      code: 4,
      err: /a node of Solana Devnet must name a block, and none answers: set RPC_URL_SOLANA_DEVNET/,
    })
    t.match(await pay([`${official}/paid`, '--max', '1'], { SOLANA_PAYER_PRIVATE_KEY: `${key}x` }), {
      code: 78,
      err: /SOLANA_PAYER_PRIVATE_KEY must be a key pair of Solana/,
    })
    t.match(await pay([`${official}/paid`, '--max', '1', '--network', 'base']), {
      code: 4,
      err: /no offer of this 402 can be signed here/,
    })
    t.equal(await earned(), before)
  },
)

/** An entry of `accepts`. */
const offer = (changes: JsonObject = {}): JsonObject => ({
  scheme: 'exact',
  network: DEVNET,
  amount: '10000',
  asset: USDC,
  payTo: seller.address,
  maxTimeoutSeconds: 60,
  extra: { feePayer: feePayer.address },
  ...changes,
})

/** A shop with these offers, and the payments that it was sent; the first ones get no answer. */
async function openShop(t: Test, accepts: readonly JsonObject[], lost = 0) {
  const payments: string[] = []
  const server = createServer((request, response) => {
    const payment = request.headers['payment-signature']
    if (typeof payment === 'string') {
      payments.push(payment)
      return payments.length <= lost ? void request.socket.destroy() : void response.end('{}')
    }
    const required = { x402Version: 2, resource: { url: '/' }, accepts }
    const header = Buffer.from(JSON.stringify(required)).toString('base64')
    return void response.writeHead(402, { 'payment-required': header }).end()
  })
  const { url, close } = await listening(server)
  t.teardown(close)
  return { url, payments }
}

t.test('signs no offer that it does not understand, or that would make the buyer pay fees', async (t) => {
  const stranger = createSvmAccount(randomBytes(32)).address
  for (const [name, changes] of Object.entries({
    'another token': { asset: stranger },
    'the token in another letter case': { asset: USDC.toLowerCase() },
    'another network': { network: 'solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z' },
    'no fee payer': { extra: {} },
    'a payee of another chain': { payTo: '0x00000000000000000000000000000000DeaDBeef' },
    'more than a transaction can hold': { amount: String(2n ** 64n) },
    'a memo that is too long': { extra: { feePayer: feePayer.address, memo: 'x'.repeat(257) } },
    'the buyer as fee payer': { extra: { feePayer: buyer.address } },
    'the buyer as payee': { payTo: buyer.address },
  } satisfies Record<string, JsonObject>)) {
    const shop = await openShop(t, [offer(changes)])
    const { code } = await pay([shop.url, '--max', '10'])
    t.equal(code, 4, name)
    t.strictSame(shop.payments, [], name)
  }
})

t.test('pays where it has a key, and names a network when it is told to', async (t) => {
  const onBase = {
    scheme: 'exact',
    network: 'eip155:84532',
    amount: '10000',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    payTo: '0x00000000000000000000000000000000DeaDBeef',
    maxTimeoutSeconds: 60,
    extra: { name: 'USDC', version: '2' },
  }
  const both = { PAYER_PRIVATE_KEY: `0x${'11'.repeat(32)}` }
  const networkOf = async (argv: readonly string[], variables: Readonly<Record<string, string>> = {}) => {
    const shop = await openShop(t, [onBase, offer()])
    const { err } = await pay([shop.url, '--max', '1', ...argv], variables)
    const [payment = ''] = shop.payments
    return payment === ''
      ? err
      : at(JSON.parse(Buffer.from(payment, 'base64').toString()), 'accepted', 'network')
  }
  t.equal(await networkOf([]), DEVNET, 'a key of Solana alone')
  t.equal(await networkOf([], both), 'eip155:84532', 'the first offer of both')
  t.equal(await networkOf(['--network', 'solana-devnet'], both), DEVNET)
  t.match(await networkOf(['--network', 'solan']), /--network takes one of base, .*solana/)
})

t.test(
  'sends the same payment again when the answer was lost, with the memo of the seller in it',
  async (t) => {
    const memo = 'order 7'
    const shop = await openShop(t, [offer({ extra: { feePayer: feePayer.address, memo } })], 1)
    const { code, err } = await pay([shop.url, '--max', '1'])
    t.equal(code, 0, err)
    t.match(err, /the same payment is sent again/)
    t.equal(shop.payments.length, 2)
    t.equal(shop.payments[0], shop.payments[1])
    const payment = JSON.parse(Buffer.from(shop.payments[0] ?? '', 'base64').toString())
    const signer = await createKeyPairSignerFromPrivateKeyBytes(feePayerSeed)
    const verified = await svmFacilitator({ chain, feePayer: signer }).verify(payment, payment.accepted)
    t.match(verified, { isValid: true, payer: buyer.address })
  },
)

t.test('a sandbox sells on Solana to its own wallet, and to a bridge with a key', async (t) => {
  const shop = writeShop(
    t,
    `  /paid/greet: { price: 0.01, summary: Greets, parameters: { name: { type: string, example: Ann } }, tool: game.greet }\n`,
    SANDBOX_HEAD,
  )
  const server = await startServer({
    args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
    env: { TRUST_PROXY: '1' },
  })
  t.teardown(() => server.stop())
  const { dataDir, url } = server
  t.match(server.output(), /on Solana Devnet: .*npx ratecard pay '.*' --network solana-devnet/)
  const { rpcUrl, payTo, identity, mint, pid } = JSON.parse(
    readFileSync(join(dataDir, 'sandbox', 'state.json'), 'utf8'),
  ).svm
  const sandbox = await adoptSvmChain({ rpcUrl, identity, mint, pid })
  if (sandbox === undefined) throw new Error('no chain')
  const words = ['/paid/greet?name=Ann', '--network', 'solana-devnet', '--json']
  const { out, err, code } = await pay(words, { DATA_DIR: dataDir, SOLANA_PAYER_PRIVATE_KEY: '' })
  t.equal(code, 0, err + out)
  t.match(JSON.parse(out), {
    charged: 'yes',
    network: DEVNET,
    amount: '0.010000',
    body: { greeting: 'Hello Ann' },
  })
  t.equal(await held(sandbox, payTo), 10_000n)

  await sandbox.giveTokens(buyer.address, 25_000n)
  const bridge = await openBridge(t, {
    key: '0x',
    url: `${url}/mcp/game`,
    flags: ['--max-per-call', '0.02', '--max', '0.02', '--network', 'solana-devnet'],
    env: { PAYER_PRIVATE_KEY: '', SOLANA_PAYER_PRIVATE_KEY: key, RPC_URL_SOLANA_DEVNET: rpcUrl },
  })
  for (const name of ['Bob', 'Cleo']) {
    const { isError, content, text, meta } = await bridge.call('greet', { name })
    t.notOk(isError, text)
    t.match(content, { greeting: `Hello ${name}` })
    t.match(text, /Paid 0\.01 USD on Solana Devnet, transaction [1-9A-HJ-NP-Za-km-z]{80,90}\./)
    t.match(meta['ratecard/receipt'], { network: DEVNET, payer: buyer.address, charged: 'yes' })
  }
  const third = await bridge.call('greet', { name: 'Dan' })
  t.ok(third.isError)
  t.match(third.text, /0\.02 of the budget of 0\.02 USD are spent .* Nothing was paid\./)
  t.equal(await held(sandbox, payTo), 30_000n)
  await bridge.close()
})
