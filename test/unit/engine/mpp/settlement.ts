import t from 'tap'
import { Chain } from '../../../../src/engine/chains/evm/chain.ts'
import type { Settlement } from '../../../../src/engine/payment/settlement.ts'
import { resume, send } from '../../../../src/engine/mpp/payer-transfer.ts'

const TOKEN = '0x20c0000000000000000000000000000000000000'
const PAYER = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const PAYEE = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359'
const HASH = `0x${'ab'.repeat(32)}`
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const START = 1_800_000_000_000
const VALID_BEFORE = START + 20_000

function word(hex: string): string {
  return `0x${hex.replace('0x', '').toLowerCase().padStart(64, '0')}`
}

const LOG = {
  address: TOKEN,
  topics: [TRANSFER, word(PAYER), word(PAYEE)],
  data: word((5_000).toString(16)),
  transactionHash: HASH,
  blockNumber: '0x1',
  logIndex: '0x0',
}

interface Told {
  /** What the node says to the broadcast: a refusal in these words, or nothing at all; else the hash. */
  readonly broadcast?: { readonly refused: string } | 'silence'
  /** The receipt at a time, in milliseconds since the start. */
  readonly receipt?: (ms: number) => object | null
  /** The newest block’s time, likewise. */
  readonly time?: (ms: number) => number
}

/** A node that answers as told; resolves to how it ended, how long it took, and what was asked. */
async function meet(
  act: typeof send,
  { broadcast, receipt = () => null, time = (ms) => ms }: Told,
): Promise<{ settlement: Settlement; took: number; broadcasts: number }> {
  let now = START
  let broadcasts = 0
  const fetcher: typeof fetch = async (_, init) => {
    const { id, method } = JSON.parse(typeof init?.body === 'string' ? init.body : '{}') as {
      id: number
      method: string
    }
    const result = (value: unknown): Response => Response.json({ jsonrpc: '2.0', id, result: value })
    const passed = now - START
    if (method === 'eth_getTransactionReceipt') return result(receipt(passed))
    if (method === 'eth_getBlockByNumber') {
      const seconds = Math.floor((START + time(passed)) / 1000)
      return result({ number: '0x1', timestamp: `0x${seconds.toString(16)}` })
    }
    broadcasts += 1
    if (broadcast === 'silence') throw new Error('no answer')
    if (broadcast === undefined) return result(HASH)
    return Response.json({ jsonrpc: '2.0', id, error: { code: -32003, message: broadcast.refused } })
  }
  const context = {
    chain: new Chain('http://node.example', fetcher),
    now: () => now,
    sleep: async (ms: number) => {
      now += ms
    },
  }
  const settlement = await act(context, {
    network: 'eip155:42431',
    transaction: { kind: 'payer', hash: HASH, raw: '0x76c0' },
    expected: { token: TOKEN, from: PAYER, to: PAYEE, amount: 5_000n },
    validBefore: VALID_BEFORE,
  })
  return { settlement, took: now - START, broadcasts }
}

function mined(logs: readonly object[] = [LOG], status = '0x1') {
  return { transactionHash: HASH, blockNumber: '0x1', status, logs }
}

t.test('settles by a receipt with the transfer, and only by that', async (t) => {
  t.match((await meet(send, { receipt: () => mined() })).settlement, {
    kind: 'settled',
    receipt: { transaction: HASH, network: 'eip155:42431', payer: PAYER, amount: '5000' },
  })
  const wrong: Readonly<Record<string, object>> = {
    'no transfer': mined([]),
    reverted: mined([LOG], '0x0'),
    'another token': mined([{ ...LOG, address: PAYEE }]),
    'another event': mined([{ ...LOG, topics: [word('01'), word(PAYER), word(PAYEE)] }]),
    'another sender': mined([{ ...LOG, topics: [TRANSFER, word(PAYEE), word(PAYEE)] }]),
    'another receiver': mined([{ ...LOG, topics: [TRANSFER, word(PAYER), word(PAYER)] }]),
    'another amount': mined([{ ...LOG, data: word('1387') }]),
    'no amount': mined([{ ...LOG, data: '0x' }]),
    'no topics': mined([{ ...LOG, topics: [] }]),
  }
  for (const [name, receipt] of Object.entries(wrong))
    t.match((await meet(send, { receipt: () => receipt })).settlement, { kind: 'failed' }, name)
})

t.test('waits after a vague refusal, for the bytes may have arrived twice', async (t) => {
  const late = (ms: number) => (ms < 3_000 ? null : mined())
  for (const refused of [
    'nonce too low',
    'transaction already imported',
    'insufficient funds',
    'request limit reached',
    '',
  ]) {
    const { settlement } = await meet(send, { broadcast: { refused }, receipt: late })
    t.match(settlement, { kind: 'settled' }, refused)
  }
  t.match((await meet(send, { broadcast: 'silence', receipt: late })).settlement, { kind: 'settled' })
})

t.test('reports a missing transaction as failed only after blocks beyond its validity', async (t) => {
  const { settlement, took } = await meet(send, {})
  t.match(settlement, { kind: 'failed' })
  t.ok(took >= 25_000 && took <= 30_000, 'its validity, and what nodes may be behind each other')
  const slow = await meet(send, { time: () => 10_000 })
  t.match(slow.settlement, { kind: 'unknown' }, 'a chain that stands still proves nothing')
  t.ok(slow.took <= 31_000, 'and is not waited for')
  const last = await meet(send, { receipt: (ms) => (ms < 25_000 ? null : mined()) })
  t.match(last.settlement, { kind: 'settled' }, 'mined at the last moment')
})

t.test('lets another process ask first, and send again only what can still be mined', async (t) => {
  const known = await meet(resume, { receipt: () => mined() })
  t.match(known.settlement, { kind: 'settled' })
  t.equal(known.broadcasts, 0)
  const lost = await meet(resume, { receipt: (ms) => (ms < 1_000 ? null : mined()) })
  t.match(lost.settlement, { kind: 'settled' })
  t.equal(lost.broadcasts, 1)
  const refused = await meet(resume, {
    broadcast: { refused: 'insufficient funds' },
    receipt: (ms) => (ms < 1_000 ? null : mined()),
  })
  t.match(refused.settlement, { kind: 'settled' }, 'the money has gone into the first broadcast')
})
