import { sameAddress } from './address.ts'

/** A network with the stablecoin that is charged on it. */
export interface Network {
  /** CAIP-2. */
  readonly id: string
  readonly nickname: string
  readonly title: string
  readonly chainId: number
  readonly testnet: boolean
  /** What gas is paid in; 18 decimals everywhere. */
  readonly coin: string
  /** A public endpoint, for wallets that do not know the network. */
  readonly rpcUrl: string
  /** Shows transactions under `/tx/`. */
  readonly explorer: string
  /** Defaults that the catalog may replace. */
  readonly limits: Limits
  readonly token: Token
}

/** How far an operator goes to settle on a network. */
export interface Limits {
  /** Blocks that confirm a payment, its own included, before it counts. */
  readonly confirmations: number
  /** Wei for each unit of gas, tip included; above it nothing is sent. */
  readonly maxFeePerGas: bigint
  /** Wei that reverted transactions may cost in an hour; above it nothing is sold on the network. */
  readonly maxGasLoss: bigint
}

export interface Token {
  /** EIP-55. */
  readonly address: `0x${string}`
  readonly symbol: string
  readonly decimals: number
  /** EIP-712 domain of the token, which payers sign. It differs between chains, so it is never guessed. */
  readonly name: string
  readonly version: string
}

/** A Solana network with the stablecoin that is charged on it. */
export interface SvmNetwork extends Pick<
  Network,
  'id' | 'nickname' | 'title' | 'testnet' | 'coin' | 'rpcUrl' | 'explorer'
> {
  readonly token: {
    /** The mint, in base58. */
    readonly address: string
    readonly symbol: string
    readonly decimals: number
  }
}

interface Usdc extends Pick<Network, 'chainId' | 'nickname' | 'title' | 'coin' | 'rpcUrl' | 'explorer'> {
  readonly address: `0x${string}`
  readonly name: 'USD Coin' | 'USDC'
  readonly maxFeeGwei: bigint
}

/** Gas of five transfers at the highest fee: at usual fees, thousands of reverted transactions. */
const GAS_LOST = 1_000_000n

/** One block is enough: a network that undoes blocks often needs more, which the catalog can ask for. */
const CONFIRMATIONS = 1

function usdc({ address, name, maxFeeGwei, ...network }: Usdc): Network {
  return {
    ...network,
    id: `eip155:${network.chainId}`,
    testnet: TESTNETS.has(network.chainId),
    limits: {
      confirmations: CONFIRMATIONS,
      maxFeePerGas: maxFeeGwei * GWEI,
      maxGasLoss: maxFeeGwei * GWEI * GAS_LOST,
    },
    token: { address, symbol: 'USDC', decimals: 6, name, version: '2' },
  }
}

const GWEI = 1_000_000_000n

const TESTNETS: ReadonlySet<number> = new Set([84532, 421614, 43113])

/**
 * Circle’s native USDC with EIP-3009, as published by Circle and in the x402 SDK’s default assets.
 *
 * The fee limits are a guard against a runaway price, not a budget: far above what each network usually asks, and low
 * enough that a settlement (80,000 gas or so) does not cost dollars where it usually costs less than a cent. What a
 * rollup adds for its parent chain comes on top and is not limited here.
 */
export const NETWORKS: readonly Network[] = [
  usdc({
    chainId: 8453,
    nickname: 'base',
    title: 'Base',
    coin: 'ETH',
    rpcUrl: 'https://mainnet.base.org',
    explorer: 'https://basescan.org',
    address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    name: 'USD Coin',
    // The base fee stays near its floor of 0.005 gwei (docs.base.org, Network Fees).
    maxFeeGwei: 5n,
  }),
  usdc({
    chainId: 137,
    nickname: 'polygon',
    title: 'Polygon',
    coin: 'POL',
    rpcUrl: 'https://polygon.drpc.org',
    explorer: 'https://polygonscan.com',
    address: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
    name: 'USD Coin',
    // No less than 25 gwei (PIP-59), several hundred in a rush; a POL is worth a small part of an ETH.
    maxFeeGwei: 1_000n,
  }),
  usdc({
    chainId: 42161,
    nickname: 'arbitrum',
    title: 'Arbitrum One',
    coin: 'ETH',
    rpcUrl: 'https://arb1.arbitrum.io/rpc',
    explorer: 'https://arbiscan.io',
    address: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
    name: 'USD Coin',
    // The floor is 0.02 gwei since ArbOS 51, and may be set up to 0.1 (AIP ArbOS 60).
    maxFeeGwei: 5n,
  }),
  usdc({
    chainId: 43114,
    nickname: 'avalanche',
    title: 'Avalanche',
    coin: 'AVAX',
    rpcUrl: 'https://api.avax.network/ext/bc/C/rpc',
    explorer: 'https://snowtrace.io',
    address: '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E',
    name: 'USD Coin',
    // The floor was 25 nAVAX and has been 1 since ACP-125.
    maxFeeGwei: 100n,
  }),
  usdc({
    chainId: 10,
    nickname: 'optimism',
    title: 'OP Mainnet',
    coin: 'ETH',
    rpcUrl: 'https://mainnet.optimism.io',
    explorer: 'https://optimistic.etherscan.io',
    address: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85',
    name: 'USD Coin',
    // As Base, which is built alike.
    maxFeeGwei: 5n,
  }),
  usdc({
    chainId: 1,
    nickname: 'ethereum',
    title: 'Ethereum',
    coin: 'ETH',
    rpcUrl: 'https://ethereum.reth.rs/rpc',
    explorer: 'https://etherscan.io',
    address: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
    name: 'USD Coin',
    // No floor; from below 1 gwei to some tens in most hours.
    maxFeeGwei: 50n,
  }),
  usdc({
    chainId: 84532,
    nickname: 'base-sepolia',
    title: 'Base Sepolia',
    coin: 'ETH',
    rpcUrl: 'https://sepolia.base.org',
    explorer: 'https://sepolia.basescan.org',
    address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    name: 'USDC',
    maxFeeGwei: 1_000n,
  }),
  usdc({
    chainId: 421614,
    nickname: 'arbitrum-sepolia',
    title: 'Arbitrum Sepolia',
    coin: 'ETH',
    rpcUrl: 'https://sepolia-rollup.arbitrum.io/rpc',
    explorer: 'https://sepolia.arbiscan.io',
    address: '0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d',
    name: 'USD Coin',
    maxFeeGwei: 1_000n,
  }),
]

