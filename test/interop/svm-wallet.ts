import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createKeyPairFromPrivateKeyBytes,
  getAddressFromPublicKey,
  getTransactionDecoder,
  getTransactionEncoder,
  partiallySignTransaction,
} from '@solana/kit'
import t from 'tap'
import type { BrowserContext, Page } from 'playwright-core'
import { adoptSvmChain } from '../../src/sandbox/svm/chain.ts'
import { at } from '../support/documents.ts'
import { writeShop } from '../support/catalogs.ts'
import { startServer } from '../support/server.ts'
import { svmTokenAccount } from '../support/svm.ts'
import { findBrowser, loseAnswers, openBrowser } from './support/browser.ts'

const program = findBrowser()
if (program === undefined && process.env['CI'] === '1')
  t.fail('there is no Chromium: apt-get install chromium')
const skip = program === undefined && 'needs Chromium'

const { catalog, handlers } = writeShop(
  t,
  '  /paid/greet: { price: 0.01, handler: greet, summary: Greets }\n',
  `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base-sepolia, solana-devnet] } }
`,
)
const server = await startServer({ args: ['--sandbox', '--catalog', catalog, '--handlers', handlers] })
t.teardown(() => server.stop())
const { rpcUrl, payTo, identity, mint, pid } = JSON.parse(
  readFileSync(join(server.dataDir, 'sandbox', 'state.json'), 'utf8'),
).svm
const adopted = await adoptSvmChain({ rpcUrl, identity, mint, pid })
if (adopted === undefined) throw new Error('the sandbox has no Solana')
const chain = adopted
const browser = program === undefined ? undefined : await openBrowser(program)
t.teardown(() => browser?.close())

const URL_OF_ROUTE = `${server.url}/paid/greet`
const PRICE = 10_000n
const SANDBOX = 'Pay 0.01 USDC on Solana Devnet with the sandbox wallet'
const OWN = 'Pay 0.01 USDC on Solana Devnet with Test wallet'

async function earned(): Promise<bigint> {
  const found = await chain.call('getTokenAccountBalance', [await svmTokenAccount(payTo)])
  const amount = at(found, 'value', 'amount')
  return BigInt(typeof amount === 'string' ? amount : -1)
}

async function openTab(): Promise<{ readonly context: BrowserContext; readonly tab: Page }> {
  if (browser === undefined) throw new Error('no browser')
  const context = await browser.newContext()
  return { context, tab: await context.newPage() }
}

/** When a wallet registers itself: before the page asks for wallets, or after. */
type Moment = 'early' | 'late'

/** A wallet of the Wallet Standard with so much money; it really signs, by the official library. Counts what it signed. */
async function registerWallet(context: BrowserContext, tokens: bigint, moment: Moment) {
  const key = await createKeyPairFromPrivateKeyBytes(randomBytes(32))
  const address = await getAddressFromPublicKey(key.publicKey)
  await chain.giveTokens(address, tokens)
  const signed: string[] = []
  await context.exposeFunction('signTransaction', async (base64: string) => {
    const transaction = getTransactionDecoder().decode(Buffer.from(base64, 'base64'))
    signed.push(base64)
    const partly = await partiallySignTransaction([key], transaction)
    return Buffer.from(getTransactionEncoder().encode(partly)).toString('base64')
  })
  await context.addInitScript(`{
    const account = { address: '${address}', chains: ['solana:devnet'], features: ['solana:signTransaction'] }
    const wallet = {
      version: '1.0.0', name: 'Test wallet', icon: 'data:image/svg+xml;base64,', accounts: [],
      chains: ['solana:mainnet', 'solana:devnet'],
      features: {
        'standard:connect': { version: '1.0.0', connect: async () => ({ accounts: [account] }) },
        'solana:signTransaction': {
          version: '1.0.0', supportedTransactionVersions: ['legacy', 0],
          signTransaction: async ({ account: signer, transaction, chain }) => {
            if (signer !== account || chain !== 'solana:devnet') throw new Error('This account is not mine.')
            const signed = await signTransaction(btoa(String.fromCharCode(...transaction)))
            return [{ signedTransaction: Uint8Array.from(atob(signed), (letter) => letter.charCodeAt(0)) }]
          },
        },
      },
    }
    const callback = (app) => app.register(wallet)
    const announce = () => window.dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: callback }))
    if ('${moment}' === 'early') {
      announce()
      window.addEventListener('wallet-standard:app-ready', ({ detail }) => callback(detail))
    } else window.addEventListener('load', () => announce())
  }`)
  return { address, signed }
}

