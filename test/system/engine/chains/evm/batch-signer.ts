import { systemEvery } from '../../../../../src/engine/base/every.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createTestClient, http, keccak256, publicActions } from 'viem'
import type { Dispatch } from '../../../../../src/engine/ledger/payment-record.ts'
import type { Lease, Ledger } from '../../../../../src/engine/ledger/ledger.ts'
import { openLmdbLedger } from '../../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import type { Journal } from '../../../../../src/engine/payment/settlement.ts'
import { FeeOracle } from 'ratecard/chains/evm/fees'
import { Multicall } from 'ratecard/chains/evm/multicall'
import { Chain } from '../../../../../src/engine/chains/evm/chain.ts'
import { Signer } from '../../../../../src/engine/chains/evm/signer.ts'
import { openAccount } from 'ratecard/chains/evm/local-account'
import type {
  SendResult,
  SignerBusy,
  TransactionRequest,
  WaitMode,
} from '../../../../../src/engine/chains/evm/transaction.ts'
import { base, startBase } from '../../../../support/base-chain.ts'
import { openRpcProxy } from '../../../../support/rpc-proxy.ts'
import { addressOf, randomKey, type Hex } from '../../../../support/payment.ts'
import { until } from '../../../../support/until.ts'
import { networkNamed } from '../../../../support/shipped-catalog.ts'

const chain = await startBase()
const directory = mkdtempSync(join(tmpdir(), 'ratecard-'))
const ledger = await openLmdbLedger(directory)
t.teardown(async () => {
  await ledger.close()
  await chain.stop()
  rmSync(directory, { recursive: true, force: true })
})
const node = createTestClient({ mode: 'anvil', chain: base, transport: http(chain.rpcUrl) }).extend(
  publicActions,
)
const NOBODY = '0x00000000000000000000000000000000deadbeef'
const GAS = 30_000n
/** The node refuses it: a transfer costs 21,000. */
const TOO_LITTLE_GAS = 20_000n

let clock = 1_700_000_000_000
const reported: string[] = []

interface PaymentConfig {
  readonly owner?: string
  readonly url?: string
  readonly fetcher?: typeof fetch
  readonly over?: Ledger
}

async function signerOf(key: Hex, { owner, url, fetcher, over }: PaymentConfig = {}): Promise<Signer> {
  await chain.setGas(addressOf(key), 10n ** 18n)
  const connection = new Chain(url ?? chain.rpcUrl, fetcher ?? fetch)
  return new Signer({
    account: openAccount(key),
    chain: connection,
    fees: new FeeOracle(connection, () => clock),
    multicall: new Multicall(connection, { now: () => clock }),
    network: networkNamed('base'),
    ledger: over ?? ledger,
    owner: owner ?? 'one',
    now: () => clock,
    every: systemEvery,
    sleep: async (ms) => {
      await delay(ms)
    },
    report: (line) => reported.push(line),
  })
}

interface Recorder extends Journal {
  readonly transactions: Dispatch[]
}

function newJournal(before: () => Promise<void> = async () => {}): Recorder {
  const transactions: Dispatch[] = []
  return {
    transactions,
    record: async (transaction) => {
      await before()
      transactions.push(transaction)
    },
  }
}

function send(
  signer: Signer,
  gas: bigint = GAS,
  journal: Journal = newJournal(),
  rest: Partial<TransactionRequest> = {},
  mode: WaitMode = 'patiently',
): Promise<SendResult | SignerBusy> {
  const request = {
    to: NOBODY,
    data: '0x',
    gas,
    maxFeePerGas: 10n ** 12n,
    expires: Infinity,
    check: async () => undefined,
    reserve: async () => 'held' as const,
    journal,
    ...rest,
  } as const
  return signer.send(request, mode)
}

async function nonceOf(signer: Signer): Promise<number> {
  const sent = await send(signer)
  if (sent.kind !== 'sent') throw new Error(sent.kind)
  return sent.transaction.nonce
}

