import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { bytesToHex, getAddress, type Address, type Hex } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { adoptEvmChain, startEvmChain, type EvmChain } from './evm/chain.ts'
import { lock } from './lock.ts'
import { readState, writeSecret, type SandboxState } from './state.ts'

/** What a sandbox needs from the process that opens it. */
export interface SandboxOptions {
  /** The data directory. */
  readonly directory: string
  /** Where the server will answer; a loopback address. */
  readonly baseUrl: string
  readonly now: () => Date
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
  /** Where the ledger of this chain belongs. */
  readonly ledgerDirectory: string
  /** Ends the chain and frees the directory. */
  stop(): Promise<void>
}

/** Base Sepolia and its USDC: clients know both, so they pay here as they come. */
const EVM = {
  chainId: 84532,
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  tokenName: 'USDC',
  tokenVersion: '2',
} as const
const PURSE = 1_000_000_000n
const GAS = 100n * 10n ** 18n

/**
 * Opens the sandbox of a data directory: its chain if that still runs, else a new one with new keys.
 *
 * Writes `sandbox.json` for the client. A ledger that belongs to a chain that is gone is set aside, never deleted.
 * Throws when another process has the sandbox open, or anvil is not installed.
 */
export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { directory, baseUrl } = options
  const home = join(directory, 'sandbox')
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const release = lock(join(home, 'lock'))
  try {
    const { chain, state } = (await reuse(home)) ?? (await begin(home, options))
    const { rpcUrl, chainId, asset, payerKey, settlerKey, payTo } = state.evm
    writeSecret(join(directory, 'sandbox.json'), {
      baseUrl,
      evm: { rpcUrl, chainId, asset, payerKey, payTo },
    })
    return {
      evm: { rpcUrl, chainId, asset, payerKey, settlerKey, payTo },
      ledgerDirectory: join(home, 'ledger'),
      async stop() {
        await chain.stop()
        release()
      },
    }
  } catch (error) {
    release()
    throw error
  }
}

interface Running {
  readonly chain: EvmChain
  readonly state: SandboxState
}

async function reuse(home: string): Promise<Running | undefined> {
  const state = readState(join(home, 'state.json'))
  if (state?.evm.chainId !== EVM.chainId || state.evm.asset !== EVM.asset) return undefined
  const chain = await adoptEvmChain(state.evm)
  return chain && { chain, state }
}

async function begin(home: string, { now, random, log }: SandboxOptions): Promise<Running> {
  const payerKey = bytesToHex(random(32))
  const settlerKey = bytesToHex(random(32))
  const payTo = getAddress(bytesToHex(random(20)))
  const chain = await startEvmChain(EVM)
  try {
    const payer = privateKeyToAddress(payerKey)
    await chain.setGas(payer, GAS)
    await chain.setGas(privateKeyToAddress(settlerKey), GAS)
    await chain.mint(payer, PURSE)
    // Before the new state: after a crash in between, no ledger may stand beside a chain it does not belong to.
    setLedgerAside(home, now(), log)
    const { rpcUrl, pid, chainId, asset, genesis } = chain
    const state = { evm: { rpcUrl, pid, chainId, asset, genesis, payerKey, settlerKey, payTo } }
    writeSecret(join(home, 'state.json'), state)
    return { chain, state }
  } catch (error) {
    await chain.stop()
    throw error
  }
}

function setLedgerAside(home: string, now: Date, log: (line: string) => void): void {
  const ledger = join(home, 'ledger')
  if (!existsSync(ledger)) return
  const aside = `${ledger}.${now.toISOString().replaceAll(':', '-')}`
  renameSync(ledger, aside)
  log(`sandbox: the chain of the last run is gone, its ledger was set aside as ${aside}`)
}