for (const moment of ['early', 'late'] as const)
  t.test(`pays on Solana with a wallet of the browser that registers ${moment}`, { skip }, async (t) => {
    const { context, tab } = await openTab()
    const { address, signed } = await registerWallet(context, PRICE, moment)
    const refused: string[] = []
    tab.on('console', (message) => {
      if (message.type() === 'error') refused.push(message.text())
    })
    const before = await earned()
    await tab.goto(URL_OF_ROUTE)
    await tab.getByRole('radio', { name: 'Test wallet' }).waitFor()
    t.notOk(await tab.getByRole('button', { name: /^Pay .* on Base Sepolia with Test wallet$/ }).isVisible())
    await tab.getByRole('button', { name: OWN }).click()
    await tab.getByRole('heading', { name: 'Answer', exact: true }).waitFor()
    const outcome = await tab.locator('[id="wallet.outcome"]').innerText()
    t.match(outcome, /Charged\s+0\.01 USDC on Solana Devnet/)
    t.match(outcome, `Payer\n${address}`)
    t.equal((await earned()) - before, PRICE)
    t.equal(signed.length, 1)
    t.strictSame(
      refused.filter((line) => /Content Security Policy/.test(line)),
      [],
    )
    await context.close()
  })

t.test(
  'sends the same payment on Solana again after a lost connection, and is charged once',
  { skip },
  async (t) => {
    const { context, tab } = await openTab()
    const { signed } = await registerWallet(context, 2n * PRICE, 'early')
    const sent = await loseAnswers(tab, '**/paid/greet', 2)
    const before = await earned()
    await tab.goto(URL_OF_ROUTE)
    await tab.getByRole('button', { name: OWN }).click()
    await tab.getByRole('heading', { name: 'Answer', exact: true }).waitFor()
    t.equal(sent.length, 3)
    t.equal(new Set(sent).size, 1, 'one payment')
    t.equal(signed.length, 1)
    t.equal((await earned()) - before, PRICE)
    await context.close()
  },
)

t.test('says that nothing was charged when a wallet has no money or refuses', { skip }, async (t) => {
  const { context, tab } = await openTab()
  await registerWallet(context, 0n, 'early')
  const before = await earned()
  await tab.goto(URL_OF_ROUTE)
  await tab.getByRole('button', { name: OWN }).click()
  await tab.getByRole('heading', { name: 'Payer’s balance is too low' }).waitFor()
  t.match(await tab.locator('[id="wallet.outcome"]').innerText(), /Charged\s+Nothing was charged\./)
  await tab.evaluate(`window.signTransaction = async () => { throw new Error('User rejected the request.') }`)
  await tab.getByRole('button', { name: OWN }).click()
  await tab.getByText('The wallet says: User rejected the request. Nothing was charged.').waitFor()
  t.equal(await earned(), before)
  await context.close()
})

t.test('pays on Solana in a sandbox without a wallet', { skip }, async (t) => {
  const { context, tab } = await openTab()
  const before = await earned()
  await tab.goto(URL_OF_ROUTE)
  await tab.getByRole('button', { name: SANDBOX }).click()
  await tab.getByRole('heading', { name: 'Answer', exact: true }).waitFor()
  t.equal((await earned()) - before, PRICE)
  await context.close()
})

t.test('a page that pays on Solana takes at most 60 KB', { skip }, async (t) => {
  const { context, tab } = await openTab()
  const bodies: Promise<Buffer>[] = []
  tab.on('response', (response) => {
    if (!response.url().endsWith('.ico') && !response.url().endsWith('.svg')) bodies.push(response.body())
  })
  await tab.goto(URL_OF_ROUTE, { waitUntil: 'networkidle' })
  const bytes = Buffer.concat(await Promise.all(bodies)).length
  t.ok(bytes > 0 && bytes <= 60 * 1024, `${bytes} bytes`)
  await context.close()
})
