import t, { type Test } from 'tap'
import { join } from 'node:path'
import { pad, toEventSelector } from 'viem'
import type { PaymentRecord, Purchase } from '../../../../src/engine/ledger/payment-record.ts'
import type { JsonObject } from '../../../../src/engine/base/json.ts'
import {
  ANSWER,
  HOUR,
  loseOutcome,
  MINUTE,
  openLedgerFixture,
  parse,
  purchaseOf,
  randomHash,
  receiptOf,
  SECRETS,
  sell,
  USDC,
  type LedgerFixture,
  type Processing,
} from '../../../support/ledger-fixture.ts'
import { runLine, type Ran } from '../../../support/run-command.ts'
import {
  openRpcInterceptor,
  rpcRefusal,
  rpcResult,
  type RpcInterceptor,
  type RpcReply,
  type RpcCall,
} from '../../../support/rpc-proxy.ts'
import { signTransfer, startBackdatedChain, type BackdatedChain } from '../../../support/backdated-chain.ts'
import { addressOf, randomKey, type Faults, type Hex, type SignedPayment } from '../../../support/payment.ts'

const USED = toEventSelector('AuthorizationUsed(address,bytes32)')

const NOW = Date.now()

/** A seller with a ledger, paid on a chain that began four hours ago. */
interface Seller {
  readonly past: BackdatedChain
  readonly fixture: LedgerFixture
  readonly payTo: Hex
  readonly key: Hex
  sign(faults?: Faults): Promise<SignedPayment>
  /** Records a payment as a server would have. */
  record(
    payment: SignedPayment,
    work: Processing,
    changes?: Partial<Purchase>,
    at?: number,
  ): Promise<PaymentRecord>
  reconcile(flags?: readonly string[], variables?: Readonly<Record<string, string>>): Promise<Ran>
}

async function openSeller(t: Test): Promise<Seller> {
  const fixture = openLedgerFixture(t)
  const payTo = addressOf(randomKey())
  const past = await startBackdatedChain(NOW - 4 * HOUR)
  t.teardown(() => past.chain.stop())
  const key = await past.wallet()
  return {
    past,
    fixture,
    payTo,
    key,
    // Valid for an hour when it was signed, and expired long ago.
    sign: (faults) => signTransfer(key, payTo, { validBefore: seconds(NOW - 2 * HOUR), ...faults }),
    record: (
      { authorization: { from, nonce, validBefore, value } },
      work,
      changes = {},
      at = NOW - 3.5 * HOUR,
    ) =>
      fixture.record(
        purchaseOf({
          key: ['x402', 'exact', 'eip155:8453', USDC, from, nonce.toLowerCase()].join(':'),
          payer: from,
          payee: payTo,
          amount: String(value),
          validBefore: Number(validBefore) * 1000,
          ...changes,
        }),
        at,
        work,
      ),
    reconcile: async (flags = ['--json'], variables = {}) => {
      const before = await fixture.all()
      const ran = await runLine(['payments', 'reconcile', '--data-dir', fixture.dataDir, ...flags], {
        variables: { PAY_TO: payTo, RPC_URL_8453: past.chain.rpcUrl, ...variables },
      })
      for (const secret of SECRETS) t.notMatch(ran.out + ran.err, secret, 'nothing secret is printed')
      t.notMatch(ran.out + ran.err, /127\.0\.0\.1|localhost/, 'no endpoint is printed')
      t.strictSame(await fixture.all(), before, 'the ledger is what it was')
      return ran
    },
  }
}

function seconds(ms: number): bigint {
  return BigInt(Math.floor(ms / 1000))
}

/** Sells for a payment that the chain has carried out in `transaction`. */
function sold({ authorization: { from, value } }: SignedPayment, transaction: string): Processing {
  return sell({ transaction, network: 'eip155:8453', payer: from, amount: String(value) })
}

interface Found extends JsonObject {
  readonly kind: string
  readonly ledger: (JsonObject & { readonly payment: string }) | null
  readonly chain: JsonObject & { readonly shows: string }
  readonly advice: string
}