/**
 * Transactions of the account that are in blocks: the next nonce when none is missing. A transaction is answered for when
 * it is in the pool, and leaves the pool a moment before it is in a block.
 */
async function mined({ address }: Signer, expected: number): Promise<number> {
  const count = (blockTag: 'latest' | 'pending'): Promise<number> =>
    node.getTransactionCount({ address, blockTag })
  await until(`${expected} transactions are in blocks`, async () => (await count('latest')) >= expected)
  return count('pending')
}

/** Resolves when a signer has done what remains to be done after its answers. */
async function becomesIdle(signer: Signer): Promise<void> {
  while (signer.waiting > 0) await delay(5)
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, nonce) => nonce)

t.test('settles forty simultaneous payments with forty consecutive nonces', async (t) => {
  const signer = await signerOf(randomKey())
  const nonces = await Promise.all(upTo(40).map(() => nonceOf(signer)))
  t.strictSame(nonces, upTo(40))
  t.equal(await mined(signer, 40), 40)
})

t.test('keeps nonces consecutive, and charges nothing, when the node refuses a transaction', async (t) => {
  const signer = await signerOf(randomKey())
  const sent = await Promise.all(upTo(9).map((at) => send(signer, at === 4 ? TOO_LITTLE_GAS : GAS)))
  t.strictSame(
    sent.map((each) => (each.kind === 'sent' ? each.transaction.nonce : each)),
    [0, 1, 2, 3, { kind: 'unsent', detail: 'the network refuses the transaction' }, 5, 6, 7, 8],
  )
  await becomesIdle(signer)
  t.equal(await mined(signer, 9), 9, 'the place of the refused one was filled with nothing')
  t.equal(await nonceOf(signer), 9)
})

t.test('records every transaction before it is sent, byte for byte', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const signer = await signerOf(randomKey(), { url: proxy.url })
  const order: string[] = []
  proxy.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') order.push('sent')
  })
  const journal = newJournal(async () => {
    await delay(20)
    order.push('recorded')
  })
  await Promise.all(upTo(3).map(() => send(signer, GAS, journal)))
  const times = (what: string, end: number): number =>
    order.slice(0, end).filter((each) => each === what).length
  t.equal(times('sent', order.length), 3)
  for (const end of order.keys()) t.ok(times('sent', end + 1) <= times('recorded', end + 1))
  for (const [nonce, dispatch] of journal.transactions.entries()) {
    if (dispatch.kind !== 'own') return t.fail('it is a transaction of ours')
    const { raw, hash } = dispatch
    t.match(dispatch, { nonce, signer: signer.address })
    t.match(await node.getTransaction({ hash: hexOf(hash) }), { nonce, hash })
    t.equal(keccak256(hexOf(raw ?? '')), hash)
  }
})

t.test(
  'sends only recorded transactions, and serves the next payment when the ledger refuses one',
  async (t) => {
    const signer = await signerOf(randomKey())
    const full = newJournal(() => Promise.reject(new Error('the disk is full')))
    const [first, second, third] = await Promise.allSettled([
      send(signer),
      send(signer, GAS, full),
      send(signer),
    ])
    t.match(first, { value: { transaction: { nonce: 0 } } })
    t.match(second, { status: 'rejected', reason: { message: 'the disk is full' } })
    t.match(third, { value: { transaction: { nonce: 1 } } })
    t.equal(await mined(signer, 2), 2)
  },
)

t.test(
  'reports unknown when a node falls silent after it got the transaction, and sends the next one after it',
  async (t) => {
    const proxy = await openRpcProxy(chain.rpcUrl)
    t.teardown(proxy.close)
    const signer = await signerOf(randomKey(), { url: proxy.url })
    t.equal(await nonceOf(signer), 0)
    proxy.set('broken_after_send')
    const journal = newJournal()
    t.match(await send(signer, GAS, journal), { kind: 'unknown' })
    t.match(journal.transactions[0], { nonce: 1 }, 'it is recorded all the same')
    t.strictSame(await send(signer), { kind: 'unsent', detail: 'the network cannot be reached' })
    proxy.set('open')
    t.equal(await nonceOf(signer), 2)
    t.equal(await mined(signer, 3), 3)
  },
)

