import { encodeDeployData, isHex, parseAbi, stringToHex, type Address, type Hex } from 'viem'
import { adoptAnvil, startAnvil, type Anvil } from '../anvil.ts'
import { connect, genesisOf, isChain, type Connection, type NodeRecord } from '../connection.ts'
import token from './token.json' with { type: 'json' }

/** What a chain is started with. */
export interface EvmChainOptions {
  readonly chainId: number
  /** Where the test token stands. */
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

/** A local EVM chain with a token whose money anybody can make. */
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

/** Sends the minting transactions; nobody has its key, the node signs for it. */
const FAUCET = '0x00000000000000000000000000000000000fa0ce'

/**
 * Starts a chain with the test token at `asset`; resolves when it can be paid on.
 *
 * @example
 * const chain = await startEvmChain({ chainId: 84532, asset: BASE_SEPOLIA_USDC, tokenName: 'USDC', tokenVersion: '2' })
 */
export async function startEvmChain(options: EvmChainOptions): Promise<EvmChain> {
  const { chainId, asset, tokenName, tokenVersion, blockTime, flags = [] } = options
  const code = tokenCreationCode(tokenName, tokenVersion)
  const mining = blockTime === undefined ? [] : ['--block-time', String(blockTime)]
  const anvil = await startAnvil(chainId, [...mining, ...flags])
  try {
    const client = connect(anvil.rpcUrl, chainId)
    // A creation that is only called answers the code it would have deployed.
    const { data } = await client.call({ data: code })
    if (data === undefined) throw new Error('The test token could not be created.')
    await client.setCode({ address: asset, bytecode: data })
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
  return chain(adoptAnvil(record.rpcUrl, record.pid), client, record)
}

function chain(
  anvil: Anvil,
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
      await client.waitForTransactionReceipt({ hash })
    },
    balance: (of) =>
      client.readContract({ address: asset, abi: TOKEN_ABI, functionName: 'balanceOf', args: [of] }),
    setGas: (of, wei) => client.setBalance({ address: of, value: wei }),
    setCode: (at, code) => client.setCode({ address: at, bytecode: code }),
    stop: () => anvil.stop(),
  }
}

function tokenCreationCode(name: string, version: string): Hex {
  if (!isHex(token.bytecode)) throw new Error('The committed token artifact is damaged; run: npm run token')
  return encodeDeployData({
    abi: TOKEN_ABI,
    bytecode: token.bytecode,
    args: [stringToHex(name, { size: 32 }), stringToHex(version, { size: 32 })],
  })
}
