import { keccak256 } from 'viem'
import type { Hex } from '../../support/payment.ts'
import { askNode, type RpcProxy } from '../../support/rpc-proxy.ts'
import type { SeededRandom } from './seeded-random.ts'

/** What became of the transactions in the blocks that a reorganization has replaced. */
export interface Reorganization {
  readonly at: number
  /** Their hashes. */
  readonly dropped: readonly string[]
  /** Those that came back into the pool of the node, as most do; the others are gone until somebody sends them again. */
  readonly returned: readonly string[]
}

/** One time that a transaction was sent to the node. */
export interface Broadcast {
  readonly at: number
  /** What the node said against it. */
  readonly refusal: string | undefined
}

/** What was sent through a proxy, by the hash of the transaction. */
export interface SentTransactions {
  readonly rawOf: (hash: string) => string | undefined
  readonly broadcastsOf: (hash: string) => readonly Broadcast[]
}

const RETURN_RATE = 0.5

/** Notes what is sent to a node through its proxy. */
export function noteTransactions(proxy: RpcProxy, rpcUrl: string): SentTransactions {
  const raws = new Map<string, string>()
  const broadcasts = new Map<string, Broadcast[]>()
  proxy.instead(async (method, params) => {
    const [raw] = params
    if (method !== 'eth_sendRawTransaction' || !isHex(raw)) return undefined
    const [hash, at] = [keccak256(raw), Date.now()]
    raws.set(hash, raw)
    const answer = await askNode(rpcUrl, method, params)
    const refusal = 'error' in answer ? JSON.stringify(answer.error) : undefined
    broadcasts.set(hash, [...(broadcasts.get(hash) ?? []), { at, refusal }])
    return answer
  })
  return { rawOf: (hash) => raws.get(hash), broadcastsOf: (hash) => broadcasts.get(hash) ?? [] }
}

interface ReorganizationSettings {
  readonly rpcUrl: string
  readonly depth: number
  /** How the chain mines afterwards: `seconds` between its blocks, or when it is told to. */
  readonly mining: { readonly seconds: number } | 'manual'
  readonly random: SeededRandom
  /** The bytes of a transaction by its hash. Anvil breaks when it is asked for those of a transaction of Tempo. */
  readonly rawOf: (hash: string) => string | undefined
}

/** Replaces the newest blocks of a chain of anvil by empty ones; undefined when they are empty. */
export async function reorganize({
  rpcUrl,
  depth,
  mining,
  random,
  rawOf,
}: ReorganizationSettings): Promise<Reorganization | undefined> {
  await ask(rpcUrl, 'evm_setAutomine', [false])
  await ask(rpcUrl, 'evm_setIntervalMining', [0])
  // A block that is still being mined would leave anvil with numbers without a block, as no chain has them: the next one
  // waits for it.
  await ask(rpcUrl, 'evm_mine', [])
  const newest = Number(await ask(rpcUrl, 'eth_blockNumber', []))
  const hashes: string[] = []
  for (let block = newest - depth + 1; block <= newest; block += 1)
    hashes.push(...(await transactionsOf(rpcUrl, block)))
  const resume = async (): Promise<void> => {
    if (mining !== 'manual') await ask(rpcUrl, 'evm_setIntervalMining', [mining.seconds])
  }
  if (hashes.length === 0) {
    await resume()
    return undefined
  }
  await ask(rpcUrl, 'anvil_reorg', [depth, []])
  // The new blocks have the time of the one below them, and so would all that follow.
  await ask(rpcUrl, 'evm_setTime', [Math.floor(Date.now() / 1_000)])
  await ask(rpcUrl, 'evm_mine', [])
  await resume()
  const at = Date.now()
  const returned = await Promise.all(
    hashes
      .filter(() => random.chance(RETURN_RATE))
      .map(async (hash) => {
        const raw = rawOf(hash)
        if (raw === undefined) return []
        // Refused: its nonce is in use again, or its payment has expired.
        return ask(rpcUrl, 'eth_sendRawTransaction', [raw]).then(
          () => [hash],
          () => [],
        )
      }),
  )
  return { at, dropped: hashes, returned: returned.flat() }
}

/** Where the node says that a transaction is, and whether the block of that number contains it. */
export async function standingOf(rpcUrl: string, hash: string): Promise<string> {
  const receipt = await ask(rpcUrl, 'eth_getTransactionReceipt', [hash])
  if (receipt === null) return 'the node has no receipt of it'
  const { blockNumber, blockHash } = receipt as { readonly blockNumber: string; readonly blockHash: string }
  const block = await ask(rpcUrl, 'eth_getBlockByNumber', [blockNumber, false])
  const place = `the node has a receipt of it in block ${Number(blockNumber)} ${blockHash}`
  if (block === null) return `${place}; no block has that number`
  const { hash: shown, transactions } = block as {
    readonly hash: string
    readonly transactions: readonly string[]
  }
  const contains = transactions.includes(hash) ? 'contains it' : 'does not contain it'
  return `${place}; the block of that number is ${shown} and ${contains}`
}

function isHex(value: unknown): value is Hex {
  return typeof value === 'string' && value.startsWith('0x')
}

async function transactionsOf(rpcUrl: string, block: number): Promise<readonly string[]> {
  const found = await ask(rpcUrl, 'eth_getBlockByNumber', [`0x${block.toString(16)}`, false])
  return (found as { readonly transactions?: readonly string[] } | null)?.transactions ?? []
}

async function ask(rpcUrl: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const { result, error } = (await response.json()) as { readonly result?: unknown; readonly error?: object }
  if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
  return result
}