interface Checked extends JsonObject {
  readonly status: string
  readonly agreed: number
  readonly underway: number
  readonly other_transfers: JsonObject
  readonly differences: readonly Found[]
}

function networks({ out }: Ran): Checked[] {
  return parse(out)['networks'] as unknown as Checked[]
}

function network(ran: Ran): Checked {
  const [first] = networks(ran)
  if (first === undefined) throw new Error(ran.out)
  return first
}

/** What happens is four hours ago, and then the chain goes on until now. */
async function happen({ past }: Seller, work: () => Promise<void>): Promise<void> {
  await work()
  await past.mineNow()
}

t.test('confirms correct records, and counts transfers of others apart', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const payments = await Promise.all([seller.sign(), seller.sign(), seller.sign()])
  await happen(seller, async () => {
    for (const payment of payments)
      await seller.record(payment, sold(payment, await past.onchain.submit(payment)))
    await past.onchain.drain(addressOf(seller.key), seller.payTo, 1_500_000n)
    await past.chain.mint(seller.payTo, 7n)
  })
  const ran = await seller.reconcile()
  t.equal(ran.code, 0)
  t.match(network(ran), {
    network: 'eip155:8453',
    protocol: 'x402',
    status: 'checked',
    payees: [seller.payTo],
    agreed: 3,
    underway: 0,
    other_transfers: { count: 2, amount: '1.500007' },
  })
  t.strictSame(network(ran).differences, [])
  const text = await seller.reconcile([])
  t.equal(text.code, 0)
  t.match(text.out, /3 agreed, 0 under way, 2 other transfers \(1\.500007 USDC\)/)
  t.match(text.out, /no difference; nothing was changed$/)
})

t.test('tells the payments of many simultaneous buyers apart', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const keys: Hex[] = []
  while (keys.length < 55) keys.push(await past.wallet())
  await happen(seller, async () => {
    for (const key of keys) {
      const payment = await signTransfer(key, seller.payTo, { validBefore: seconds(NOW - 2 * HOUR) })
      await seller.record(payment, sold(payment, await past.onchain.submit(payment)))
    }
  })
  t.match(network(await seller.reconcile()), {
    agreed: keys.length,
    other_transfers: { count: 0 },
    differences: [],
  })
})

t.test('counts a gift in the transaction of a payment to others as a gift', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  await seller.record(await seller.sign(), (lease) => lease.void())
  await happen(seller, () => past.onchain.drain(addressOf(seller.key), seller.payTo, 5000n))
  const topics = [toEventSelector('Transfer(address,address,uint256)'), null, pad(seller.payTo)]
  const search = { address: USDC, topics, fromBlock: '0x0', toBlock: 'latest' }
  const [gift] = (await past.call('eth_getLogs', [search])) as { topics: string[] }[]
  for (const [usedAt, kind] of [
    ['0x4', 'payment'],
    ['0x3', 'gift'],
  ] as const) {
    // As a contract would leave it that first pays somebody else by an authorization, and then sends us something.
    const used = { ...gift, topics: [USED, gift?.topics[1], `0x${'07'.repeat(32)}`], logIndex: usedAt }
    const node = await openNode(t, seller, ({ method, params }) => {
      if (method !== 'eth_getLogs') return undefined
      const asked = (params[0] as { topics: string[] }).topics[0]
      return rpcResult([asked === USED ? used : { ...gift, logIndex: '0x5' }])
    })
    const { differences, other_transfers: others } = network(
      await seller.reconcile(['--json'], { RPC_URL_8453: node.url }),
    )
    t.equal(differences.length, kind === 'payment' ? 1 : 0, kind)
    t.match(others, { count: kind === 'payment' ? 0 : 1 }, kind)
  }
})