t.test(
  'reports unknown when a node falls silent before it got the transaction, and uses its nonce again',
  async (t) => {
    const proxy = await openRpcProxy(chain.rpcUrl)
    t.teardown(proxy.close)
    const signer = await signerOf(randomKey(), { url: proxy.url })
    t.equal(await nonceOf(signer), 0)
    proxy.onCall(async (method) => {
      if (method === 'eth_sendRawTransaction') proxy.set('down')
    })
    t.match(await send(signer), { kind: 'unknown', transaction: { nonce: 1 } })
    proxy.onCall(async () => {})
    proxy.set('open')
    t.equal(await nonceOf(signer), 1)
    t.equal(await mined(signer, 2), 2)
  },
)

t.test('sends the same bytes again when one connection breaks, with consecutive nonces', async (t) => {
  let broadcasts = 0
  const breaking: typeof fetch = async (url, init) => {
    if (JSON.stringify(init?.body).includes('eth_sendRawTransaction') && (broadcasts += 1) === 3)
      throw new Error('socket hang up')
    return fetch(url, init)
  }
  const signer = await signerOf(randomKey(), { fetcher: breaking })
  const nonces = await Promise.all(upTo(8).map(() => nonceOf(signer)))
  t.strictSame(nonces, upTo(8))
  t.equal(broadcasts, 9)
  t.equal(await mined(signer, 8), 8)
})

t.test('remembers which nonces are taken when its queue has been empty', async (t) => {
  let broken = true
  const seen = new Set<string>()
  const losing: typeof fetch = async (url, init) => {
    const body = typeof init?.body === 'string' ? init.body : ''
    const raw = /"eth_sendRawTransaction","params":\["(0x[0-9a-f]+)"/.exec(body)?.[1]
    if (raw !== undefined) seen.add(raw)
    if (broken && raw !== undefined && [...seen].indexOf(raw) === 1) throw new Error('socket hang up')
    // The node is slow to count what it has accepted.
    if (!broken && /"eth_getTransactionCount".*"pending"/.test(body))
      return Response.json({ jsonrpc: '2.0', id: 1, result: '0x1' })
    return fetch(url, init)
  }
  const signer = await signerOf(randomKey(), { fetcher: losing })
  const sent = await Promise.all(upTo(4).map(() => send(signer)))
  t.match(sent, [{ kind: 'sent' }, { kind: 'unknown', transaction: { nonce: 1 } }, { kind: 'sent' }, {}])
  broken = false
  await becomesIdle(signer)
  t.equal(await nonceOf(signer), 1, 'the missing one is used')
  await becomesIdle(signer)
  t.equal(await nonceOf(signer), 4, 'and those above it are not')
  t.equal(await mined(signer, 5), 5)
})

t.test('returns a taken transaction while the node leaves another one unanswered', async (t) => {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  let broadcasts = 0
  const hanging: typeof fetch = async (url, init) => {
    if (JSON.stringify(init?.body).includes('eth_sendRawTransaction') && (broadcasts += 1) === 2) await held
    return fetch(url, init)
  }
  const signer = await signerOf(randomKey(), { fetcher: hanging })
  const [first, second] = [nonceOf(signer), nonceOf(signer)]
  t.equal(await first, 0)
  release()
  t.equal(await second, 1)
})

t.test('signs only when the node answers', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  const signer = await signerOf(randomKey(), { url: proxy.url })
  const journal = newJournal()
  for (const way of ['down', 'html', 'failing'] as const) {
    proxy.set(way)
    t.strictSame(await send(signer, GAS, journal), {
      kind: 'unsent',
      detail: 'the network cannot be reached',
    })
  }
  t.strictSame(journal.transactions, [])
})

