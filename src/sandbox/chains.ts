import { adoptEvmChain, startEvmChain, type EvmChain, type EvmChainRecord } from './evm/chain.ts'
import {
  adoptTempoChain,
  PATH_USD,
  startTempoChain,
  type TempoChain,
  type TempoChainRecord,
} from './tempo/chain.ts'

/** The two chains of a sandbox: they begin and end together, since one ledger records the payments on both. */
export interface Chains {
  readonly evm: EvmChain
  readonly tempo: TempoChain
  stop(): Promise<void>
}

interface ChainRecords {
  readonly evm: EvmChainRecord
  readonly tempo: TempoChainRecord
}

/** Base Sepolia and its USDC: clients know both, so they pay here as they come. */
const EVM = {
  chainId: 84532,
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  tokenName: 'USDC',
  tokenVersion: '2',
} as const
/** Tempo’s test network and its dollar, for the same reason. */
const TEMPO = { chainId: 42431, currency: PATH_USD } as const

/** Starts both chains; when one cannot start, the other is stopped. */
export async function startChains(): Promise<Chains> {
  const starting = [startEvmChain(EVM), startTempoChain(TEMPO.chainId)] as const
  try {
    return together(...(await Promise.all(starting)))
  } catch (error) {
    for (const begun of await Promise.allSettled(starting)) {
      if (begun.status === 'fulfilled') await begun.value.stop()
    }
    throw error
  }
}

/**
 * Takes over both chains of an earlier run; undefined, and both are stopped, when one is gone or is another chain.
 */
export async function adoptChains(records: ChainRecords): Promise<Chains | undefined> {
  const [evm, tempo] = await Promise.all([adoptEvmChain(records.evm), adoptTempoChain(records.tempo)])
  if (evm !== undefined && tempo !== undefined && isOurs(records)) return together(evm, tempo)
  await Promise.all([evm?.stop(), tempo?.stop()])
  return undefined
}

function isOurs({ evm, tempo }: ChainRecords): boolean {
  return (
    evm.chainId === EVM.chainId &&
    evm.asset === EVM.asset &&
    tempo.chainId === TEMPO.chainId &&
    tempo.currency === TEMPO.currency
  )
}

function together(evm: EvmChain, tempo: TempoChain): Chains {
  return {
    evm,
    tempo,
    async stop() {
      await Promise.all([evm.stop(), tempo.stop()])
    },
  }
}