t.test('counts only payments to our payee when another payee is invalid', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [ours, theirs] = [await seller.sign(), await signTransfer(seller.key, addressOf(randomKey()))]
  await happen(seller, async () => {
    await past.onchain.submit(theirs)
    await seller.record(ours, (lease) => lease.void(), { payee: 'nobody' })
  })
  const ran = await seller.reconcile(['--json'], {
    PAY_TO: '',
    CATALOG: join(seller.fixture.dataDir, 'none.yaml'),
  })
  t.match(networks(ran), [{ status: 'unchecked', reason: 'no address of a payee is known' }])
  t.equal(ran.code, 1)
})

t.test('finds a sale that is missing on chain, with the state of its authorization', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [gone, open, canceled, elsewhere] = await Promise.all([
    seller.sign(),
    seller.sign({ validBefore: seconds(NOW + HOUR) }),
    seller.sign(),
    seller.sign(),
  ])
  const { nonce } = elsewhere.authorization
  const other = await signTransfer(seller.key, addressOf(randomKey()), {
    nonce,
    validBefore: seconds(NOW - 2 * HOUR),
  })
  const ids: string[] = []
  await happen(seller, async () => {
    await past.cancel(seller.key, canceled.authorization.nonce)
    await past.onchain.submit(other)
    for (const payment of [gone, open, canceled, elsewhere])
      ids.push((await seller.record(payment, sold(payment, randomHash()))).id)
  })
  const ran = await seller.reconcile()
  t.equal(ran.code, 2)
  const { differences, agreed } = network(ran)
  t.equal(agreed, 0)
  for (const { kind } of differences) t.equal(kind, 'missing_on_chain')
  t.strictSame(
    Object.fromEntries(differences.map(({ ledger, chain: { shows } }) => [ledger?.payment, shows])),
    Object.fromEntries(
      ['expired', 'open', 'canceled', 'elsewhere'].map((shows, place) => [ids[place], shows]),
    ),
  )
  for (const { advice } of differences) t.match(advice, /ask another node first/)
  const text = await seller.reconcile([])
  t.match(text.out, `missing on chain: ${ids[0]}, 0.005000 USDC for util/workday`)
  t.match(text.out, /on the chain it was never used and has expired\./)
  t.match(text.out, /4 differences; nothing was changed/)
  const argv = ['payments', 'reconcile', '--data-dir', seller.fixture.dataDir]
  const variables = { PAY_TO: seller.payTo, RPC_URL_8453: past.chain.rpcUrl }
  const shown = await runLine(argv, { variables, reader: 'person' })
  t.match(shown.out, `missing on chain: ${ids[0]}`)
  for (const line of shown.out.split('\n')) t.ok(line.length <= 80, line)
})

t.test('finds money without a sale: a third party’s authorization, and each abandoned payment', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [unknown, voided, reserved, fulfilled] = await Promise.all([
    seller.sign({ value: 7000n }),
    seller.sign(),
    seller.sign(),
    seller.sign(),
  ])
  const hashes: string[] = []
  const ids: string[] = []
  await happen(seller, async () => {
    for (const payment of [unknown, voided, reserved, fulfilled])
      hashes.push(await past.onchain.submit(payment))
    ids.push((await seller.record(voided, (lease) => lease.void())).id)
    ids.push((await seller.record(reserved, async () => undefined)).id)
    ids.push((await seller.record(fulfilled, (lease) => lease.advance('fulfilled', { answer: ANSWER }))).id)
  })
  const ran = await seller.reconcile()
  t.equal(ran.code, 2)
  const [first, ...rest] = network(ran).differences
  t.match(first, {
    kind: 'not_in_ledger',
    ledger: null,
    chain: { transaction: hashes[0], payer: addressOf(seller.key), payee: seller.payTo, amount: '0.007000' },
    advice: `refund 0.007000 USDC to ${addressOf(seller.key)}`,
  })
  t.strictSame(
    rest.map(({ kind, ledger, chain: { transaction } }) => [kind, ledger?.payment, transaction]),
    ids.map((id, place) => ['not_booked', id, hashes[place + 1]]),
  )
  t.strictSame(
    rest.map(({ ledger }) => ledger?.['state']),
    ['voided', 'reserved', 'fulfilled'],
  )
  t.match(rest[2]?.advice, /by sending the same payment again, which also records it/)
})

