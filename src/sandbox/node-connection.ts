import { setTimeout as pause } from 'node:timers/promises'
import {
  createTestClient,
  defineChain,
  http,
  publicActions,
  TransactionReceiptNotFoundError,
  walletActions,
  type Chain,
  type Hex,
  type HttpTransport,
  type PublicActions,
  type TestClient,
  type WalletActions,
} from '../vendor/viem.ts'

/** What has to be remembered to find a running node again. */
export interface NodeRecord {
  readonly rpcUrl: string
  readonly pid: number
  readonly chainId: number
  /** Hash of block 0. */
  readonly genesis: Hex
}

/** A way to the node of one chain, with the powers a local node gives to everybody. */
export type Connection = TestClient<'anvil', HttpTransport, Chain> &
  PublicActions<HttpTransport, Chain> &
  WalletActions<Chain>

export function connect(rpcUrl: string, chainId: number): Connection {
  const described = defineChain({
    id: chainId,
    name: 'Sandbox',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  })
  return createTestClient({
    mode: 'anvil',
    chain: described,
    transport: http(rpcUrl, { retryCount: 0, timeout: 5_000 }),
    pollingInterval: 20,
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions)
}

const MINED_WITHIN_MS = 60_000

/**
 * Resolves when a transaction is mined; rejects when it is in no block within a minute. viem looks for the receipt once
 * in each block: a node that shows a block before its receipts is waited for in vain when no other block follows.
 */
export async function untilMined(connection: Connection, hash: Hex): Promise<void> {
  const until = Date.now() + MINED_WITHIN_MS
  while (Date.now() < until) {
    try {
      await connection.getTransactionReceipt({ hash })
      return
    } catch (cause) {
      if (!(cause instanceof TransactionReceiptNotFoundError)) throw cause
    }
    await pause(connection.pollingInterval)
  }
  throw new Error(`The sandbox did not mine ${hash}`)
}

/** Hash of block 0: it holds the second of the start, so no two chains on one port share it. */
export async function genesisOf(connection: Connection): Promise<Hex> {
  return (await connection.getBlock({ blockNumber: 0n })).hash
}

/** Whether the chain behind a connection is the one remembered; false when nothing answers there. */
export async function isChain(
  connection: Connection,
  { chainId, genesis }: Pick<NodeRecord, 'chainId' | 'genesis'>,
): Promise<boolean> {
  try {
    return (await connection.getChainId()) === chainId && (await genesisOf(connection)) === genesis
  } catch {
    return false
  }
}
