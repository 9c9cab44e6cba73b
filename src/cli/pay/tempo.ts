/** A Tempo chain, and the tokens on it that are dollars of six decimals. */
export interface TempoNetwork {
  readonly chainId: number
  readonly title: string
  /** Symbols by address in lower case. */
  readonly tokens: ReadonlyMap<string, string>
}

const PATH_USD = ['0x20c0000000000000000000000000000000000000', 'pathUSD'] as const
const USDC_E = ['0x20c000000000000000000000b9537d11c60e8b50', 'USDC.e'] as const

export const TEMPO_NETWORKS: readonly TempoNetwork[] = [
  { chainId: 4217, title: 'Tempo', tokens: new Map([PATH_USD, USDC_E]) },
  { chainId: 42431, title: 'Tempo Moderato', tokens: new Map([PATH_USD]) },
]
