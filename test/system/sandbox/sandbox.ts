import t, { type Test } from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { address, createSolanaRpc } from '@solana/kit'
import { createPublicClient, http, parseAbi, type Address } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { openSvmAccount } from '../../../src/engine/base/svm-signature.ts'
import { readSandboxAddresses } from '../../../src/sandbox/known-keys.ts'
import { readSandbox, startSandbox } from '../../../src/sandbox/sandbox.ts'
import { randomBytes } from '../../support/random.ts'
import { nodeCommand } from '../../support/server.ts'
import { svmTokenAccount } from '../../support/svm.ts'

const PROGRAM = fileURLToPath(new URL('../../fixtures/sandbox/open.ts', import.meta.url))

async function open(directory: string, lines: string[] = []) {
  const stop = await startSandbox({ directory, random: randomBytes, log: (line) => lines.push(line) })
  return { ...readSandbox({ directory, baseUrl: 'http://localhost:4021' }), stop }
}

function json(...path: string[]) {
  return JSON.parse(readFileSync(join(...path), 'utf8'))
}

function balance(rpcUrl: string, asset: Address, owner: Address) {
  return createPublicClient({ transport: http(rpcUrl) }).readContract({
    address: asset,
    abi: parseAbi(['function balanceOf(address) view returns (uint256)']),
    functionName: 'balanceOf',
    args: [owner],
  })
}

async function svmBalance(rpcUrl: string, owner: string): Promise<string> {
  const account = address(await svmTokenAccount(owner))
  return (await createSolanaRpc(rpcUrl).getTokenAccountBalance(account).send()).value.amount
}

/** A process that has opened the sandbox, and where its chains are; all are gone after the test, however it ends. */
async function elsewhere(t: Test, directory: string, ...rest: string[]) {
  const child = spawn(...nodeCommand(['--import', 'tsx', PROGRAM, directory, ...rest]), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  const [chunk] = await once(child.stdout, 'data')
  const { evm, tempo, svm } = json(directory, 'sandbox', 'state.json')
  t.teardown(() => [evm, tempo, svm].forEach(({ pid }) => end(pid)))
  return { child, ended, rpcUrl: String(chunk).trim(), tempo }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The test has ended it already.
  }
}

