import { adoptEvmChain, startEvmChain, type EvmChain, type EvmChainRecord } from './evm/chain.ts'
import {
  adoptSvmChain,
  isSvmInstalled,
  startSvmChain,
  type SvmChain,
  type SvmChainRecord,
} from './svm/chain.ts'
import {
  adoptTempoChain,
  PATH_USD,
  startTempoChain,
  type TempoChain,
  type TempoChainRecord,
} from './tempo/chain.ts'

/** The chains of a sandbox: they begin and end together, since one ledger records the payments on all. */
export interface Chains {
  readonly evm: EvmChain
  readonly tempo: TempoChain
  /** Undefined when the packages that it needs are not installed. */
  readonly svm: SvmChain | undefined
  stop(): Promise<void>
}

interface ChainRecords {
  readonly evm: EvmChainRecord
  readonly tempo: TempoChainRecord
  readonly svm?: SvmChainRecord | undefined
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
/** As fast as Solana is. */
const SVM = { blockMs: 400 } as const

/** Starts the chains; when one cannot start, the others are stopped. */
export async function startChains(): Promise<Chains> {
  const starting = [
    startEvmChain(EVM),
    startTempoChain(TEMPO.chainId),
    ...(isSvmInstalled() ? [startSvmChain(SVM)] : []),
  ] as const
  try {
    const [evm, tempo, svm] = await Promise.all(starting)
    return together({ evm, tempo, svm })
  } catch (error) {
    for (const begun of await Promise.allSettled(starting)) {
      if (begun.status === 'fulfilled') await begun.value.stop()
    }
    throw error
  }
}

/**
 * Takes over the chains of an earlier run; undefined, and all are stopped, when one is gone or is another chain, or when
 * that run had no Solana and this one can.
 */
export async function adoptChains(records: ChainRecords): Promise<Chains | undefined> {
  const [evm, tempo, svm] = await Promise.all([
    adoptEvmChain(records.evm),
    adoptTempoChain(records.tempo),
    records.svm && adoptSvmChain(records.svm),
  ])
  const hasSvm = (svm !== undefined) === isSvmInstalled()
  if (evm !== undefined && tempo !== undefined && hasSvm && isOurs(records))
    return together({ evm, tempo, svm })
  await Promise.all([evm?.stop(), tempo?.stop(), svm?.stop()])
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

function together({ evm, tempo, svm }: Omit<Chains, 'stop'>): Chains {
  return {
    evm,
    tempo,
    svm,
    async stop() {
      await Promise.all([evm.stop(), tempo.stop(), svm?.stop()])
    },
  }
}