t.test('treats a transaction that the node already has as taken', async (t) => {
  await node.setAutomine(false)
  t.teardown(() => node.setAutomine(true))
  // As a gateway does that repeats a request.
  const twice: typeof fetch = async (url, init) => {
    if (JSON.stringify(init?.body).includes('eth_sendRawTransaction')) await fetch(url, init)
    return fetch(url, init)
  }
  const signer = await signerOf(randomKey(), { fetcher: twice })
  t.equal(await nonceOf(signer), 0)
  t.equal(await nonceOf(signer), 1)
})

t.test('sends a transaction once that its node refuses after it has taken it', async (t) => {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  for (const message of ['replacement transaction underpriced', 'transaction underpriced']) {
    proxy.instead(async (method, [raw]) => {
      if (method !== 'eth_sendRawTransaction') return undefined
      await node.sendRawTransaction({ serializedTransaction: raw as Hex })
      return { error: { code: -32000, message } }
    })
    const signer = await signerOf(randomKey(), { url: proxy.url })
    const journal = newJournal()
    const sent = await send(signer, GAS, journal)
    t.match(sent, { kind: 'sent' }, message)
    t.equal(journal.transactions.length, 1, message)
    t.equal(await mined(signer, 1), 1, message)
  }
})

t.test('two busy processes with one signer use each nonce once and consecutively', async (t) => {
  const key = randomKey()
  const signers = [await signerOf(key, { owner: 'one' }), await signerOf(key, { owner: 'two' })]
  const nonces = await Promise.all(signers.flatMap((signer) => upTo(20).map(() => nonceOf(signer))))
  t.strictSame(
    nonces.toSorted((a, b) => a - b),
    upTo(40),
  )
  const [signer] = signers
  t.equal(signer && (await mined(signer, 40)), 40)
})

t.test('sends nothing when its lease ends while it records', async (t) => {
  const key = randomKey()
  const [late, other] = [await signerOf(key, { owner: 'late' }), await signerOf(key, { owner: 'other' })]
  const journal = newJournal(async () => {
    clock += 16_000
    t.equal(await nonceOf(other), 0)
  })
  const detail = 'another process has taken the signer over'
  t.strictSame(await send(late, GAS, journal), { kind: 'unsent', detail })
  t.match(journal.transactions[0], { nonce: 0 })
  t.equal(await nonceOf(late), 1)
  t.equal(await mined(late, 2), 2)
})

t.test('reports a signer that another process keeps, and leaves the payment unsent', async (t) => {
  const key = randomKey()
  const name = `signer:8453:${addressOf(key).toLowerCase()}`
  const lease = await ledger.lease(name, 'another', clock, clock + 3_600_000)
  const signer = await signerOf(key)
  const sending = send(signer)
  // The clock stands still while it waits.
  await delay(100)
  clock += 21_000
  t.strictSame(await sending, { kind: 'busy', detail: 'the signer is in use by another process' })
  if (lease !== undefined) await ledger.release(lease, undefined)
  t.equal(await nonceOf(signer), 0)
})

t.test('reports a payment as sent when the ledger fails after the broadcast', async (t) => {
  const over: Ledger = { ...ledger, release: () => Promise.reject(new Error('away')) }
  const signer = await signerOf(randomKey(), { over })
  t.equal(await nonceOf(signer), 0)
  t.equal(await nonceOf(signer), 1)
})

