/** Refunds whose first attempt did not end, continued with the same key or another one. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { encodeFunctionData, keccak256, parseAbi, parseSignature } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { Transaction } from 'viem/tempo'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import type { PaymentRecord } from '../../../../src/engine/ledger/payment-record.ts'
import { refundTermsOf } from '../../../../src/engine/refunds/refund-proof.ts'
import { TRANSFER_TYPES } from '../../../../src/engine/base/transfer-types.ts'
import { onchainClient } from '../../../support/base-chain.ts'
import { openLedgerFixture, type LedgerFixture } from '../../../support/ledger-fixture.ts'
import { addressOf, type Hex, type SignedPayment } from '../../../support/payment.ts'
import {
  bookSale,
  openRefundPlaces,
  refund,
  refundIn,
  refundOf,
  type RefundPlace,
} from '../../../support/refunds.ts'
import { askNode, openRpcProxy, type RpcProxy } from '../../../support/rpc-proxy.ts'

const places = await openRefundPlaces()
t.teardown(() => places.stop())

/** Undone by no reorganization. */
const FINAL_BLOCKS = 64
const HOUR_S = 3_600

/** A place whose blocks are made by the test. */
class Site {
  readonly place: RefundPlace
  /** Milliseconds. */
  ahead = 0

  constructor(place: RefundPlace) {
    this.place = place
  }

  get chainId(): number {
    return this.place.chainId
  }

  get rpcUrl(): string {
    return this.place.rpcUrl
  }

  async ask(method: string, ...params: readonly unknown[]): Promise<unknown> {
    return (await askNode(this.rpcUrl, method, params)).result
  }

  async pause(): Promise<void> {
    await this.ask('evm_setIntervalMining', 0)
    await this.ask('evm_setAutomine', false)
  }

  async mine(blocks = 1): Promise<void> {
    await this.ask('anvil_mine', `0x${blocks.toString(16)}`)
  }

  /** Makes blocks by itself again. */
  async go(): Promise<void> {
    await this.mine()
    await this.ask('evm_setAutomine', true)
  }

  /** Lets time pass on the chain and for refunds. */
  async wait(seconds: number): Promise<void> {
    this.ahead += seconds * 1_000
    await this.ask('evm_increaseTime', seconds)
    await this.mine()
  }

  /** The keys of two accounts; the second has sent something before, or has not. */
  async accounts(second: 'used' | 'new'): Promise<readonly [Hex, Hex]> {
    const keys = [await this.place.account(), await this.place.account()] as const
    if (second === 'used') for (const nonce of [0, 1]) await this.sendNothing(keys[1], nonce)
    return keys
  }

  /** A call by the account, in a block of its own; resolves to the transaction. */
  async send(key: Hex, call: { readonly to: Hex; readonly data?: Hex }, nonce?: number): Promise<Hex> {
    const account = privateKeyToAccount(key)
    const count = await askNode(this.rpcUrl, 'eth_getTransactionCount', [account.address, 'latest'])
    const fees = { maxFeePerGas: 60_000_000_000n, maxPriorityFeePerGas: 2_000_000_000n }
    const rest = { chainId: this.chainId, nonce: nonce ?? Number(count.result), gas: 1_000_000n, ...fees }
    let raw: Hex
    if (this.place === places.x402) raw = await account.signTransaction({ type: 'eip1559', ...rest, ...call })
    else {
      const transaction = { type: 'tempo', ...rest, calls: [call] } as const
      const hash = keccak256(await Transaction.serialize(transaction))
      raw = await Transaction.serialize(transaction, parseSignature(await account.sign({ hash })))
    }
    const { result } = await askNode(this.rpcUrl, 'eth_sendRawTransaction', [raw])
    if (result === undefined) throw new Error('the node has refused it')
    await this.mine()
    return keccak256(raw)
  }

  /** A transaction of the account that moves nothing, under this account nonce. */
  async sendNothing(key: Hex, nonce: number): Promise<void> {
    await this.send(key, { to: addressOf(key) }, nonce)
  }
}

const TOKEN = parseAbi([
  'function transfer(address to, uint256 amount)',
  'function transferWithMemo(address to, uint256 amount, bytes32 memo)',
])

interface Owed {
  readonly fixture: LedgerFixture
  readonly id: string
  readonly payer: string
  /** What the first attempt has recorded. */
  readonly recorded: () => Promise<SentFields>
}

