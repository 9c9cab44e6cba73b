import { sameAddress } from './address.ts'
import { findNetwork, type Token } from './networks.ts'

/** TIP-20 tokens of the Tempo chains, which all have six decimals and an address that says so. */
const TIP20 = /^0x20c0[0-9a-f]{36}$/i
const SYMBOLS: Readonly<Record<string, string>> = {
  '0x20c0000000000000000000000000000000000000': 'PathUSD',
  '0x20c000000000000000000000b9537d11c60e8b50': 'USDC.e',
}

/** What amounts of an asset are counted in; undefined: not known here, so that only atomic units can be told. */
export function findAsset(network: string, asset: string): Pick<Token, 'symbol' | 'decimals'> | undefined {
  if (TIP20.test(asset)) return { symbol: SYMBOLS[asset.toLowerCase()] ?? 'TIP-20', decimals: 6 }
  const token = findNetwork(network)?.token
  return token !== undefined && sameAddress(token.address, asset) ? token : undefined
}
