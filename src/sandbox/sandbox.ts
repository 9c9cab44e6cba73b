import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { bytesToHex, getAddress, type Address, type Hex } from '../vendor/viem.ts'
import { privateKeyToAddress } from '../vendor/viem-accounts.ts'
import { adoptChains, startChains, type Chains } from './chains.ts'
import type { EvmChain } from './evm/chain.ts'
import { lock } from './directory-lock.ts'
import { readState, writeSecret, type SandboxState } from './state.ts'
import { SVM_NETWORK, type SvmChain } from './svm/chain.ts'
import { encodeBase58 } from '../engine/base/base58.ts'
import { createSvmAccount, openSvmAccount } from '../engine/base/svm-signature.ts'
import type { RefundKeys } from '../engine/refunds/refund.ts'
import type { TempoChain } from './tempo/chain.ts'
import { serveWallet } from './wallet.ts'

interface Place {
  /** The data directory. */
  readonly directory: string
}

export interface SandboxOptions extends Place {
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Uint8Array
  readonly log: (line: string) => void
}

/** Everything a payment needs, on this machine and worth nothing. */
export interface Sandbox {
  readonly evm: {
    readonly rpcUrl: string
    readonly chainId: number
    readonly asset: Address
    readonly payerKey: Hex
    readonly signerKey: Hex
    readonly payTo: Address
  }
  readonly tempo: {
    readonly rpcUrl: string
    readonly chainId: number
    readonly currency: Address
    readonly payerKey: Hex
    readonly recipient: Address
    /** Text that signs the challenges. */
    readonly secretKey: Hex
  }
  /** Absent when `litesvm` is not installed. Keys are 64 bytes in base58. */
  readonly svm?: {
    readonly rpcUrl: string
    /** CAIP-2: the network that the chain stands in for. */
    readonly network: string
    readonly mint: string
    readonly payerKey: string
    readonly feePayerKey: string
    readonly payTo: string
  }
  /** Middleware that signs payments for visitors without a wallet. */
  readonly wallet: ReturnType<typeof serveWallet>
  /** Where the ledger of these chains belongs. */
  readonly ledgerDirectory: string
}

/** A thousand dollars of six decimals. */
const TEST_BALANCE = 1_000_000_000n
const GAS = 100n * 10n ** 18n
/** A hundred SOL. */
const LAMPORTS = 100_000_000_000n

/**
 * Starts the chains of a data directory: those that still run, else new ones with new keys. Resolves to what ends them and
 * frees the directory. The ledger of chains that are gone is set aside until the next time.
 *
 * Throws when another process has the sandbox open, or anvil is not installed.
 */
export async function startSandbox(options: SandboxOptions): Promise<() => Promise<void>> {
  const home = homeIn(options)
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const release = lock(join(home, 'lock'))
  try {
    const chains = (await reuse(home)) ?? (await begin(home, options))
    return async () => {
      await chains.stop()
      release()
    }
  } catch (error) {
    release()
    throw error
  }
}

/**
 * The sandbox whose chains run, in this process or another. Writes `sandbox.json` for the client, with `baseUrl`, a
 * loopback address where the server answers. Throws when no sandbox runs in the directory.
 */
export function readSandbox({ directory, baseUrl }: Place & { readonly baseUrl: string }): Sandbox {
  const home = homeIn({ directory })
  const state = readState(join(home, 'state.json'))
  if (state === undefined) throw new Error(`no sandbox runs in ${directory}`)
  const shown = forClients(state)
  writeSecret(join(directory, 'sandbox.json'), { baseUrl, ...shown })
  return {
    evm: { ...shown.evm, signerKey: state.evm.signerKey },
    tempo: { ...shown.tempo, secretKey: state.tempo.secretKey },
    ...(shown.svm && state.svm && { svm: { ...shown.svm, feePayerKey: state.svm.feePayerKey } }),
    wallet: serveWallet(state, fetch),
    ledgerDirectory: join(home, 'ledger'),
  }
}

/** The accounts that refunds are sent from; none when no sandbox has run in the data directory. */
export function readRefundKeys({ directory }: Place): RefundKeys {
  const { refundKey, svm } = readState(join(homeIn({ directory }), 'state.json')) ?? {}
  return { evm: refundKey, svm: svm && openSvmAccount(svm.refundKey) }
}

function homeIn({ directory }: Place): string {
  return join(directory, 'sandbox')
}