t.test('creates a funded wallet and a signer with gas', async (t) => {
  const directory = t.testdir()
  const sandbox = await open(directory)
  t.teardown(() => sandbox.stop())
  const { rpcUrl, chainId, asset, payerKey, signerKey, payTo } = sandbox.evm
  const { tempo, svm } = sandbox
  if (svm === undefined) throw new Error('litesvm is not installed')
  t.same(json(directory, 'sandbox.json'), {
    baseUrl: 'http://localhost:4021',
    evm: { rpcUrl, chainId: 84532, asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', payerKey, payTo },
    tempo: {
      rpcUrl: tempo.rpcUrl,
      chainId: 42431,
      currency: '0x20c0000000000000000000000000000000000000',
      payerKey: tempo.payerKey,
      recipient: tempo.recipient,
    },
    svm: {
      rpcUrl: svm.rpcUrl,
      network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
      mint: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
      payerKey: svm.payerKey,
      payTo: svm.payTo,
    },
  })
  t.equal(chainId, 84532)
  t.equal(tempo.chainId, 42431)
  t.equal(
    await balance(tempo.rpcUrl, tempo.currency, privateKeyToAddress(tempo.payerKey)),
    1_000_000_000n,
    'and another wallet on the other chain',
  )
  t.equal(await balance(tempo.rpcUrl, tempo.currency, tempo.recipient), 0n)
  const { svm: svmState } = json(directory, 'sandbox', 'state.json')
  const [payer = '', feePayer = '', svmRefunder = ''] = [
    svm.payerKey,
    svm.feePayerKey,
    svmState.refundKey,
  ].map((key) => openSvmAccount(key)?.address)
  t.equal(await svmBalance(svm.rpcUrl, payer), '1000000000', 'and another on Solana')
  t.equal(await svmBalance(svm.rpcUrl, svm.payTo), '0', 'where the payee has a token account')
  const { value } = await createSolanaRpc(svm.rpcUrl).getBalance(address(feePayer)).send()
  t.ok(value >= 10n ** 9n)
  t.ok(Buffer.byteLength(tempo.secretKey) >= 32)
  t.equal(json(directory, 'sandbox', 'state.json').tempo.secretKey, tempo.secretKey)
  t.equal(await balance(rpcUrl, asset, privateKeyToAddress(payerKey)), 1_000_000_000n)
  const client = createPublicClient({ transport: http(rpcUrl) })
  for (const key of [payerKey, signerKey]) {
    t.ok((await client.getBalance({ address: privateKeyToAddress(key) })) > 10n ** 18n)
  }
  const { refundKey } = json(directory, 'sandbox', 'state.json')
  const refunder = privateKeyToAddress(refundKey)
  t.equal(
    await balance(rpcUrl, asset, refunder),
    1_000_000_000n,
    'refunds are paid from an account of their own',
  )
  t.equal(await balance(tempo.rpcUrl, tempo.currency, refunder), 1_000_000_000n)
  t.same(
    readSandboxAddresses(directory),
    new Set([
      ...[
        payTo,
        tempo.recipient,
        ...[payerKey, signerKey, tempo.payerKey, refundKey].map((key) => privateKeyToAddress(key)),
      ].map((each) => each.toLowerCase()),
      payer,
      feePayer,
      svmRefunder,
      svm.payTo,
    ]),
  )
  t.equal(sandbox.ledgerDirectory, join(directory, 'sandbox', 'ledger'))
})

t.test('stores keys readable by their owner only, without a draft of them', async (t) => {
  const directory = t.testdir({ 'sandbox.json': 'old', sandbox: { 'state.json.draft': 'old' } })
  const sandbox = await open(directory)
  t.teardown(() => sandbox.stop())
  for (const file of ['sandbox.json', 'sandbox/state.json', 'sandbox/lock']) {
    t.equal(statSync(join(directory, file)).mode & 0o777, 0o600, file)
  }
  t.same(readdirSync(directory).sort(), ['sandbox', 'sandbox.json'])
  t.same(readdirSync(join(directory, 'sandbox')).sort(), ['lock', 'state.json'])
})

t.test('refuses a second sandbox on the same directory, and leaves the first as it is', async (t) => {
  const directory = t.testdir()
  const { child, rpcUrl } = await elsewhere(t, directory)
  const before = readFileSync(join(directory, 'sandbox.json'), 'utf8')
  await t.rejects(
    open(directory),
    new RegExp(`Another sandbox uses this directory \\(process ${child.pid}\\)`),
  )
  t.equal(readFileSync(join(directory, 'sandbox.json'), 'utf8'), before)
  t.equal(await createPublicClient({ transport: http(rpcUrl) }).getChainId(), 84532)
})

t.test('continues chains, keys and ledger after a server was killed', async (t) => {
  const directory = t.testdir()
  const { child, ended, rpcUrl, tempo } = await elsewhere(t, directory)
  mkdirSync(join(directory, 'sandbox', 'ledger'))
  writeFileSync(join(directory, 'sandbox', 'ledger', 'data'), 'paid')
  const first = json(directory, 'sandbox.json')
  child.kill('SIGKILL')
  await ended

  const lines: string[] = []
  const sandbox = await open(directory, lines)
  t.teardown(() => sandbox.stop())
  t.equal(sandbox.evm.rpcUrl, rpcUrl)
  t.equal(sandbox.tempo.rpcUrl, tempo.rpcUrl)
  t.equal(sandbox.tempo.secretKey, tempo.secretKey, 'challenges of the last run are still good')
  t.same(json(directory, 'sandbox.json'), first)
  t.same(lines, [])
  t.equal(readFileSync(join(sandbox.ledgerDirectory, 'data'), 'utf8'), 'paid')
  const payer = privateKeyToAddress(sandbox.evm.payerKey)
  t.equal(await balance(rpcUrl, sandbox.evm.asset, payer), 1_000_000_000n)
  t.equal(
    await balance(tempo.rpcUrl, sandbox.tempo.currency, privateKeyToAddress(sandbox.tempo.payerKey)),
    1_000_000_000n,
  )
  // The chain writes a log whose reader is gone; it must still mine.
  const client = createPublicClient({ transport: http(rpcUrl) })
  const height = await client.getBlockNumber({ cacheTime: 0 })
  for (let block = 1n; block <= 20n; block++) await rpc(rpcUrl, 'evm_mine')
  t.equal(await client.getBlockNumber({ cacheTime: 0 }), height + 20n)

  await sandbox.stop()
  for (const gone of [rpcUrl, tempo.rpcUrl]) {
    await t.rejects(rpc(gone, 'eth_chainId'), 'an adopted chain ends with the sandbox')
  }
})

async function rpc(rpcUrl: string, method: string): Promise<unknown> {
  const answer = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [] }),
  })
  return answer.json()
}

