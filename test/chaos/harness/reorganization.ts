import { keccak256 } from 'viem'
import type { Hex } from '../../support/payment.ts'
import type { RpcProxy } from '../../support/rpc-proxy.ts'
import type { SeededRandom } from './seeded-random.ts'

/** What became of the transactions in the blocks that a reorganization has replaced. */
export interface Reorganization {
  readonly at: number
  readonly dropped: number
  /** Those that came back into the pool of the node, as most do; the others are gone until somebody sends them again. */
  readonly returned: number
}

const RETURN_RATE = 0.5

/** Notes what is sent through a proxy; returns the bytes of a transaction by its hash. */
export function noteTransactions(node: RpcProxy): (hash: string) => string | undefined {
  const raws = new Map<string, string>()
  node.instead(async (method, [raw]) => {
    if (method === 'eth_sendRawTransaction' && isHex(raw)) raws.set(keccak256(raw), raw)
    return undefined
  })
  return (hash) => raws.get(hash)
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
  const newest = Number(await ask(rpcUrl, 'eth_blockNumber', []))
  const hashes: string[] = []
  for (let block = newest - depth + 1; block <= newest; block += 1)
    hashes.push(...(await transactionsOf(rpcUrl, block)))
  if (hashes.length === 0) return undefined
  // A block that is mined meanwhile leaves anvil with a number without a block, and with logs of blocks that are gone.
  await ask(rpcUrl, 'evm_setAutomine', [false])
  await ask(rpcUrl, 'evm_setIntervalMining', [0])
  await ask(rpcUrl, 'anvil_reorg', [depth, []])
  // The new blocks have the time of the one below them, and so would all that follow.
  await ask(rpcUrl, 'evm_setTime', [Math.floor(Date.now() / 1_000)])
  await ask(rpcUrl, 'evm_mine', [])
  if (mining !== 'manual') await ask(rpcUrl, 'evm_setIntervalMining', [mining.seconds])
  const returning = hashes.flatMap((hash) => (random.chance(RETURN_RATE) ? (rawOf(hash) ?? []) : []))
  const at = Date.now()
  const accepted = await Promise.all(
    returning.map((raw) =>
      ask(rpcUrl, 'eth_sendRawTransaction', [raw]).then(
        () => true,
        // Its nonce is in use again, or its payment has expired.
        () => false,
      ),
    ),
  )
  return { at, dropped: hashes.length, returned: accepted.filter(Boolean).length }
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