t.test('restarts with a counter that is too low, too high or right', async (t) => {
  const restartWith = async (value: number, age: number): Promise<number> => {
    const key = randomKey()
    const signer = await signerOf(key, { owner: 'before' })
    for (const nonce of upTo(3)) t.equal(await nonceOf(signer), nonce)
    const name = `signer:8453:${addressOf(key).toLowerCase()}`
    let lease: Lease | undefined
    while (lease === undefined) lease = await ledger.lease(name, 'x', clock, clock + 1)
    await ledger.release(lease, { value, at: clock - age })
    return nonceOf(await signerOf(key, { owner: 'after' }))
  }
  t.equal(await restartWith(1, 0), 3, 'the chain has seen more')
  t.equal(await restartWith(3, 86_400_000), 3)
  t.equal(await restartWith(4, 86_400_000), 3, 'a transaction of yesterday that never reached a node')
  await node.setAutomine(false)
  t.teardown(() => node.setAutomine(true))
  t.equal(await restartWith(5, 1_000), 5, 'a node may be slow to show what another process has just sent')
})

t.test('replaces a transaction that every node has forgotten, and settles the later ones', async (t) => {
  const signer = await signerOf(randomKey())
  await node.setAutomine(false)
  t.teardown(() => node.setAutomine(true))
  t.equal(await nonceOf(signer), 0)
  const pool = await node.getTxpoolContent()
  for (const { hash } of Object.values(pool.pending).flatMap(Object.values))
    await node.dropTransaction({ hash })
  t.equal(await nonceOf(signer), 1, 'a node may be slow to show what was sent')
  clock += 31_000
  t.equal(await nonceOf(signer), 0, 'but not for half a minute: the gap is filled')
  t.equal(await nonceOf(signer), 2, 'and what stood above it has its place')
  await node.mine({ blocks: 1 })
  t.equal(await mined(signer, 3), 3)
})

/** A node whose broadcasts wait for `open`, once `close` was called. */
async function gatedNode(t: Test) {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  let gate: Promise<void> | undefined
  let open = (): void => undefined
  proxy.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') await gate
  })
  const asked = (method: string): number => proxy.calls().filter((each) => each === method).length
  return {
    url: proxy.url,
    asked,
    close: () => (gate = new Promise((resolve) => (open = resolve))),
    open: () => open(),
  }
}

t.test('checks the next payment while the last one is broadcast, and sends them in order', async (t) => {
  const gated = await gatedNode(t)
  const signer = await signerOf(randomKey(), { url: gated.url })
  t.equal(await nonceOf(signer), 0)
  gated.close()
  const first = nonceOf(signer)
  await until('the first is broadcast', () => gated.asked('eth_sendRawTransaction') === 2)
  const checked = new Promise<void>((resolve) => {
    const check = async (): Promise<undefined> => {
      resolve()
      return undefined
    }
    void send(signer, GAS, newJournal(), { check })
  })
  await checked
  t.equal(gated.asked('eth_sendRawTransaction'), 2)
  gated.open()
  t.equal(await first, 1)
  await becomesIdle(signer)
  t.equal(await mined(signer, 3), 3)
})

t.test('checks a payment again whose turn comes long after its check', async (t) => {
  const gated = await gatedNode(t)
  const signer = await signerOf(randomKey(), { url: gated.url })
  t.equal(await nonceOf(signer), 0)
  gated.close()
  const first = nonceOf(signer)
  await until('the first is broadcast', () => gated.asked('eth_sendRawTransaction') === 2)
  const refusal = { code: 'invalid_exact_evm_insufficient_balance', detail: 'spent meanwhile' } as const
  let checks = 0
  const journal = newJournal()
  const second = send(signer, GAS, journal, {
    check: async () => {
      checks += 1
      if (checks > 1) return refusal
      clock += 3_000
      gated.open()
      return undefined
    },
  })
  t.strictSame(await second, { kind: 'refused', refusal })
  t.strictSame(journal.transactions, [], 'nothing was signed')
  t.equal(await first, 1)
  t.equal(await mined(signer, 2), 2)
})