t.test('sets the ledger of a lost chain aside', async (t) => {
  const directory = t.testdir()
  const first = await open(directory)
  mkdirSync(first.ledgerDirectory)
  writeFileSync(join(first.ledgerDirectory, 'data'), 'paid')
  await first.stop()

  const lines: string[] = []
  const second = await open(directory, lines)
  t.teardown(() => second.stop())
  const aside = join(directory, 'sandbox', 'ledger.previous')
  t.equal(readFileSync(join(aside, 'data'), 'utf8'), 'paid')
  t.equal(existsSync(second.ledgerDirectory), false)
  t.same(lines, [`sandbox: the chain of the last run is gone, its ledger is now ${aside}`])
  t.not(second.evm.payerKey, first.evm.payerKey)
  t.not(second.evm.signerKey, first.evm.signerKey)
  t.not(second.evm.payTo, first.evm.payTo)
  t.not(second.tempo.payerKey, first.tempo.payerKey)
  t.not(second.tempo.recipient, first.tempo.recipient)
  t.not(second.tempo.secretKey, first.tempo.secretKey)

  await second.stop()
  mkdirSync(second.ledgerDirectory)
  const third = await open(directory)
  t.teardown(() => third.stop())
  t.same(
    readdirSync(join(directory, 'sandbox')).filter((name) => name.startsWith('ledger')),
    ['ledger.previous'],
    'old ledgers do not pile up',
  )
  t.same(readdirSync(aside), [])
})

t.test('starts both chains again when one is lost, since one ledger covers both', async (t) => {
  for (const gone of ['evm', 'tempo'] as const) {
    const directory = t.testdir()
    const { child, ended } = await elsewhere(t, directory)
    mkdirSync(join(directory, 'sandbox', 'ledger'))
    const first = json(directory, 'sandbox', 'state.json')
    child.kill('SIGKILL')
    await ended
    end(first[gone].pid)
    await closed(first[gone].rpcUrl)

    const lines: string[] = []
    const sandbox = await open(directory, lines)
    t.match(lines, [/^sandbox: the chain of the last run is gone, its ledger is now /])
    for (const name of ['evm', 'tempo'] as const) {
      t.not(sandbox[name].payerKey, first[name].payerKey, `${gone} gone: a new ${name} chain`)
      await t.rejects(rpc(first[name].rpcUrl, 'eth_chainId'), `${gone} gone: the old ${name} chain has ended`)
    }
    await sandbox.stop()
  }
})

async function closed(rpcUrl: string): Promise<void> {
  for (;;) {
    try {
      await rpc(rpcUrl, 'eth_chainId')
    } catch {
      return
    }
  }
}

t.test('starts a new sandbox on a damaged state file', async (t) => {
  const half = '{"evm":{"rpcUrl":"http://127.0.0.1:1","pid":"x"},"tempo":{}}'
  for (const damaged of ['', '{"evm":', '[]', half]) {
    const directory = t.testdir({ sandbox: { 'state.json': damaged, ledger: { data: 'paid' } } })
    const lines: string[] = []
    const sandbox = await open(directory, lines)
    t.equal(lines.length, 1)
    t.equal(json(directory, 'sandbox', 'state.json').evm.rpcUrl, sandbox.evm.rpcUrl)
    await sandbox.stop()
  }
})

t.test('ends chains and lock with a server that ends by itself', async (t) => {
  const directory = t.testdir()
  const { ended, rpcUrl, tempo } = await elsewhere(t, directory, 'exit')
  t.same(await ended, [0, null], 'a chain does not keep a finished server alive')
  for (const gone of [rpcUrl, tempo.rpcUrl]) await closed(gone)
  const sandbox = await open(directory)
  t.teardown(() => sandbox.stop())
  t.not(sandbox.evm.rpcUrl, rpcUrl)
  t.not(sandbox.tempo.rpcUrl, tempo.rpcUrl)
})
