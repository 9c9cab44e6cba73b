import { parseAbi, type Address } from '../../vendor/viem.ts'
import { startAnvil } from '../anvil.ts'
import {
  connect,
  genesisOf,
  isChain,
  untilMined,
  type Connection,
  type NodeRecord,
} from '../node-connection.ts'
import { adoptNode, type LocalNode } from '../local-node.ts'

/** pathUSD: a dollar of six decimals at this address on every Tempo chain. */
export const PATH_USD = '0x20c0000000000000000000000000000000000000'

/** What has to be remembered to find a running chain again. */
export interface TempoChainRecord extends NodeRecord {
  /** The token that is paid with. */
  readonly currency: Address
}

/** A local Tempo chain with a faucet. */
export interface TempoChain extends TempoChainRecord {
  /** Hands out pathUSD, in atomic units (6 decimals); resolves when mined. */
  give(to: Address, amount: bigint): Promise<void>
  /** Balance of pathUSD in atomic units. */
  balance(of: Address): Promise<bigint>
  stop(): Promise<void>
}

const TIP20_ABI = parseAbi([
  'function transfer(address to, uint256 amount) returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
])

/** The first development account: it has enough money from the start, and the node signs for it. */
const FAUCET = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'

const FLAGS = [
  '--network',
  'tempo',
  // Without it only the first transaction of an account with an expiring nonce, as clients sign them, is ever mined.
  '--hardfork',
  'T3',
  // A block every two seconds, all day: the states of the last few are kept and nothing goes to disk.
  '--prune-history',
  '8',
]

/**
 * A payment may be valid for thirty seconds after the last block at most, and clients sign for twenty-five: a chain
 * that nobody pays on has to go on. The node’s own `--block-time` would do, but then it forgets no state, and in an
 * hour that is gigabytes.
 */
const BLOCK_EVERY_MS = 2_000

/** Starts a Tempo chain; resolves when it can be paid on. */
export async function startTempoChain(chainId: number): Promise<TempoChain> {
  const anvil = await startAnvil(chainId, FLAGS)
  try {
    const client = connect(anvil.rpcUrl, chainId)
    return await chain(anvil, client, { chainId, currency: PATH_USD, genesis: await genesisOf(client) })
  } catch (error) {
    await anvil.stop()
    throw error
  }
}

/** Takes over a chain that was left running; undefined when it does not answer or is another chain. */
export async function adoptTempoChain(record: TempoChainRecord): Promise<TempoChain | undefined> {
  const client = connect(record.rpcUrl, record.chainId)
  if (!(await isChain(client, record))) return undefined
  return chain(adoptNode(record.rpcUrl, record.pid), client, record)
}

async function chain(
  anvil: LocalNode,
  client: Connection,
  { chainId, currency, genesis }: Pick<TempoChainRecord, 'chainId' | 'currency' | 'genesis'>,
): Promise<TempoChain> {
  const goOn = () => client.mine({ blocks: 1 })
  await goOn()
  // The next payment reports a node that is gone.
  const clock = setInterval(() => void goOn().catch(() => undefined), BLOCK_EVERY_MS).unref()
  const token = { address: currency, abi: TIP20_ABI }
  return {
    rpcUrl: anvil.rpcUrl,
    pid: anvil.pid,
    chainId,
    currency,
    genesis,
    async give(to, amount) {
      const hash = await client.writeContract({
        ...token,
        account: FAUCET,
        functionName: 'transfer',
        args: [to, amount],
      })
      await untilMined(client, hash)
    },
    balance: (of) => client.readContract({ ...token, functionName: 'balanceOf', args: [of] }),
    async stop() {
      clearInterval(clock)
      await anvil.stop()
    },
  }
}