/** What a client needs to pay; the keys of the seller stay here. */
function forClients({ evm, tempo, svm }: SandboxState) {
  const { asset, payTo } = evm
  const { currency, recipient } = tempo
  return {
    evm: { rpcUrl: evm.rpcUrl, chainId: evm.chainId, asset, payerKey: evm.payerKey, payTo },
    tempo: { rpcUrl: tempo.rpcUrl, chainId: tempo.chainId, currency, payerKey: tempo.payerKey, recipient },
    ...(svm && {
      svm: {
        rpcUrl: svm.rpcUrl,
        network: SVM_NETWORK,
        mint: svm.mint,
        payerKey: svm.payerKey,
        payTo: svm.payTo,
      },
    }),
  }
}

async function reuse(home: string): Promise<Chains | undefined> {
  const state = readState(join(home, 'state.json'))
  return state && (await adoptChains(state))
}

async function begin(home: string, { random, log }: Pick<SandboxOptions, 'random' | 'log'>): Promise<Chains> {
  const chains = await startChains()
  try {
    const [evm, tempo, svm] = await Promise.all([
      fundEvm(chains.evm, random),
      fundTempo(chains.tempo, random),
      chains.svm && fundSvm(chains.svm, random),
    ])
    const refundKey = bytesToHex(random(32))
    const refunder = privateKeyToAddress(refundKey)
    await Promise.all([fundAccount(chains.evm, refunder), chains.tempo.give(refunder, TEST_BALANCE)])
    // Before the new state: after a crash in between, no ledger may be next to chains it does not belong to.
    setLedgerAside(home, log)
    writeSecret(join(home, 'state.json'), {
      evm,
      tempo,
      ...(svm && { svm }),
      refundKey,
    } satisfies SandboxState)
    return chains
  } catch (error) {
    await chains.stop()
    throw error
  }
}

async function fundEvm(chain: EvmChain, random: SandboxOptions['random']): Promise<SandboxState['evm']> {
  const payerKey = bytesToHex(random(32))
  const signerKey = bytesToHex(random(32))
  const payTo = getAddress(bytesToHex(random(20)))
  await fundAccount(chain, privateKeyToAddress(payerKey))
  await chain.setGas(privateKeyToAddress(signerKey), GAS)
  const { rpcUrl, pid, chainId, asset, genesis } = chain
  return { rpcUrl, pid, chainId, asset, genesis, payerKey, signerKey, payTo }
}

async function fundAccount(chain: EvmChain, account: Address): Promise<void> {
  await chain.setGas(account, GAS)
  await chain.mint(account, TEST_BALANCE)
}

/** The network’s fees are paid in pathUSD as well: one balance is enough for both. */
async function fundTempo(
  chain: TempoChain,
  random: SandboxOptions['random'],
): Promise<SandboxState['tempo']> {
  const payerKey = bytesToHex(random(32))
  const recipient = getAddress(bytesToHex(random(20)))
  const secretKey = bytesToHex(random(32))
  await chain.give(privateKeyToAddress(payerKey), TEST_BALANCE)
  const { rpcUrl, pid, chainId, currency, genesis } = chain
  return { rpcUrl, pid, chainId, currency, genesis, payerKey, recipient, secretKey }
}

/** The payee has a token account, without which nobody can be paid on Solana. */
async function fundSvm(
  chain: SvmChain,
  random: SandboxOptions['random'],
): Promise<NonNullable<SandboxState['svm']>> {
  const [payer, feePayer] = [createSvmAccount(random(32)), createSvmAccount(random(32))]
  const refunder = createSvmAccount(random(32))
  const payTo = createSvmAccount(random(32)).address
  await Promise.all([
    chain.giveTokens(payer.address, TEST_BALANCE),
    chain.giveTokens(payTo, 0n),
    chain.giveTokens(refunder.address, TEST_BALANCE),
    chain.setLamports(payer.address, LAMPORTS),
    chain.setLamports(feePayer.address, LAMPORTS),
    chain.setLamports(refunder.address, LAMPORTS),
  ])
  const { rpcUrl, pid, mint, identity } = chain
  const [payerKey, feePayerKey] = [encodeBase58(payer.pair), encodeBase58(feePayer.pair)]
  const refundKey = encodeBase58(refunder.pair)
  return { rpcUrl, pid, mint, identity, payerKey, feePayerKey, payTo, refundKey }
}

/** One old ledger is kept, to look into the last run. */
function setLedgerAside(home: string, log: (line: string) => void): void {
  const ledger = join(home, 'ledger')
  if (!existsSync(ledger)) return
  const aside = join(home, 'ledger.previous')
  rmSync(aside, { recursive: true, force: true })
  renameSync(ledger, aside)
  log(`sandbox: the chain of the last run is gone, its ledger is now ${aside}`)
}