t.test('asks for no nonce that it knows, and for it again after two seconds', async (t) => {
  const gated = await gatedNode(t)
  const signer = await signerOf(randomKey(), { url: gated.url })
  t.equal(await nonceOf(signer), 0)
  await becomesIdle(signer)
  const before = gated.asked('eth_getTransactionCount')
  for (const nonce of [1, 2, 3]) {
    t.equal(await nonceOf(signer), nonce)
    await becomesIdle(signer)
  }
  t.equal(gated.asked('eth_getTransactionCount'), before)
  clock += 2_000
  t.equal(await nonceOf(signer), 4)
  t.equal(gated.asked('eth_getTransactionCount'), before + 1)
})

/** Sends a transaction as another program or process with the same key. */
async function sendElsewhere(key: Hex, nonce: number): Promise<Hex> {
  const price = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n }
  const { raw } = openAccount(key).sign({
    chainId: base.id,
    nonce,
    to: NOBODY,
    data: '0x',
    gas: GAS,
    ...price,
  })
  return node.sendRawTransaction({ serializedTransaction: raw })
}

t.test('fills each nonce that is missing below transactions of a process that has died', async (t) => {
  const key = randomKey()
  const signer = await signerOf(key)
  for (const nonce of [3, 1]) {
    await sendElsewhere(key, nonce)
    signer.markResent(nonce)
  }
  t.equal(await node.getTransactionCount({ address: signer.address, blockTag: 'pending' }), 0)
  clock += 4_000
  await until('the missing ones are known', () => signer.unmined.count === 4)
  clock += 46_000
  t.equal(await mined(signer, 4), 4)
})

t.test('sells again when the node has forgotten what a process that has died had sent', async (t) => {
  const key = randomKey()
  await node.setAutomine(false)
  t.teardown(() => node.setAutomine(true))
  const signer = await signerOf(key)
  const hash = await sendElsewhere(key, 0)
  const refusal = { code: 'invalid_exact_evm_insufficient_balance', detail: 'spent meanwhile' } as const
  t.match(await send(signer, GAS, newJournal(), { check: async () => refusal }), { kind: 'refused' })
  await node.dropTransaction({ hash })
  await node.setAutomine(true)
  clock += 46_000
  t.match(await send(signer), { kind: 'busy' }, 'a payment would wait for the transaction that is missing')
  await until('it is replaced', async () => (await send(signer)).kind === 'sent')
})

t.test('continues above a transaction that another program has sent with the same key', async (t) => {
  const key = randomKey()
  const signer = await signerOf(key)
  t.equal(await nonceOf(signer), 0)
  await becomesIdle(signer)
  await node.setAutomine(false)
  t.teardown(() => node.setAutomine(true))
  await sendElsewhere(key, 1)
  t.equal(await nonceOf(signer), 2, 'its nonce in the pool is taken')
  await node.mine({ blocks: 1 })
  t.equal(await mined(signer, 3), 3)
})

t.test('does not continue an old count when another process has sent in between', async (t) => {
  const key = randomKey()
  const [one, two] = [await signerOf(key, { owner: 'one' }), await signerOf(key, { owner: 'two' })]
  const nonces: number[] = []
  for (const signer of [one, one, two, two, one, two]) {
    nonces.push(await nonceOf(signer))
    await becomesIdle(signer)
  }
  t.strictSame(nonces, upTo(6))
})

t.test('asks for the nonce again once the node has refused a transaction', async (t) => {
  const gated = await gatedNode(t)
  const signer = await signerOf(randomKey(), { url: gated.url })
  t.equal(await nonceOf(signer), 0)
  t.match(await send(signer, TOO_LITTLE_GAS), { kind: 'unsent' })
  await becomesIdle(signer)
  const before = gated.asked('eth_getTransactionCount')
  t.equal(await nonceOf(signer), 1)
  t.equal(gated.asked('eth_getTransactionCount'), before + 1)
})

function hexOf(text: string): Hex {
  return `0x${text.slice(2)}`
}
