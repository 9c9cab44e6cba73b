import { createMemoryCache, type CacheStore } from '../cache/cache.ts'
import { openRedisCache } from '../cache/redis.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openLmdbLedger } from '../ledger/lmdb/lmdb-ledger.ts'
import { openRedisLedger } from '../ledger/redis/redis-ledger.ts'
import { openMppNetworks, type MppNetworks } from '../mpp/mpp.ts'
import type { Protocol } from '../payment/protocol.ts'
import type { NetworkHealth } from '../payment/network-health.ts'
import type { SettingNames } from '../payment/setting-names.ts'
import type { FacilitatorAccess } from '../x402/facilitators/facilitator-client.ts'
import { openFacilitators } from '../x402/facilitators/open-facilitators.ts'
import type { OnFacilitatorOutcome } from '../x402/facilitators/observed-facilitator.ts'
import type { SvmAccount } from '../base/svm-signature.ts'
import { exactSvmScheme } from '../x402/exact-svm/exact-svm.ts'
import { openSvmNetworks, type SvmNetworks } from '../x402/exact-svm/svm-networks.ts'
import { openX402Networks, type X402Networks } from '../x402/exact-evm/exact-networks.ts'
import { exactScheme } from '../x402/exact-evm/exact.ts'
import { permitNetworks, uptoScheme } from '../x402/upto-evm/upto.ts'
import { openChannels } from '../x402/batch-settlement-evm/batch-settlement.ts'
import { SCHEME as BATCH_SETTLEMENT } from '../x402/batch-settlement-evm/wire.ts'
import type { OpenScheme, Scheme, X402Terms } from '../x402/scheme.ts'
import { createX402 } from '../x402/x402.ts'
import type { ReceiptSigner } from '../receipts/receipt-signer.ts'
import { readRedisAddress } from '../base/redis-address.ts'
import { systemRuntime, type Runtime } from '../base/runtime.ts'

export interface LedgerPlace {
  /** Folder of an LMDB store, when no Redis is set. */
  readonly directory: string
  readonly redisUrl?: string | undefined
  /** The operator accepts Redis settings that cannot be read. */
  readonly ledgerUnsafe?: boolean
  /** Replicas of Redis that must confirm a change before it counts as stored. */
  readonly ledgerReplicas?: number
}

interface OpenedLedger {
  readonly ledger: Ledger
  /** For people: the kind of store, and the address of a Redis. */
  readonly title: string
}

/** Throws `LedgerError`. */
export async function openLedger({
  directory,
  redisUrl,
  ledgerUnsafe = false,
  ledgerReplicas = 0,
}: LedgerPlace): Promise<OpenedLedger> {
  if (redisUrl === undefined) {
    const ledger = await openLmdbLedger(directory)
    return { ledger, title: ledger.name }
  }
  const settings = ledgerUnsafe ? 'unchecked' : 'checked'
  const ledger = await openRedisLedger({ url: redisUrl, settings, replicas: ledgerReplicas })
  return { ledger, title: `${ledger.name} at ${new URL(redisUrl).host}` }
}

interface OpenedCache {
  readonly store: CacheStore
  /** For people: the kind of store, and the address of a Redis. */
  readonly title: string
}

/**
 * Opens a cache in this process or in a Redis; `setting` names the variable of its URL. Throws for an invalid URL
 * only: without a reachable Redis, answers are fetched instead.
 */
export async function openCache(
  url: string | undefined,
  setting: string,
  report: (line: string) => void,
): Promise<OpenedCache | { readonly fault: string }> {
  if (url === undefined) return { store: createMemoryCache(), title: 'in-process' }
  const address = readRedisAddress(url, setting)
  if ('fault' in address) return address
  const store = await openRedisCache({ address, random: systemRuntime.random, report })
  return { store, title: `${store.name} at ${address.place}` }
}

/** Payees, and what settlement requires. */
export interface PaymentConfig {
  /** On EVM networks; empty when not set. */
  readonly payTo: string
  /** On Solana; empty when not set. */
  readonly payToSolana?: string
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** JSON-RPC endpoints of Solana by CAIP-2 id. */
  readonly svmRpcUrls?: Readonly<Record<string, string>>
  /** Pay the fees of settlements on Solana: offers name the first one. */
  readonly feePayers?: readonly SvmAccount[]
  readonly signerKeys: readonly `0x${string}`[]
  /** Sign claims of channels: the present one first. */
  readonly channelKeys?: readonly `0x${string}`[]
  /** Settle on networks without a signer; in order of preference. */
  readonly facilitators: readonly FacilitatorAccess[]
  readonly mppRecipient: string | undefined
  /** The first one signs challenges, all are accepted. */
  readonly mppSecretKeys: readonly string[]
  /** Seeds of Ed25519: the first one signs receipts, all are published. */
  readonly receiptKeys?: readonly `0x${string}`[]
  /** Schemes of x402 besides those that are built in. */
  readonly schemes?: readonly OpenScheme[]
}