t.test('finds amounts that differ from the chain, each by its name', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [amount, transaction] = await Promise.all([seller.sign(), seller.sign()])
  const otherAmount = await seller.sign({ nonce: amount.authorization.nonce, value: 9000n })
  const right: string[] = []
  await happen(seller, async () => {
    // The payer signed twice under one nonce, and the other authorization was carried out.
    right.push(await past.onchain.submit(otherAmount), await past.onchain.submit(transaction))
    await seller.record(amount, sold(amount, right[0] ?? ''))
    await seller.record(transaction, sold(transaction, randomHash()))
  })
  const ran = await seller.reconcile()
  t.equal(ran.code, 2)
  t.match(network(ran).differences, [
    { kind: 'differs', fields: ['amount'], says: /amount: ledger 0\.005000 USDC, chain 0\.009000 USDC/ },
    { kind: 'differs', fields: ['transaction'], says: `chain ${right[1]}` },
  ])
})

t.test('finds a recorded payer or payee that differs from the chain', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [payer, payee] = await Promise.all([seller.sign(), seller.sign()])
  const stranger = addressOf(randomKey())
  await happen(seller, async () => {
    const [a, b] = [await past.onchain.submit(payer), await past.onchain.submit(payee)]
    const receipt = { transaction: a, network: 'eip155:8453', payer: stranger, amount: '5000' }
    await seller.record(payer, sell(receipt))
    await seller.record(payee, sold(payee, b), { payee: stranger })
  })
  const { differences } = network(await seller.reconcile())
  t.strictSame(
    differences.map(({ kind, fields }) => [kind, fields]),
    [
      ['differs', ['payer']],
      ['differs', ['payee']],
    ],
  )
})

t.test('resolves payments of unknown outcome from the chain, at any age', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [moved, lost, open, settling, ancient] = await Promise.all([
    seller.sign(),
    seller.sign(),
    seller.sign({ validBefore: seconds(NOW + HOUR) }),
    seller.sign(),
    seller.sign(),
  ])
  const ids: string[] = []
  await happen(seller, async () => {
    const hash = await past.onchain.submit(moved)
    ids.push((await seller.record(moved, loseOutcome('unknown', hash))).id)
    ids.push((await seller.record(lost, loseOutcome('unknown'))).id)
    ids.push((await seller.record(open, loseOutcome('unknown'))).id)
    ids.push((await seller.record(settling, loseOutcome('settling'))).id)
    ids.push((await seller.record(ancient, loseOutcome('unknown'), {}, NOW - 40 * 24 * HOUR)).id)
  })
  const ran = await seller.reconcile()
  t.equal(ran.code, 2)
  const told = new Map(
    network(ran).differences.map(({ kind, ledger, chain: { shows }, advice }) => [
      ledger?.payment,
      { kind, shows, advice },
    ]),
  )
  t.equal(told.size, ids.length)
  for (const [place, shows] of ['moved', 'expired', 'open', 'expired', 'expired'].entries())
    t.match(told.get(ids[place] ?? ''), { kind: 'unresolved', shows }, shows)
  t.match(told.get(ids[0] ?? '')?.advice, /the buyer gets the answer by sending the same payment again/)
  t.match(told.get(ids[2] ?? '')?.advice, /check again once it has expired/)
})

t.test('accepts payments that a server is settling right now', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [working, settling, fresh] = await Promise.all([seller.sign(), seller.sign(), seller.sign()])
  await happen(seller, async () => {
    await past.onchain.submit(working)
    await past.onchain.submit(settling)
    // Its lease runs for another minute.
    await seller.record(working, async () => undefined, {}, Date.now() + MINUTE)
    await seller.record(settling, loseOutcome('settling'), {}, Date.now() - MINUTE)
    await seller.record(fresh, sold(fresh, randomHash()), {}, Date.now())
  })
  const ran = await seller.reconcile()
  t.equal(ran.code, 0)
  t.match(network(ran), { agreed: 0, underway: 3, differences: [] })
})

