import { privateKeyToAccount } from 'viem/accounts'
import { startEvmChain, type EvmChain } from '../../src/sandbox/evm/chain.ts'
import { USDC } from './ledger-fixture.ts'
import { onchainClient, type OnchainClient } from './base-chain.ts'
import {
  randomKey,
  addressOf,
  sign,
  type Challenge,
  type Faults,
  type Hex,
  type SignedPayment,
} from './payment.ts'

/** A local chain that equals Base but for its money, and began some hours ago. */
export interface BackdatedChain {
  readonly chain: EvmChain
  readonly onchain: OnchainClient
  /** A block of now. */
  mineNow(): Promise<void>
  /** Time of the newest block, in milliseconds. */
  headTime(): Promise<number>
  /** Mines so many blocks, a second each. */
  pass(blocks: number): Promise<void>
  call(method: string, params: readonly unknown[]): Promise<unknown>
  /** A new wallet with tokens. */
  wallet(): Promise<Hex>
  /** Withdraws an authorization as its payer can. */
  cancel(key: Hex, nonce: Hex): Promise<Hex>
}

export async function startBackdatedChain(from: number): Promise<BackdatedChain> {
  const flags = ['--timestamp', String(Math.floor(from / 1000))]
  const chain = await startEvmChain({
    chainId: 8453,
    asset: USDC,
    tokenName: 'USD Coin',
    tokenVersion: '2',
    flags,
  })
  const call = (method: string, params: readonly unknown[]): Promise<unknown> =>
    ask(chain.rpcUrl, method, params)
  const seen = onchainClient(chain)
  return {
    chain,
    onchain: seen,
    call,
    mineNow: async () => {
      await call('evm_setNextBlockTimestamp', [Math.floor(Date.now() / 1000)])
      await call('evm_mine', [])
    },
    headTime: async () => {
      const block = (await call('eth_getBlockByNumber', ['latest', false])) as { timestamp: string }
      return Number(block.timestamp) * 1000
    },
    pass: async (blocks) => {
      await call('anvil_mine', [`0x${blocks.toString(16)}`, '0x1'])
    },
    wallet: async () => {
      const key = randomKey()
      await chain.mint(addressOf(key), 100_000_000n)
      return key
    },
    cancel: async (key, nonce) => {
      const account = privateKeyToAccount(key)
      const domain = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: USDC } as const
      const types = {
        CancelAuthorization: [
          { name: 'authorizer', type: 'address' },
          { name: 'nonce', type: 'bytes32' },
        ],
      } as const
      const message = { authorizer: account.address, nonce }
      const signature = await account.signTypedData({
        domain,
        types,
        primaryType: 'CancelAuthorization',
        message,
      })
      return seen.submitCancellation(account.address, nonce, signature)
    },
  }
}

async function ask(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const { result } = (await response.json()) as { result: unknown }
  return result
}

/** Signs a transfer of 0.005 USDC on Base to an address, as a buyer would for such an offer. */
export function signTransfer(key: Hex, payTo: string, faults: Faults = {}): Promise<SignedPayment> {
  const challenge: Challenge = {
    x402Version: 2,
    error: '',
    resource: { url: 'https://api.example.com/paid/work' },
    extensions: {},
    accepts: [
      {
        scheme: 'exact',
        network: 'eip155:8453',
        amount: '5000',
        asset: USDC,
        payTo,
        maxTimeoutSeconds: 3600,
        extra: { name: 'USD Coin', version: '2' },
      },
    ],
  }
  return sign(challenge, key, faults)
}
