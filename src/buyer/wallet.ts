import { privateKeyToAccount } from '../vendor/viem-accounts.ts'
import { isLoopback } from '../engine/base/loopback.ts'
import { openSvmAccount, type SvmAccount } from '../engine/base/svm-signature.ts'
import type { BuyerEnv } from '../env/buyer-env.ts'
import { EnvError } from '../env/env-error.ts'
import { join } from 'node:path'
import type { BuyerRuntime } from './buyer-runtime.ts'
import { Channels, type DepositRule } from './channels/channels.ts'
import type { AccountKind, Offer, ProtocolName, Signing } from './protocols/paying-protocol.ts'
import { readSandbox } from './sandbox-file.ts'

/** Keys that pay, and where they come from. */
export interface Wallet {
  readonly kind: 'sandbox' | 'environment'
  /** Of an account on EVM chains. */
  readonly evm: Readonly<Record<ProtocolName, `0x${string}`>> | undefined
  readonly svm: SvmAccount | undefined
  /** Endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** Endpoints of Solana by CAIP-2 id or nickname of the network. */
  readonly svmRpcUrls: Readonly<Record<string, string>>
}

/** The variables of keys, by the kind of their account. */
export const KEY_VARIABLES: Readonly<Record<AccountKind, string>> = {
  evm: 'PAYER_PRIVATE_KEY',
  svm: 'SOLANA_PAYER_PRIVATE_KEY',
}

type WalletEnv = Pick<BuyerEnv, 'dataDir' | 'payerKey' | 'svmPayerKey' | 'rpcUrls' | 'svmRpcUrls'>

/**
 * The sandbox's wallet pays at its own sandbox and nowhere else; anywhere else it is that of the environment. Throws
 * `EnvError`.
 */
export function findWallet(url: URL, env: WalletEnv): Wallet | undefined {
  const { dataDir, payerKey, rpcUrls, svmRpcUrls } = env
  const sandbox = readSandbox(dataDir)
  if (sandbox !== undefined && isSandbox(new URL(sandbox.baseUrl), url)) {
    const { svm } = sandbox
    return {
      kind: 'sandbox',
      evm: sandbox.keys,
      svm: svm?.key,
      rpcUrls: sandbox.rpcUrls,
      svmRpcUrls: svm === undefined ? {} : { [svm.network]: svm.rpcUrl },
    }
  }
  const svm = readSvmKey(env)
  if (payerKey === undefined && svm === undefined) return undefined
  const evm = payerKey && { x402: payerKey, mpp: payerKey }
  return { kind: 'environment', evm, svm, rpcUrls, svmRpcUrls }
}

/** The kinds of account that a wallet has a key of. */
export function accountsOf(wallet: Wallet | undefined): readonly AccountKind[] {
  return (['evm', 'svm'] as const).filter((kind) => wallet?.[kind] !== undefined)
}

/** The account of a wallet; undefined when it has none of this kind, or its key is a number that no account has. */
export function addressOf({ evm, svm }: Wallet, kind: AccountKind): string | undefined {
  if (kind === 'svm') return svm?.address
  try {
    return evm && privateKeyToAccount(evm.x402).address
  } catch {
    return undefined
  }
}

/** Signs an offer with the key of its kind of account. */
export async function signOffer(
  offer: Offer,
  { wallet, channels }: { readonly wallet: Wallet; readonly channels: Channels | undefined },
  { now, random }: BuyerRuntime,
): Promise<Signing> {
  const { evm, svm, rpcUrls, svmRpcUrls } = wallet
  const { account, protocol } = offer
  if (account === 'svm' && svm !== undefined)
    return offer.sign({
      key: svm,
      rpcUrl: ({ id, nickname }) => svmRpcUrls[id] ?? svmRpcUrls[nickname],
      random,
    })
  if (account === 'evm' && evm !== undefined)
    return offer.sign({
      key: evm[protocol],
      rpcUrl: (chainId) => rpcUrls[chainId],
      channels,
      now: new Date(now()),
      random,
    })
  return { kind: 'unsigned', reason: `the wallet has no key for this network: set ${KEY_VARIABLES[account]}` }
}

function readSvmKey({ svmPayerKey }: WalletEnv): SvmAccount | undefined {
  if (svmPayerKey === undefined) return undefined
  const account = openSvmAccount(svmPayerKey)
  if (account !== undefined) return account
  throw new EnvError([
    `${KEY_VARIABLES.svm} must be a key pair of Solana: 64 bytes in base58, or as a JSON array`,
  ])
}

/** Where a wallet keeps what it knows of one shop, as a part of a file name. */
export function nameAt({ host }: URL, address: string): string {
  return `${host}-${address}`.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '_')
}

/** The channels of a wallet at a shop; undefined when it has no account on EVM chains. */
export function channelsOf(
  wallet: Wallet,
  { shop, stateDir, rule }: { readonly shop: URL; readonly stateDir: string; readonly rule: DepositRule },
  runtime: BuyerRuntime,
): Channels | undefined {
  const address = addressOf(wallet, 'evm')
  if (address === undefined || wallet.evm === undefined) return undefined
  const folder = join(stateDir, 'channels', nameAt(shop, address))
  const rpcUrl = (chainId: number): string | undefined => wallet.rpcUrls[chainId]
  return new Channels({ folder, key: wallet.evm.x402, rule, rpcUrl, runtime })
}

/** Whether the URL is this machine's sandbox, under any of its names. */
function isSandbox(sandbox: URL, { protocol, port, href }: URL): boolean {
  return isLoopback(href) && protocol === sandbox.protocol && port === sandbox.port
}
