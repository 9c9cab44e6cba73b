import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createTestClient, http, publicActions } from 'viem'
import { base } from 'viem/chains'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb.ts'
import { openAccount } from '../../../../src/engine/protocols/x402/account.ts'
import { Chain } from '../../../../src/engine/protocols/x402/chain.ts'
import { createRpc } from '../../../../src/engine/protocols/x402/rpc.ts'
import { Signer } from '../../../../src/engine/protocols/x402/signer.ts'
import { startBase } from '../../../support/base-chain.ts'
import { addressOf, randomKey } from '../../../support/payment.ts'

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
const journal = { record: async () => {} }
const NOBODY = '0x00000000000000000000000000000000deadbeef'

let clock = 1_700_000_000_000
async function signerOf(key: `0x${string}`, owner: string): Promise<Signer> {
  await chain.setGas(addressOf(key), 10n ** 18n)
  return new Signer({
    account: openAccount(key),
    chain: new Chain(createRpc(chain.rpcUrl, fetch)),
    chainId: 8453,
    ledger,
    owner,
    now: () => clock,
    sleep: async (ms) => {
      await delay(ms)
    },
  })
}

async function nonceOf(signer: Signer): Promise<number> {
  const sent = await signer.send(NOBODY, '0x', 30_000n, journal)
  if (sent.kind !== 'sent') throw new Error(sent.kind)
  return sent.transaction.nonce
}

t.test('two processes with one signer never use an account nonce twice, and leave no gap', async (t) => {
  const key = randomKey()
  const [one, two] = [await signerOf(key, 'one'), await signerOf(key, 'two')]
  const nonces = await Promise.all([one, two, one, two, one, two].map(nonceOf))
  t.strictSame(
    [...nonces].sort((a, b) => a - b),
    [0, 1, 2, 3, 4, 5],
  )
})

t.test(
  'a transaction that every node has forgotten does not hold up all later payments for ever',
  async (t) => {
    const signer = await signerOf(randomKey(), 'one')
    await node.setAutomine(false)
    t.teardown(() => node.setAutomine(true))
    t.equal(await nonceOf(signer), 0)
    const pool = await node.getTxpoolContent()
    for (const { hash } of Object.values(pool.pending).flatMap(Object.values))
      await node.dropTransaction({ hash })
    t.equal(await nonceOf(signer), 1, 'a node may be slow to show what was sent')
    clock += 31_000
    t.equal(await nonceOf(signer), 0, 'but not for half a minute: the gap is filled')
  },
)
