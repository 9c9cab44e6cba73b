import {
  createTestClient,
  defineChain,
  http,
  parseAbi,
  parseAbiItem,
  publicActions,
  walletActions,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { startEvmChain, type EvmChain } from '../../src/sandbox/evm/chain.ts'
import type { Hex, SignedPayment } from './payment.ts'
import { receiptOf } from './receipt-of.ts'

/** The chain definition for viem. `viem/chains` would load 730 modules in every test file that starts a chain. */
export const base = evmChain(8453)

/** USD Coin on Base, as Circle publishes it. */
const USD_COIN = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'

const TOKEN = parseAbi([
  'function transfer(address to, uint256 value) returns (bool)',
  'function approve(address spender, uint256 value) returns (bool)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function blacklist(address account)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
])

const PERMIT2 = '0x000000000022D473030F116dDEE9F6B43aC78BA3'

const NONCES = parseAbi(['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'])

const USE = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

const CANCEL = {
  CancelAuthorization: [
    { name: 'authorizer', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/** A local chain with id 8453 and the test token at the address of USD Coin on Base. */
export function startBase(): Promise<EvmChain> {
  return startEvmChain({ chainId: 8453, asset: USD_COIN, tokenName: 'USD Coin', tokenVersion: '2' })
}

/** One use of an authorization on chain. */
interface Use {
  readonly payer: string
  readonly nonce: string
  readonly transaction: string
  readonly block: bigint
  /** What it has moved, in atomic units. */
  readonly amount: bigint
}

/** Reads and changes the token on chain, independently of the service. */
export interface OnchainClient {
  /** Every AuthorizationUsed since the first block. */
  uses(): Promise<Use[]>
  /** Transfers to an address, in atomic units. */
  received(by: string): Promise<bigint[]>
  /** Moves tokens out of any account. */
  drain(from: Hex, to: Hex, value: bigint): Promise<void>
  /** Allows Permit2 to move tokens of an account. */
  approvePermit2(owner: Hex, value: bigint): Promise<void>
  /** What Permit2 may move of an account, in atomic units. */
  permit2Allowance(owner: Hex): Promise<bigint>
  /** Cancels a nonce of Permit2, as its owner may until it is used. */
  cancelPermit(owner: Hex, nonce: bigint): Promise<void>
  blacklist(account: Hex): Promise<void>
  /** How often a payer was charged. */
  charges(payer: string): Promise<number>
  /** Cancels an authorization, as its payer may until it is used. */
  cancel(key: Hex, nonce: Hex): Promise<void>
  /** Submits a payment from another account, as any observer can. Resolves to the transaction. */
  submit(payment: Pick<SignedPayment, 'authorization' | 'signature'>): Promise<Hex>
  /** Withdraws an authorization with the payer’s signature. */
  submitCancellation(authorizer: Hex, nonce: Hex, signature: Hex): Promise<Hex>
  setMining(mining: 'automatic' | 'manual'): Promise<void>
  mine(): Promise<void>
  /** Reverts the newest blocks with their transactions. */
  undo(blocks: number): Promise<void>
}

function evmChain(id: number) {
  const nativeCurrency = { name: 'Ether', symbol: 'ETH', decimals: 18 }
  return defineChain({ id, name: `Chain ${id}`, nativeCurrency, rpcUrls: { default: { http: [] } } })
}

export function onchainClient({
  rpcUrl,
  asset,
  chainId,
}: Pick<EvmChain, 'rpcUrl' | 'asset' | 'chainId'>): OnchainClient {
  const client = createTestClient({
    mode: 'anvil',
    chain: evmChain(chainId),
    // The logs of a long run together.
    transport: http(rpcUrl, { maxResponseBodySize: false }),
    pollingInterval: 20,
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions)
  const as = async (account: Hex, work: (account: Hex) => Promise<Hex>): Promise<Hex> => {
    await client.impersonateAccount({ address: account })
    await client.setBalance({ address: account, value: 10n ** 20n })
    const hash = await work(account)
    await receiptOf(client, hash)
    await client.stopImpersonatingAccount({ address: account })
    return hash
  }
  const write = { address: asset, abi: TOKEN }
  const STRANGER = '0x00000000000000000000000000000000005742a9'
  const uses = async (): Promise<Use[]> => {
    const logs = await client.getLogs({ address: asset, events: USE, fromBlock: 0n, strict: true })
    // The token logs the use of an authorization, and next the transfer.
    return logs.flatMap((log, index) => {
      const next = logs[index + 1]
      if (log.eventName !== 'AuthorizationUsed' || next?.eventName !== 'Transfer') return []
      const { authorizer: payer, nonce } = log.args
      return [
        { payer, nonce, transaction: log.transactionHash, block: log.blockNumber, amount: next.args.value },
      ]
    })
  }
  return {
    uses,
    charges: async (by) => (await uses()).filter(({ payer }) => payer === by).length,
    received: async (by) => {
      const event = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')
      const to: Hex = `0x${by.slice(2)}`
      const logs = await client.getLogs({ address: asset, event, args: { to }, fromBlock: 0n, strict: true })
      return logs.map(({ args }) => args.value)
    },
    drain: async (from, to, value) => {
      await as(from, (account) =>
        client.writeContract({ ...write, account, functionName: 'transfer', args: [to, value] }),
      )
    },
    approvePermit2: async (owner, value) => {
      await as(owner, (account) =>
        client.writeContract({ ...write, account, functionName: 'approve', args: [PERMIT2, value] }),
      )
    },
    permit2Allowance: (owner) =>
      client.readContract({ address: asset, abi: TOKEN, functionName: 'allowance', args: [owner, PERMIT2] }),
    cancelPermit: async (owner, nonce) => {
      await as(owner, (account) =>
        client.writeContract({
          address: PERMIT2,
          abi: NONCES,
          account,
          functionName: 'invalidateUnorderedNonces',
          args: [nonce >> 8n, 1n << (nonce & 255n)],
        }),
      )
    },
    blacklist: async (account) => {
      await as(STRANGER, (stranger) =>
        client.writeContract({ ...write, account: stranger, functionName: 'blacklist', args: [account] }),
      )
    },
    cancel: async (key, nonce) => {
      const payer = privateKeyToAccount(key)
      const signature = await payer.signTypedData({
        domain: { name: 'USD Coin', version: '2', chainId, verifyingContract: asset },
        types: CANCEL,
        primaryType: 'CancelAuthorization',
        message: { authorizer: payer.address, nonce },
      })
      const args = [payer.address, nonce, signature] as const
      await as(STRANGER, (account) =>
        client.writeContract({ ...write, account, functionName: 'cancelAuthorization', args }),
      )
    },
    submit: ({ authorization, signature }) => {
      const { from, to, value, validAfter, validBefore, nonce } = authorization
      const args = [from, to, value, validAfter, validBefore, nonce, signature] as const
      return as(STRANGER, (account) =>
        client.writeContract({ ...write, account, functionName: 'transferWithAuthorization', args }),
      )
    },
    submitCancellation: (authorizer, nonce, signature) =>
      as(STRANGER, (account) =>
        client.writeContract({
          ...write,
          account,
          functionName: 'cancelAuthorization',
          args: [authorizer, nonce, signature],
        }),
      ),
    setMining: (mining) => client.setAutomine(mining === 'automatic'),
    mine: () => client.mine({ blocks: 1 }),
    undo: async (blocks) => {
      await client.request({ method: 'anvil_reorg', params: [blocks, []] } as never)
    },
  }
}