t.test('accepts a sale at the edge of the requested period whose block lies outside', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [before, after] = await Promise.all([seller.sign(), seller.sign()])
  const blocks: number[] = []
  await happen(seller, async () => {
    const early = await past.onchain.submit(before)
    await past.pass(10)
    const between = await past.headTime()
    blocks.push(between)
    await past.pass(10)
    const late = await past.onchain.submit(after)
    // Booked after the edge, mined before it; and the other way round.
    await seller.record(before, sold(before, early), {}, between + 5000)
    await seller.record(after, sold(after, late), {}, between - 5000)
  })
  const since = new Date(blocks[0] ?? 0).toISOString()
  const ran = await seller.reconcile(['--json', '--since', since])
  t.equal(ran.code, 0)
  t.match(network(ran), { agreed: 2, differences: [] })
})

t.test('searches from the first block of the requested period on', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  await seller.record(await seller.sign(), (lease) => lease.void())
  const times: number[] = []
  await happen(seller, async () => {
    for (let number = 0; number < 16; number += 1) {
      await past.pass(1)
      await past.onchain.submit(await seller.sign())
      times.push(await past.headTime())
    }
  })
  for (const since of times.flatMap((time) => [time, time + 1])) {
    const ran = await seller.reconcile(['--json', '--since', new Date(since).toISOString()])
    t.equal(network(ran).differences.length, times.filter((time) => time >= since).length)
  }
})

t.test('leaves older payments out unless they are requested', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [missing, unbooked] = await Promise.all([seller.sign(), seller.sign()])
  await happen(seller, async () => {
    await past.onchain.submit(unbooked)
    await seller.record(missing, sold(missing, randomHash()))
  })
  t.match(await seller.reconcile(['--json', '--since', '1m']), { code: 0 })
  t.equal(network(await seller.reconcile(['--json', '--since', '5h'])).differences.length, 2)
})

t.test('checks an address that was paid before, though the catalog has dropped it', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const [known, stranger] = await Promise.all([seller.sign(), seller.sign()])
  await happen(seller, async () => {
    await seller.record(known, sold(known, await past.onchain.submit(known)))
    await past.onchain.submit(stranger)
  })
  const elsewhere = await seller.reconcile(['--json'], { PAY_TO: addressOf(randomKey()) })
  t.equal(network(elsewhere).differences.length, 1)
  const nowhere = await seller.reconcile(['--json'], {
    PAY_TO: '',
    CATALOG: join(seller.fixture.dataDir, 'none.yaml'),
  })
  t.equal(network(nowhere).differences.length, 1)
  t.match(nowhere.err, /only payees of the ledger are checked/)
})

t.test('reads the payee from the catalog when the environment leaves it open', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const payment = await seller.sign()
  await happen(seller, async () => {
    await past.onchain.submit(payment)
    await seller.record(await seller.sign(), async () => undefined, { payee: addressOf(randomKey()) })
  })
  const text = `catalog: 1
service: { name: Shop, version: '1.0.0' }
payments: { currency: USD, pay_to: "${seller.payTo}", x402: { networks: [base] } }
routes: { /paid/greet: { price: 0.01, summary: Greets } }
`
  const catalog = join(t.testdir({ 'catalog.yaml': text }), 'catalog.yaml')
  const ran = await seller.reconcile(['--json', '--catalog', catalog], { PAY_TO: '' })
  t.equal(ran.code, 2)
  t.match(network(ran).differences, [{ kind: 'not_in_ledger' }])
  const missing = await seller.reconcile(['--json', '--catalog', `${catalog}.old`], { PAY_TO: '' })
  t.match(missing, { code: 1, out: '', err: /catalog\.yaml\.old/ })
})

