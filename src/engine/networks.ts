/** A network with the stablecoin that is charged on it. */
export interface Network {
  /** CAIP-2. */
  readonly id: string
  readonly nickname: string
  readonly title: string
  readonly chainId: number
  readonly testnet: boolean
  readonly token: Token
}

export interface Token {
  /** EIP-55. */
  readonly address: `0x${string}`
  readonly symbol: string
  readonly decimals: number
  /** EIP-712 domain of the token: what the payer signs under. Differs between chains, so it is never guessed. */
  readonly name: string
  readonly version: string
}

function usdc(
  chainId: number,
  nickname: string,
  title: string,
  address: `0x${string}`,
  name: 'USD Coin' | 'USDC',
): Network {
  return {
    id: `eip155:${chainId}`,
    nickname,
    title,
    chainId,
    testnet: TESTNETS.has(chainId),
    token: { address, symbol: 'USDC', decimals: 6, name, version: '2' },
  }
}

const TESTNETS: ReadonlySet<number> = new Set([84532, 421614, 43113])

/** Circle’s native USDC with EIP-3009, as published by Circle and in the x402 SDK’s default assets. */
export const NETWORKS: readonly Network[] = [
  usdc(8453, 'base', 'Base', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 'USD Coin'),
  usdc(137, 'polygon', 'Polygon', '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', 'USD Coin'),
  usdc(42161, 'arbitrum', 'Arbitrum One', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831', 'USD Coin'),
  usdc(43114, 'avalanche', 'Avalanche', '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E', 'USD Coin'),
  usdc(10, 'optimism', 'OP Mainnet', '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85', 'USD Coin'),
  usdc(1, 'ethereum', 'Ethereum', '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', 'USD Coin'),
  usdc(84532, 'base-sepolia', 'Base Sepolia', '0x036CbD53842c5426634e7929541eC2318f3dCF7e', 'USDC'),
  usdc(
    421614,
    'arbitrum-sepolia',
    'Arbitrum Sepolia',
    '0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d',
    'USD Coin',
  ),
]

/** The network of a CAIP-2 id or nickname. */
export function findNetwork(name: string): Network | undefined {
  return NETWORKS.find((network) => network.id === name || network.nickname === name)
}