interface SentFields {
  readonly kind: string
  readonly hash: string
  readonly nonce: number
  readonly sender: string
}

async function owed(t: Test, site: Site): Promise<Owed> {
  const fixture = openLedgerFixture(t)
  const purchase = site.place.purchase()
  const { id } = await bookSale(fixture, purchase)
  const recorded = async (): Promise<SentFields> => {
    const sent = await refundOf(fixture)
    if (sent === undefined || sent.kind === 'due') throw new Error('nothing was sent')
    const { kind, hash, nonce = -1, sender = '' } = sent
    return { kind, hash, nonce, sender }
  }
  return { fixture, id, payer: purchase.payer, recorded }
}

/** Broadcasts a refund that no block contains, and ends without its outcome. */
async function broadcastUnmined(
  t: Test,
  site: Site,
  key: Hex,
  { fixture, id, recorded }: Owed,
): Promise<string> {
  const node = await proxy(t, site)
  node.set('broken_after_send')
  await site.pause()
  t.match(await refund(fixture, { chainId: site.chainId, ahead: site.ahead, rpcUrl: node.url }, key, id), {
    kind: 'unconfirmed',
  })
  const { kind, hash, sender } = await recorded()
  t.match({ kind, sender }, { kind: 'sending', sender: addressOf(key) })
  return hash
}

async function proxy(t: Test, { rpcUrl }: Site): Promise<RpcProxy> {
  const node = await openRpcProxy(rpcUrl)
  t.teardown(() => node.close())
  return node
}

function run(site: Site, key: Hex, { fixture, id }: Owed) {
  const { chainId, rpcUrl, ahead } = site
  return refund(fixture, { chainId, rpcUrl, ahead }, key, id)
}

const sites = { x402: new Site(places.x402), mpp: new Site(places.mpp) }

for (const [protocol, site] of Object.entries(sites)) {
  const { place } = site

  t.test(
    `${protocol}: another key waits for the refund that is on its way, and sends none of its own`,
    async (t) => {
      for (const age of ['used', 'new'] as const) {
        const [first, second] = await site.accounts(age)
        const sale = await owed(t, site)
        const hash = await broadcastUnmined(t, site, first, sale)
        const node = await proxy(t, site)
        node.onCall(async (method) => {
          if (method === 'eth_getTransactionReceipt' && node.calls().includes('eth_sendRawTransaction'))
            await site.mine()
        })
        const { chainId, ahead } = site
        const result = await refund(sale.fixture, { chainId, ahead, rpcUrl: node.url }, second, sale.id)
        await site.go()
        t.match(result, { kind: 'sent', hash }, `a ${age} account`)
        t.equal(await place.balance(sale.payer), 5000n)
        t.match(await sale.recorded(), { kind: 'sent', hash, sender: addressOf(first) })
        t.match(await run(site, second, sale), { kind: 'refused', reason: /was refunded before/ })
        t.equal(await place.balance(sale.payer), 5000n)
      }
    },
  )

  t.test(
    `${protocol}: another key finds the refund that was mined after its command had ended`,
    async (t) => {
      const [first, second] = await site.accounts('new')
      const sale = await owed(t, site)
      const hash = await broadcastUnmined(t, site, first, sale)
      await site.go()
      t.match(await run(site, second, sale), { kind: 'sent', hash })
      t.equal(await place.balance(sale.payer), 5000n)
    },
  )

  t.test(`${protocol}: another key finds a refund that the ledger has forgotten`, async (t) => {
    const [first, second] = await site.accounts('new')
    const sale = await owed(t, site)
    const sent = await run(site, first, sale)
    t.match(sent, { kind: 'sent' })
    const [record] = await sale.fixture.all()
    if (record === undefined) throw new Error('there is a record')
    await sale.fixture.amend(withoutRefund(record), {})
    t.equal(await refundOf(sale.fixture), undefined)
    t.match(await run(site, second, sale), sent)
    t.match(await sale.recorded(), { sender: addressOf(first) })
    t.equal(await place.balance(sale.payer), 5000n)
  })

  t.test(`${protocol}: sends the same transaction again after its block was undone`, async (t) => {
    const key = await place.account()
    const sale = await owed(t, site)
    const sent = await run(site, key, sale)
    t.match(sent, { kind: 'sent' })
    await site.ask('anvil_reorg', 1, [])
    t.equal(await place.balance(sale.payer), 0n)
    t.match(await run(site, await place.account(), sale), sent)
    t.equal(await place.balance(sale.payer), 5000n)
  })

  t.test(`${protocol}: many runs with two keys at the same time send one refund`, async (t) => {
    const keys = await site.accounts('used')
    const sale = await owed(t, site)
    const ledger = await openLmdbLedger(join(sale.fixture.dataDir, 'ledger'))
    const results = await Promise.all(
      Array.from({ length: 28 }, (_, place_) => {
        const key = keys[place_ % 2]
        if (key === undefined) throw new Error('there are two')
        return refundIn(ledger, site, key, sale.id, `command ${place_}`)
      }),
    )
    await ledger.close()
    t.equal(results.filter(({ kind }) => kind === 'sent').length, 1)
    t.equal(results.filter(({ kind }) => kind === 'refused').length, 27)
    t.equal(await place.balance(sale.payer), 5000n)
  })

  t.test(`${protocol}: refuses to send beside an attempt whose account is not in the record`, async (t) => {
    const [first, second] = await site.accounts('new')
    const sale = await owed(t, site)
    const hash = await broadcastUnmined(t, site, first, sale)
    const [record] = await sale.fixture.all()
    const { nonce } = await sale.recorded()
    if (record === undefined) throw new Error('there is a record')
    await sale.fixture.amend(record, { refund: { kind: 'sending', hash, raw: '0x00', nonce } })
    for (const key of [first, second])
      t.match(await run(site, key, sale), { kind: 'refused', reason: /does not say which account/ })
    await site.go()
    t.match(await run(site, second, sale), { kind: 'sent', hash })
    t.match(await sale.recorded(), { sender: addressOf(first) })
    t.equal(await place.balance(sale.payer), 5000n)
  })
}

