import { encodeDeployData, isHex, parseAbi, stringToHex, type Address, type Hex } from '../../vendor/viem.ts'
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
import { MULTICALL3 } from '../../engine/chains/evm/multicall.ts'
import { PERMIT2, UPTO_PROXY } from '../../engine/base/permit2.ts'
import { CHANNELS, DEPOSIT_COLLECTOR, PERMIT_COLLECTOR } from '../../engine/base/channel-contracts.ts'
import channels from './channels.json' with { type: 'json' }
import collector from './deposit-collector.json' with { type: 'json' }
import multicall from './multicall.json' with { type: 'json' }
import permit2 from './permit2.json' with { type: 'json' }
import permitCollector from './permit-collector.json' with { type: 'json' }
import proxy from './proxy.json' with { type: 'json' }
import token from './token.json' with { type: 'json' }
import uptoProxy from './upto-proxy.json' with { type: 'json' }

/** What a chain is started with. */
export interface EvmChainOptions {
  readonly chainId: number
  /** Where the test token is. */
  readonly asset: Address
  /** EIP-712 name of the token, at most 31 bytes. */
  readonly tokenName: string
  /** EIP-712 version of the token, at most 31 bytes. */
  readonly tokenVersion: string
  /** Seconds between blocks; without it every transaction is mined at once. */
  readonly blockTime?: number
  /** Further flags for anvil. */
  readonly flags?: readonly string[]
}

/** What has to be remembered to find a running chain again. */
export interface EvmChainRecord extends NodeRecord {
  readonly asset: Address
}

/** A local EVM chain with a token whose money anybody can make, and the contracts that payments are settled through. */
export interface EvmChain extends EvmChainRecord {
  /** Makes tokens, in atomic units (6 decimals); resolves when mined. */
  mint(to: Address, amount: bigint): Promise<void>
  /** Token balance in atomic units. */
  balance(of: Address): Promise<bigint>
  /** Sets the native balance, in wei. */
  setGas(of: Address, wei: bigint): Promise<void>
  /** Replaces the code at an address. */
  setCode(at: Address, code: Hex): Promise<void>
  stop(): Promise<void>
}

const TOKEN_ABI = parseAbi([
  'constructor(bytes32 name, bytes32 version)',
  'function mint(address to, uint256 amount)',
  'function balanceOf(address owner) view returns (uint256)',
])

/** The code behind the token's proxy. */
const IMPLEMENTATION: Address = '0x000000000000000000000000000000000003009a'
/** Storage of the proxy: implementation and administrator, as FiatTokenProxy has them. */
const PROXY_STORAGE: readonly { readonly slot: Hex; readonly value: Address }[] = [
  { slot: '0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3', value: IMPLEMENTATION },
  {
    slot: '0x10d6a54a4754c8869d6886b5f5d7fbfa5b4522237ea5c60d11bc4e7a1ff9390b',
    value: '0x00000000000000000000000000000000000ad314',
  },
]

/** Sends the minting transactions; nobody has its key, the node signs for it. */
const FAUCET = '0x00000000000000000000000000000000000fa0ce'

/**
 * Starts a chain with the test token at `asset` and the contracts at their usual addresses; resolves when it can be paid on.
 *
 * @example
 * const chain = await startEvmChain({ chainId: 84532, asset: BASE_SEPOLIA_USDC, tokenName: 'USDC', tokenVersion: '2' })
 */
export async function startEvmChain(options: EvmChainOptions): Promise<EvmChain> {
  const { chainId, asset, tokenName, tokenVersion, blockTime, flags = [] } = options
  const contracts = [
    { address: IMPLEMENTATION, creation: tokenCreationCode(tokenName, tokenVersion) },
    { address: asset, creation: bytecodeOf(proxy) },
    { address: MULTICALL3, creation: bytecodeOf(multicall) },
    { address: PERMIT2, creation: bytecodeOf(permit2) },
    { address: UPTO_PROXY, creation: bytecodeOf(uptoProxy) },
    { address: CHANNELS, creation: bytecodeOf(channels) },
    { address: DEPOSIT_COLLECTOR, creation: bytecodeOf(collector) },
    { address: PERMIT_COLLECTOR, creation: bytecodeOf(permitCollector) },
  ]
  const mining = blockTime === undefined ? [] : ['--block-time', String(blockTime)]
  const anvil = await startAnvil(chainId, [...mining, ...flags])
  try {
    const client = connect(anvil.rpcUrl, chainId)
    for (const { address, creation } of contracts) {
      // A creation that is called, but not sent, returns the code that it would deploy.
      const { data } = await client.call({ data: creation })
      if (data === undefined) throw new Error('The contracts of the sandbox could not be created.')
      await client.setCode({ address, bytecode: data })
    }
    for (const { slot, value } of PROXY_STORAGE)
      await client.setStorageAt({
        address: asset,
        index: slot,
        value: `0x${value.slice(2).padStart(64, '0')}`,
      })
    await client.impersonateAccount({ address: FAUCET })
    await client.setBalance({ address: FAUCET, value: 10n ** 24n })
    const genesis = await genesisOf(client)
    return chain(anvil, client, { chainId, asset, genesis })
  } catch (error) {
    await anvil.stop()
    throw error
  }
}

/** Takes over a chain that was left running; undefined when it does not answer or is another chain. */
export async function adoptEvmChain(record: EvmChainRecord): Promise<EvmChain | undefined> {
  const client = connect(record.rpcUrl, record.chainId)
  if (!(await isChain(client, record))) return undefined
  return chain(adoptNode(record.rpcUrl, record.pid), client, record)
}

function chain(
  anvil: LocalNode,
  client: Connection,
  { chainId, asset, genesis }: Pick<EvmChainRecord, 'chainId' | 'asset' | 'genesis'>,
): EvmChain {
  return {
    rpcUrl: anvil.rpcUrl,
    pid: anvil.pid,
    chainId,
    asset,
    genesis,
    async mint(to, amount) {
      const hash = await client.writeContract({
        account: FAUCET,
        address: asset,
        abi: TOKEN_ABI,
        functionName: 'mint',
        args: [to, amount],
      })
      await untilMined(client, hash)
    },
    balance: (of) =>
      client.readContract({ address: asset, abi: TOKEN_ABI, functionName: 'balanceOf', args: [of] }),
    setGas: (of, wei) => client.setBalance({ address: of, value: wei }),
    setCode: (at, code) => client.setCode({ address: at, bytecode: code }),
    stop: () => anvil.stop(),
  }
}

function tokenCreationCode(name: string, version: string): Hex {
  return encodeDeployData({
    abi: TOKEN_ABI,
    bytecode: bytecodeOf(token),
    args: [stringToHex(name, { size: 32 }), stringToHex(version, { size: 32 })],
  })
}

function bytecodeOf({ bytecode }: { readonly bytecode: string }): Hex {
  if (!isHex(bytecode)) throw new Error('A committed contract is damaged; run: npm run token')
  return bytecode
}