export interface NetworkDeps {
  readonly config: PaymentConfig
  readonly names: SettingNames
  readonly baseUrl: string
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  readonly runtime: Runtime
  /** Receives a line for the operator. */
  readonly log: (line: string) => void
  /** Receives errors that did not prevent an answer. */
  readonly report: (fault: unknown) => void
  /** Called for each answer of a facilitator about a payment. */
  readonly noteFacilitator?: OnFacilitatorOutcome | undefined
}

/** The networks for payments, kept across revisions: signers keep their queues, and MPP its thread. */
export interface AllNetworks {
  readonly x402: X402Networks
  readonly svm: SvmNetworks
  readonly mpp: MppNetworks
  readonly channels: ReturnType<typeof openChannels>
  /** The schemes of x402 that a program adds. */
  readonly schemes: readonly ReturnType<OpenScheme>[]
}

export function openNetworks(deps: NetworkDeps): AllNetworks {
  const { config, names, baseUrl, runtime, ledger, owner, log, report, noteFacilitator } = deps
  const { rpcUrls, mppRecipient: recipient, mppSecretKeys: secretKeys, schemes = [] } = config
  const context = { ...runtime, ledger, owner, now: ledger.now, report: log }
  const { facilitators } = config
  const opened = openFacilitators({ ...context, facilitators, noteFacilitator })
  const x402 = openX402Networks({ ...runtime, ...config, ...opened, names, ledger, owner, report: log })
  const { payToSolana = '', svmRpcUrls = {}, feePayers = [] } = config
  return {
    x402,
    svm: openSvmNetworks({
      ...context,
      ...config,
      ...opened,
      payToSolana,
      svmRpcUrls,
      feePayers,
      names,
    }),
    channels: openChannels({
      ...context,
      authorizerKeys: config.channelKeys ?? [],
      settlementOf: (network) => x402.ownSettlement(network),
    }),
    schemes: schemes.map((open) => open(context)),
    mpp: openMppNetworks({ ...runtime, names, baseUrl, recipient, secretKeys, rpcUrls, report }),
  }
}

/** The state of every network that accounts of this process settle on. */
export async function networkHealth({
  x402,
  svm,
}: Pick<AllNetworks, 'x402' | 'svm'>): Promise<readonly NetworkHealth[]> {
  return (await Promise.all([x402.health(), svm.health()])).flat()
}

/** The protocols with which a catalog can be paid on these networks. */
export function protocolsOf(
  catalog: Catalog,
  networks: AllNetworks,
  baseUrl: string,
  { random, receipts }: Pick<Runtime, 'random'> & { readonly receipts?: ReceiptSigner | undefined },
): Protocol[] {
  const { service, payments } = catalog
  const { x402, mpp } = payments
  const tempo = mpp === undefined ? undefined : networks.mpp.of(mpp)
  const schemes = x402 === undefined ? [] : schemesOf(x402, networks)
  const v1 = x402?.v1 ?? false
  const made =
    schemes.length === 0
      ? undefined
      : createX402({ service, baseUrl, schemes, networks: x402?.networks, v1, receipts, random })
  return [made, tempo].filter((protocol) => protocol !== undefined)
}

/** The schemes of x402 with which a catalog can be paid, in order of preference. */
export function schemesOf(x402: X402Terms, networks: AllNetworks): readonly Scheme[] {
  const closed = networks.x402.closed(x402).length + networks.svm.closed(x402).length
  const isClosed = closed === x402.networks.length
  const exact = exactScheme({
    // Empty when the catalog lists other schemes only, and while the networks are withdrawn: earlier payments are still
    // answered.
    offered: x402.schemes.includes('exact') ? networks.x402.exactOf(x402) : [],
    reachable: networks.x402.reachable(x402),
  })
  const exactSvm = exactSvmScheme({
    offered: x402.schemes.includes('exact') ? networks.svm.of(x402) : [],
    reachable: networks.svm.reachable(x402),
  })
  const upto = uptoScheme({
    offered: permitNetworks(networks.x402.of(x402)),
    reachable: permitNetworks(networks.x402.reachable(x402)),
    prices: x402.schemes.includes('upto') ? ['fixed', 'metered'] : ['metered'],
  })
  const channels = networks.channels(x402, {
    offered: x402.schemes.includes(BATCH_SETTLEMENT) ? networks.x402.of(x402) : [],
    reachable: networks.x402.reachable(x402),
  })
  const order = [...x402.schemes, exact.name, upto.name, channels.name]
  const built = [exact, exactSvm, upto, channels].toSorted(
    (a, b) => order.indexOf(a.name) - order.indexOf(b.name),
  )
  return [...(isClosed ? [] : built), ...networks.schemes.map((schemeOf) => schemeOf(x402))]
}