function withoutRefund({ refund: _refund, ...record }: PaymentRecord): PaymentRecord {
  return record
}

t.test('mpp: another key sends once the first transaction is finally replaced, and no sooner', async (t) => {
  const site = sites.mpp
  const [first, second] = await site.accounts('new')
  const sale = await owed(t, site)
  const hash = await broadcastUnmined(t, site, first, sale)
  await site.ask('anvil_dropTransaction', hash)
  await site.sendNothing(first, (await sale.recorded()).nonce)
  for (const key of [first, second])
    t.match(await run(site, key, sale), { kind: 'refused', reason: /its block may still be undone/ })
  await site.mine(FINAL_BLOCKS)
  await site.go()
  const sent = await run(site, second, sale)
  t.match(sent, { kind: 'sent' })
  t.not(sent.kind === 'sent' && sent.hash, hash)
  t.match(await sale.recorded(), { sender: addressOf(second) })
  t.equal(await site.place.balance(sale.payer), 5000n)
})

t.test('x402: the same key signs again at once when its transaction was replaced', async (t) => {
  const site = sites.x402
  const key = await site.place.account()
  const sale = await owed(t, site)
  const hash = await broadcastUnmined(t, site, key, sale)
  await site.ask('anvil_dropTransaction', hash)
  await site.sendNothing(key, (await sale.recorded()).nonce)
  await site.go()
  t.match(await run(site, key, sale), { kind: 'sent' })
  t.equal(await site.place.balance(sale.payer), 5000n)
})

/** The authorization in the calldata of a refund, as anybody reads it in the transaction pool. */
async function authorizationIn(
  site: Site,
  hash: string,
): Promise<Pick<SignedPayment, 'authorization' | 'signature'>> {
  const { input } = (await site.ask('eth_getTransactionByHash', hash)) as { readonly input: Hex }
  const words = input.slice(10).match(/.{64}/g) ?? []
  const [from = '', to = '', value = '', after = '', before = '', nonce = '', v = '', r = '', s = ''] = words
  return {
    authorization: {
      from: `0x${from.slice(24)}`,
      to: `0x${to.slice(24)}`,
      value: BigInt(`0x${value}`),
      validAfter: BigInt(`0x${after}`),
      validBefore: BigInt(`0x${before}`),
      nonce: `0x${nonce}`,
    },
    signature: `0x${r}${s}${v.slice(-2)}`,
  }
}