/** The way to the node, but for calls that are treated otherwise. */
async function openNode(
  t: Test,
  { past }: Seller,
  odd: (call: RpcCall) => RpcReply | RpcCall | undefined,
): Promise<RpcInterceptor> {
  const node = await openRpcInterceptor(past.chain.rpcUrl, odd)
  t.teardown(() => node.close())
  return node
}

interface Search {
  readonly fromBlock: string
  readonly toBlock: string
}

function searchOf({ method, params }: RpcCall): Search | undefined {
  return method === 'eth_getLogs' ? (params[0] as Search) : undefined
}

function widthOf({ fromBlock, toBlock }: Search): number {
  return Number(toBlock) - Number(fromBlock) + 1
}

function widths({ calls }: RpcInterceptor): number[] {
  return calls().flatMap((call) => {
    const search = searchOf(call)
    return search === undefined ? [] : [widthOf(search)]
  })
}

/** What providers say to a search that is too wide for them; each has words of its own. */
const LIMITS: readonly (readonly [string, number, RpcReply])[] = [
  [
    'a free plan',
    10,
    rpcRefusal(
      400,
      -32600,
      'Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range.',
    ),
  ],
  ['a small plan', 500, rpcRefusal(200, -32602, 'eth_getLogs is limited to a 500 range')],
  ['too many results', 300, rpcRefusal(200, -32005, 'query returned more than 10000 results')],
  ['no words at all', 200, { status: 503, body: 'upstream timed out' }],
]

t.test('searches in smaller steps at providers with limits, and covers every block', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const booked = 12
  await happen(seller, async () => {
    for (let number = 0; number < booked; number += 1) {
      const payment = await seller.sign()
      await seller.record(payment, sold(payment, await past.onchain.submit(payment)))
      await past.pass(number === 5 ? 300 : 37)
    }
    await past.onchain.submit(await seller.sign())
  })
  for (const [name, widest, refusal] of LIMITS) {
    const node = await openNode(t, seller, (call) => {
      const search = searchOf(call)
      return search === undefined || widthOf(search) <= widest ? undefined : refusal
    })
    const ran = await seller.reconcile(['--json'], { RPC_URL_8453: node.url })
    t.equal(ran.code, 2, name)
    t.match(network(ran), { agreed: booked, differences: [{ kind: 'not_in_ledger' }] }, name)
    t.ok(widths(node).some((width) => width > widest) && widths(node).some((width) => width <= widest), name)
  }
})

t.test('searches a long period in steps that most nodes allow, each block once', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const payment = await seller.sign()
  await happen(seller, async () => {
    await seller.record(payment, sold(payment, await past.onchain.submit(payment)))
  })
  const head = Number(await past.call('eth_blockNumber', []))
  // Thousands of blocks more, without anything in them.
  const node = await openNode(t, seller, (call) => {
    const hex = `0x${head.toString(16)}`
    const search = searchOf(call)
    if (call.method === 'eth_blockNumber') return rpcResult(`0x${(head + 12_000).toString(16)}`)
    if (call.method === 'eth_getBlockByNumber' && Number(call.params[0]) > head)
      return { ...call, params: [hex, false] }
    if (search === undefined || Number(search.toBlock) <= head) return undefined
    return Number(search.fromBlock) > head
      ? rpcResult([])
      : { ...call, params: [{ ...search, toBlock: hex }] }
  })
  const ran = await seller.reconcile(['--json'], { RPC_URL_8453: node.url })
  t.equal(ran.code, 0)
  t.match(network(ran), { agreed: 1, blocks: { to: head + 12_000 } })
  const wide = widths(node).filter((width) => width > 1)
  t.equal(Math.max(...wide), 5000)
  const { from, to } = network(ran)['blocks'] as { from: number; to: number }
  t.equal(
    wide.reduce((all, width) => all + width, 0),
    to - from + 1,
  )
})

