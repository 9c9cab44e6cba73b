import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { bytesToHex, getAddress, type Address, type Hex } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { adoptChains, startChains, type Chains } from './chains.ts'
import type { EvmChain } from './evm/chain.ts'
import { lock } from './lock.ts'
import { readState, writeSecret, type SandboxState } from './state.ts'
import type { TempoChain } from './tempo/chain.ts'

/** What a sandbox needs from the process that opens it. */
export interface SandboxOptions {
  /** The data directory. */
  readonly directory: string
  /** Where the server will answer; a loopback address. */
  readonly baseUrl: string
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
    readonly settlerKey: Hex
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
  /** Where the ledger of these chains belongs. */
  readonly ledgerDirectory: string
  /** Ends the chains and frees the directory. */
  stop(): Promise<void>
}

/** A thousand dollars of six decimals. */
const TEST_BALANCE = 1_000_000_000n
const GAS = 100n * 10n ** 18n

/**
 * Opens the sandbox of a data directory: its chains if they still run, else new ones with new keys.
 *
 * Writes `sandbox.json` for the client. The ledger of chains that are gone is set aside until the next time.
 * Throws when another process has the sandbox open, or anvil is not installed.
 */
export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { directory, baseUrl } = options
  const home = join(directory, 'sandbox')
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const release = lock(join(home, 'lock'))
  try {
    const { chains, state } = (await reuse(home)) ?? (await begin(home, options))
    const shown = forClients(state)
    writeSecret(join(directory, 'sandbox.json'), { baseUrl, ...shown })
    return {
      evm: { ...shown.evm, settlerKey: state.evm.settlerKey },
      tempo: { ...shown.tempo, secretKey: state.tempo.secretKey },
      ledgerDirectory: join(home, 'ledger'),
      async stop() {
        await chains.stop()
        release()
      },
    }
  } catch (error) {
    release()
    throw error
  }
}

/** What a client needs to pay; the keys of the seller stay here. */
function forClients({ evm, tempo }: SandboxState) {
  const { asset, payTo } = evm
  const { currency, recipient } = tempo
  return {
    evm: { rpcUrl: evm.rpcUrl, chainId: evm.chainId, asset, payerKey: evm.payerKey, payTo },
    tempo: { rpcUrl: tempo.rpcUrl, chainId: tempo.chainId, currency, payerKey: tempo.payerKey, recipient },
  }
}

interface Running {
  readonly chains: Chains
  readonly state: SandboxState
}

async function reuse(home: string): Promise<Running | undefined> {
  const state = readState(join(home, 'state.json'))
  const chains = state && (await adoptChains(state))
  return state && chains && { chains, state }
}

async function begin(home: string, { random, log }: SandboxOptions): Promise<Running> {
  const chains = await startChains()
  try {
    const [evm, tempo] = await Promise.all([fundEvm(chains.evm, random), fundTempo(chains.tempo, random)])
    const state = { evm, tempo }
    // Before the new state: after a crash in between, no ledger may stand beside chains it does not belong to.
    setLedgerAside(home, log)
    writeSecret(join(home, 'state.json'), state)
    return { chains, state }
  } catch (error) {
    await chains.stop()
    throw error
  }
}

async function fundEvm(chain: EvmChain, random: SandboxOptions['random']): Promise<SandboxState['evm']> {
  const payerKey = bytesToHex(random(32))
  const settlerKey = bytesToHex(random(32))
  const payTo = getAddress(bytesToHex(random(20)))
  const payer = privateKeyToAddress(payerKey)
  await chain.setGas(payer, GAS)
  await chain.setGas(privateKeyToAddress(settlerKey), GAS)
  await chain.mint(payer, TEST_BALANCE)
  const { rpcUrl, pid, chainId, asset, genesis } = chain
  return { rpcUrl, pid, chainId, asset, genesis, payerKey, settlerKey, payTo }
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

/** One is kept, for a look at the last run. */
function setLedgerAside(home: string, log: (line: string) => void): void {
  const ledger = join(home, 'ledger')
  if (!existsSync(ledger)) return
  const aside = join(home, 'ledger.previous')
  rmSync(aside, { recursive: true, force: true })
  renameSync(ledger, aside)
  log(`sandbox: the chain of the last run is gone, its ledger is now ${aside}`)
}