/** Circle’s USDC on Solana, a token of the SPL Token program. */
export const SVM_NETWORKS: readonly SvmNetwork[] = [
  {
    id: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    nickname: 'solana',
    title: 'Solana',
    testnet: false,
    coin: 'SOL',
    rpcUrl: 'https://api.mainnet-beta.solana.com',
    explorer: 'https://solscan.io',
    token: { address: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', symbol: 'USDC', decimals: 6 },
  },
  {
    id: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
    nickname: 'solana-devnet',
    title: 'Solana Devnet',
    testnet: true,
    coin: 'SOL',
    rpcUrl: 'https://api.devnet.solana.com',
    explorer: 'https://explorer.solana.com',
    token: { address: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU', symbol: 'USDC', decimals: 6 },
  },
]

/** The EVM network of a CAIP-2 id or nickname. */
export function findNetwork(name: string): Network | undefined {
  return NETWORKS.find((network) => network.id === name || network.nickname === name)
}

/** The Solana network of a CAIP-2 id or nickname. */
export function findSvmNetwork(name: string): SvmNetwork | undefined {
  return SVM_NETWORKS.find((network) => network.id === name || network.nickname === name)
}

/** The network of x402 with a CAIP-2 id or nickname. */
export function findAnyNetwork(name: string): Network | SvmNetwork | undefined {
  return findNetwork(name) ?? findSvmNetwork(name)
}

/** The environment variable with the endpoint of a network (CAIP-2). */
export function rpcVariable(id: string): string {
  const svm = findSvmNetwork(id)
  return svm === undefined ? `RPC_URL_${id.slice(id.indexOf(':') + 1)}` : svmRpcVariable(svm)
}

/** The environment variable with the endpoint of a Solana network. */
export function svmRpcVariable({ nickname }: SvmNetwork): string {
  return `RPC_URL_${nickname.toUpperCase().replace('-', '_')}`
}

/** The page of an explorer that shows a transaction. */
export function transactionPage(
  { explorer, nickname }: Pick<Network, 'explorer' | 'nickname'>,
  transaction: string,
): string {
  const cluster = nickname === 'solana-devnet' ? '?cluster=devnet' : ''
  return `${explorer}/tx/${transaction}${cluster}`
}

/** The page of an explorer that shows a transaction of a network (CAIP-2); undefined when none is known. */
export function findTransactionPage(network: string, transaction: string): string | undefined {
  const known = findAnyNetwork(network)
  if (known === undefined || !TRANSACTION.test(transaction)) return undefined
  return transactionPage(known, transaction)
}

const TRANSACTION = /^(0x[0-9a-f]{64}|[1-9A-HJ-NP-Za-km-z]{64,88})$/i

/** The chains of MPP. */
export const TEMPO_NETWORKS: readonly Pick<Network, 'chainId' | 'nickname' | 'title' | 'testnet'>[] = [
  { chainId: 4217, nickname: 'tempo', title: 'Tempo', testnet: false },
  { chainId: 42431, nickname: 'tempo-moderato', title: 'Tempo Moderato', testnet: true },
]

/** Whether tokens of a chain (CAIP-2) have no value; a chain that is not known may be real. */
export function isTestNetwork(id: string): boolean {
  return (
    findSvmNetwork(id)?.testnet === true ||
    [...NETWORKS, ...TEMPO_NETWORKS].some(({ chainId, testnet }) => testnet && id === `eip155:${chainId}`)
  )
}

/** TIP-20 tokens of the Tempo chains, which have six decimals and addresses with this prefix. */
const TIP20 = /^0x20c0[0-9a-f]{36}$/i
const SYMBOLS: Readonly<Record<string, string>> = {
  '0x20c0000000000000000000000000000000000000': 'PathUSD',
  '0x20c000000000000000000000b9537d11c60e8b50': 'USDC.e',
}

/** Decimals and symbol of an asset; undefined when unknown, so that only atomic units can be shown. */
export function findAsset(network: string, asset: string): Pick<Token, 'symbol' | 'decimals'> | undefined {
  if (TIP20.test(asset)) return { symbol: SYMBOLS[asset.toLowerCase()] ?? 'TIP-20', decimals: 6 }
  const mint = findSvmNetwork(network)?.token
  if (mint !== undefined) return mint.address === asset ? mint : undefined
  const token = findNetwork(network)?.token
  return token !== undefined && sameAddress(token.address, asset) ? token : undefined
}

/** In units of the token; a token this version does not know is counted in its atomic units. */
export function amountOf(
  atomic: bigint,
  network: string,
  asset: string,
): { readonly amount: string; readonly token: string } {
  const known = findAsset(network, asset)
  if (known === undefined) return { amount: atomic.toString(), token: `atomic units of ${asset}` }
  const { symbol, decimals } = known
  const digits = atomic.toString().padStart(decimals + 1, '0')
  return { amount: `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`, token: symbol }
}