t.test('asks a node again after a temporary error', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const payment = await seller.sign({ validBefore: seconds(NOW + 9 * HOUR) })
  await happen(seller, async () => {
    await seller.record(payment, sold(payment, await past.onchain.submit(payment)))
  })
  const failed = new Set<string>()
  const node = await openNode(t, seller, ({ method }) => {
    if (failed.has(method)) return undefined
    failed.add(method)
    return { status: 429, body: 'slow down' }
  })
  const ran = await seller.reconcile(['--json'], { RPC_URL_8453: node.url })
  t.equal(ran.code, 0)
  t.equal(network(ran).agreed, 1)
  t.ok(failed.has('eth_chainId') && failed.has('eth_getBlockByNumber') && failed.has('eth_getLogs'))
})

t.test('names a network that is unreachable, and exits with an error', async (t) => {
  const seller = await openSeller(t)
  const { past } = seller
  const payment = await seller.sign({ validBefore: seconds(NOW + 9 * HOUR) })
  await happen(seller, async () => {
    await seller.record(payment, sold(payment, await past.onchain.submit(payment)))
  })
  const dead = await openNode(t, seller, () => ({ status: 502, body: '<h1>Bad Gateway</h1>' }))
  const mute = await openNode(t, seller, ({ method }) =>
    method === 'eth_getLogs' ? rpcRefusal(200, -32601, 'method not found, key 7f3a') : undefined,
  )
  const other = await openNode(t, seller, ({ method }) =>
    method === 'eth_chainId' ? rpcResult('0x1') : undefined,
  )
  const stale = await openNode(t, seller, ({ method }) =>
    method === 'eth_blockNumber' ? rpcResult('0x1') : undefined,
  )
  for (const [url, reason] of [
    [dead.url, /^its node does not answer$/],
    [mute.url, /^its node does not give out logs, not even of one block$/],
    [other.url, /^its node is on chain 1$/],
    [stale.url, /^its node is behind: its newest block is of 20/],
    ['', /^RPC_URL_8453 is not set$/],
  ] as const) {
    const ran = await seller.reconcile(['--json'], { RPC_URL_8453: url })
    t.equal(ran.code, 1, String(reason))
    t.match(networks(ran), [{ network: 'eip155:8453', status: 'unchecked', reason }])
    t.notMatch(ran.out, /7f3a|Gateway/, 'nothing of the node’s own words')
    const text = await seller.reconcile([], { RPC_URL_8453: url })
    t.equal(text.out, '')
    t.match(text.err, /eip155:8453, x402: could not be checked: /)
  }
})

t.test('reports differences and unreachable networks together, and exits for the differences', async (t) => {
  const seller = await openSeller(t)
  const payment = await seller.sign({ validBefore: seconds(NOW + 9 * HOUR) })
  await happen(seller, async () => {
    await seller.record(payment, sold(payment, randomHash()))
    const network = 'eip155:137'
    const asset = '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359'
    const elsewhere = purchaseOf({ key: `x402:exact:${network}:x:y`, network, asset, payee: seller.payTo })
    await seller.fixture.record(elsewhere, NOW - HOUR, sell(receiptOf(elsewhere)))
  })
  const ran = await seller.reconcile([])
  t.equal(ran.code, 2)
  t.match(ran.err, 'eip155:137, x402: could not be checked: RPC_URL_137 is not set')
  t.match(ran.out, /1 difference, but 1 of 2 could not be checked; nothing was changed$/)
})

t.test('reports that it checked nothing when nothing is configured', async (t) => {
  const seller = await openSeller(t)
  await seller.record(await seller.sign(), (lease) => lease.void())
  const ran = await seller.reconcile([], { RPC_URL_8453: '' })
  t.match(ran, {
    code: 1,
    out: '',
    err: /nothing could be checked: no network has an RPC_URL_<chain id> and an address that is paid there/,
  })
  t.match(await runLine(['payments', 'reconcile', '--since', 'ever']), { code: 64, err: /--since takes/ })
})
