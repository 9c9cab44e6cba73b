import t from 'tap'
import { Chain } from '../../../../../src/engine/chains/evm/chain.ts'
import { openAccount } from '../../../../../src/engine/chains/evm/local-account.ts'
import {
  allocate,
  CATCH_UP_MS,
  markTaken as takenAll,
  NonceLease,
  restore,
  snapshot,
  sync,
  type NonceState,
} from 'ratecard/chains/evm/nonces'
import { randomKey } from '../../../../support/payment.ts'
import { openTemporaryLedger } from '../../../../support/temporary-ledger.ts'
import { until } from '../../../../support/until.ts'

const NOW = 1_800_000_000_000

const taken = (count: NonceState): NonceState => takenAll(count, [count.next])

t.test('asks the chain in a fresh process', async (t) => {
  t.strictSame(sync(undefined, 7, NOW), { next: 7, ahead: [], at: NOW, seen: 7 })
})

t.test('moves up when the key was used elsewhere', async (t) => {
  t.equal(sync({ next: 5, ahead: [], at: NOW, seen: 5 }, 9, NOW + 1).next, 9)
})

t.test('keeps used nonces while a node is slow to show what it has accepted', async (t) => {
  let count = sync(undefined, 5, NOW)
  const nonces = []
  for (let after = 0; after < 5; after += 1) {
    count = sync(count, 5, NOW + after)
    nonces.push(count.next)
    count = taken(count)
  }
  t.strictSame(nonces, [5, 6, 7, 8, 9])
})

t.test('reuses the nonce of a lost transaction when the chain stays below the local count', async (t) => {
  const count = taken(taken(sync(undefined, 5, NOW)))
  t.equal(sync(count, 5, NOW + CATCH_UP_MS).next, 7)
  const healed = sync(count, 5, NOW + CATCH_UP_MS + 1)
  t.equal(healed.next, 5)
  t.equal(sync(taken(healed), 7, NOW + CATCH_UP_MS + 2).next, 7, 'what stood above the gap has its place')
})

t.test('finds a lost transaction while it keeps sending', async (t) => {
  let count = sync(undefined, 5, NOW)
  let healed = 0
  for (let second = 0; second <= CATCH_UP_MS / 1_000 + 1 && healed === 0; second += 1) {
    count = sync(count, 5, NOW + second * 1_000)
    if (second > 0 && count.next === 5) healed = second
    count = taken(count)
  }
  t.equal(healed, CATCH_UP_MS / 1_000 + 1)
})

t.test('waits for a chain that is behind and catches up', async (t) => {
  let count = taken(taken(taken(sync(undefined, 5, NOW))))
  for (let step = 1; step <= 2; step += 1) {
    count = sync(count, 5 + step, NOW + step * CATCH_UP_MS)
    t.equal(count.next, 8)
  }
})

t.test('tells disagreeing nodes from a chain that moves', async (t) => {
  let count = sync(undefined, 6, NOW)
  for (let second = 0; second < 8; second += 1) count = taken(count)
  for (let second = 1; second <= 30; second += 1) {
    count = sync(count, second % 2 === 0 ? 6 : 5, NOW + second * 1_000)
    t.equal(count.next, 14)
  }
  t.equal(sync(count, 6, NOW + CATCH_UP_MS + 1).next, 6)
})

t.test('continues the count of another process, with its age', async (t) => {
  t.equal(restore(undefined), undefined)
  t.equal(snapshot(undefined), undefined)
  const left = snapshot(taken(sync(undefined, 5, NOW)))
  t.strictSame(left, { value: 6, at: NOW })
  t.equal(sync(restore(left), 5, NOW + 1_000).next, 6, 'a moment later')
  t.equal(sync(restore(left), 5, NOW + CATCH_UP_MS + 1).next, 5, 'after a long time')
  t.equal(sync(restore(left), 6, NOW + CATCH_UP_MS + 1).next, 6)
})

t.test('continues after the gaps when a node has taken some of many', async (t) => {
  const count = sync(undefined, 5, NOW)
  t.strictSame(allocate(count, 4), [5, 6, 7, 8])
  const holed = takenAll(count, [8, 5, 7])
  t.strictSame(allocate(holed, 3), [6, 9, 10])
  const filled = takenAll(holed, [6])
  t.strictSame(allocate(filled, 2), [9, 10])
  t.strictSame(allocate(sync(holed, 7, NOW), 2), [9, 10], 'the chain has counted the missing one')
  t.strictSame(
    allocate(sync(holed, 5, NOW + CATCH_UP_MS + 1), 3),
    [5, 6, 7],
    'a chain that has lost them all',
  )
})

t.test(
  'asks again for whom a question of before was in vain, because the node was silent then',
  async (t) => {
    let at = NOW
    const silent: (() => void)[] = []
    let isSilent = false
    const transport: typeof fetch = (_, init) => {
      const { id } = JSON.parse(typeof init?.body === 'string' ? init.body : '{}') as { id: number }
      const answered = Response.json({ jsonrpc: '2.0', id, result: '0x7' })
      return isSilent
        ? new Promise((_, reject) => silent.push(() => reject(new Error('too late'))))
        : Promise.resolve(answered)
    }
    const ledger = await openTemporaryLedger(t)
    const nonces = new NonceLease({
      ledger,
      name: 'account',
      owner: 'one',
      now: () => at,
      sleep: async () => undefined,
      account: openAccount(randomKey()),
      chain: new Chain('http://node.example', transport),
      foreign: () => undefined,
    })
    await nonces.acquire(1_000, 1_000)
    t.equal((await nonces.current())?.next, 7)
    at += 60_000
    isSilent = true
    nonces.prepare()
    await until('the node is asked', () => silent.length === 1)
    isSilent = false
    const asked = nonces.current()
    for (const end of silent) end()
    t.equal((await asked)?.next, 7)
    at += 60_000
    isSilent = true
    const alone = nonces.current()
    await until('it is asked again', () => silent.length === 2)
    for (const end of silent) end()
    t.equal(await alone, undefined, 'its own question tells that the node is silent now')
  },
)
