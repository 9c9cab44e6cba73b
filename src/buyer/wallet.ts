import { privateKeyToAccount } from '../vendor/viem-accounts.ts'
import { isLoopback } from '../engine/base/loopback.ts'
import type { BuyerEnv } from '../env/buyer-env.ts'
import type { BuyerRuntime } from './buyer-runtime.ts'
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
export function signOffer(offer: Offer, wallet: Wallet, { now, random }: BuyerRuntime): Promise<Signing> {
  return offer.sign({
    key: wallet.keys[offer.protocol],
    rpcUrl: (chainId) => wallet.rpcUrls[chainId],
    now: new Date(now()),
    random,
  })
}

/** Whether the URL is this machine's sandbox, under any of its names. */
function isSandbox(sandbox: URL, { protocol, port, href }: URL): boolean {
  return isLoopback(href) && protocol === sandbox.protocol && port === sandbox.port
}