t.test(
  'x402: another key finds the refund that a stranger has carried out with what was signed',
  async (t) => {
    const site = sites.x402
    const [first, second] = await site.accounts('used')
    const sale = await owed(t, site)
    const hash = await broadcastUnmined(t, site, first, sale)
    const authorization = await authorizationIn(site, hash)
    await site.ask('anvil_dropTransaction', hash)
    await site.sendNothing(first, (await sale.recorded()).nonce)
    t.match(await run(site, second, sale), { kind: 'refused', reason: /can still be carried out until/ })
    await site.go()
    await onchainClient(places.base).submit(authorization)
    t.equal(await site.place.balance(sale.payer), 5000n)
    const found = await run(site, second, sale)
    t.match(found, { kind: 'sent' })
    t.not(found.kind === 'sent' && found.hash, hash)
    t.match(await sale.recorded(), { sender: addressOf(first) })
    t.equal(await site.place.balance(sale.payer), 5000n)
  },
)

/** The name of another refund. */
const OTHER_NAME = `0x${'5a'.repeat(32)}` as const

/** Sends one unit to a payer from any account, under the name of the refund. */
async function sendNamed(site: Site, key: Hex, record: PaymentRecord): Promise<void> {
  const terms = refundTermsOf(record)
  if (terms === undefined) throw new Error('it can be refunded')
  const { token, payer: to, mark, by } = terms
  const account = privateKeyToAccount(key)
  if (by.kind === 'memo') {
    const data = encodeFunctionData({ abi: TOKEN, functionName: 'transferWithMemo', args: [to, 1n, mark] })
    await site.send(key, { to: token, data })
    return
  }
  const { name, version } = by.network.token
  const validBefore = BigInt(Math.floor(Date.now() / 1_000) + HOUR_S)
  const authorization = { from: account.address, to, value: 1n, validAfter: 0n, validBefore, nonce: mark }
  const signature = await account.signTypedData({
    domain: { name, version, chainId: site.chainId, verifyingContract: token },
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  })
  await onchainClient(places.base).submit({ authorization, signature })
}

for (const [protocol, site] of Object.entries(sites)) {
  t.test(
    `${protocol}: a transfer counts as the refund by its name together with its amount only`,
    async (t) => {
      const [first, second] = await site.accounts('new')
      const sale = await owed(t, site)
      const [record] = await sale.fixture.all()
      if (record === undefined) throw new Error('there is a record')
      await sendNamed(site, second, record)
      const args = [sale.payer as Hex, 5000n] as const
      const data =
        protocol === 'mpp'
          ? encodeFunctionData({ abi: TOKEN, functionName: 'transferWithMemo', args: [...args, OTHER_NAME] })
          : encodeFunctionData({ abi: TOKEN, functionName: 'transfer', args })
      const hash = await site.send(second, { to: record.asset as Hex, data })
      const foreign = { kind: 'sending', hash, raw: '0x00', nonce: 0 } as const
      await sale.fixture.amend(record, { refund: foreign })
      t.match(await run(site, first, sale), { kind: 'refused', reason: /the chain does not show it/ })
      t.match(await refundOf(sale.fixture), foreign)
      const [recorded] = await sale.fixture.all()
      if (recorded === undefined) throw new Error('there is a record')
      await sale.fixture.amend(withoutRefund(recorded), {})
      t.match(await run(site, first, sale), { kind: 'sent' })
      t.equal(await site.place.balance(sale.payer), 10_001n, 'both gifts and the refund')
    },
  )
}

/** Last, since the chains are ahead of time afterwards. */
for (const [protocol, site] of Object.entries(sites)) {
  const { place } = site
  t.test(
    `${protocol}: another key sends once the first transaction has expired, and no sooner`,
    async (t) => {
      const [first, second] = await site.accounts('used')
      const sale = await owed(t, site)
      const hash = await broadcastUnmined(t, site, first, sale)
      const raw = await refundOf(sale.fixture)
      await site.ask('anvil_dropTransaction', hash)
      await site.wait(2 * HOUR_S)
      // The end is in a block that may be undone: the same bytes once more.
      t.match(await run(site, second, sale), { kind: /unconfirmed|refused/ })
      t.match(await sale.recorded(), { kind: 'sending', hash })
      await site.ask('anvil_dropTransaction', hash)
      await site.mine(FINAL_BLOCKS)
      await site.go()
      t.match(await run(site, second, sale), { kind: 'sent' })
      t.match(await sale.recorded(), { kind: 'sent', sender: addressOf(second) })
      t.equal(await place.balance(sale.payer), 5000n)
      // What the first key has signed moves nothing any more.
      await askNode(site.rpcUrl, 'eth_sendRawTransaction', [raw?.kind === 'sending' ? raw.raw : ''])
      await site.mine()
      t.equal(await place.balance(sale.payer), 5000n)
    },
  )
}
