import { privateKeyToAccount } from '../vendor/viem-accounts.ts'
import { isLoopback } from '../engine/base/loopback.ts'
import type { BuyerEnv } from '../env/buyer-env.ts'
import { join } from 'node:path'
import type { BuyerRuntime } from './buyer-runtime.ts'
import { Channels, type DepositRule } from './channels/channels.ts'
import type { Offer, ProtocolName, Signing } from './protocols/paying-protocol.ts'
import { readSandbox } from './sandbox-file.ts'

/** Keys that pay, and where they come from. */
export interface Wallet {
  readonly kind: 'sandbox' | 'environment'
  readonly keys: Readonly<Record<ProtocolName, `0x${string}`>>
  /** Endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
}

/** The sandbox's wallet pays at its own sandbox and nowhere else; anywhere else it is PAYER_PRIVATE_KEY. */
export function findWallet(
  url: URL,
  { dataDir, payerKey, rpcUrls }: Pick<BuyerEnv, 'dataDir' | 'payerKey' | 'rpcUrls'>,
): Wallet | undefined {
  const sandbox = readSandbox(dataDir)
  if (sandbox !== undefined && isSandbox(new URL(sandbox.baseUrl), url)) {
    return { kind: 'sandbox', keys: sandbox.keys, rpcUrls: sandbox.rpcUrls }
  }
  if (payerKey === undefined) return undefined
  return { kind: 'environment', keys: { x402: payerKey, mpp: payerKey }, rpcUrls }
}

/** The account of a wallet; undefined when its key is a number that no account has. */
export function addressOf({ keys }: Wallet): `0x${string}` | undefined {
  try {
    return privateKeyToAccount(keys.x402).address
  } catch {
    return undefined
  }
}

/** Signs an offer with the key of its protocol. */
export function signOffer(
  offer: Offer,
  { wallet, channels }: { readonly wallet: Wallet; readonly channels: Channels | undefined },
  { now, random }: BuyerRuntime,
): Promise<Signing> {
  return offer.sign({
    key: wallet.keys[offer.protocol],
    rpcUrl: (chainId) => wallet.rpcUrls[chainId],
    channels,
    now: new Date(now()),
    random,
  })
}

/** Where a wallet keeps what it knows of one shop, as a part of a file name. */
export function nameAt({ host }: URL, address: string): string {
  return `${host}-${address}`.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '_')
}

/** The channels of a wallet at a shop; undefined when its key is a number that no account has. */
export function channelsOf(
  wallet: Wallet,
  { shop, stateDir, rule }: { readonly shop: URL; readonly stateDir: string; readonly rule: DepositRule },
  runtime: BuyerRuntime,
): Channels | undefined {
  const address = addressOf(wallet)
  if (address === undefined) return undefined
  const folder = join(stateDir, 'channels', nameAt(shop, address))
  const rpcUrl = (chainId: number): string | undefined => wallet.rpcUrls[chainId]
  return new Channels({ folder, key: wallet.keys.x402, rule, rpcUrl, runtime })
}

/** Whether the URL is this machine's sandbox, under any of its names. */
function isSandbox(sandbox: URL, { protocol, port, href }: URL): boolean {
  return isLoopback(href) && protocol === sandbox.protocol && port === sandbox.port
}
