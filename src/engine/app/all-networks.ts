import type { Catalog } from '../catalog/catalog.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openMppNetworks, type MppNetworks } from '../mpp/mpp.ts'
import type { Protocol } from '../payment/protocol.ts'
import type { NetworkHealth } from '../payment/network-health.ts'
import type { SettingNames } from '../payment/setting-names.ts'
import { openFacilitators } from '../x402/facilitators/open-facilitators.ts'
import type { OnFacilitatorOutcome } from '../x402/facilitators/observed-facilitator.ts'
import { exactSvmScheme } from '../x402/exact-svm/exact-svm.ts'
import { openSvmNetworks, type SvmNetworks } from '../x402/exact-svm/svm-networks.ts'
import { openEvmNetworks, type EvmNetworks } from '../x402/exact-evm/evm-networks.ts'
import { exactScheme } from '../x402/exact-evm/exact.ts'
import { permitNetworks, uptoScheme } from '../x402/upto-evm/upto.ts'
import { openChannels } from '../x402/batch-settlement-evm/batch-settlement.ts'
import { SCHEME as BATCH_SETTLEMENT } from '../x402/batch-settlement-evm/wire.ts'
import type { OpenScheme, Scheme, X402Terms } from '../x402/scheme.ts'
import { createX402 } from '../x402/x402.ts'
import type { ReceiptSigner } from '../receipts/receipt-signer.ts'
import type { Runtime } from '../base/runtime.ts'
import type { PaymentConfig } from './options.ts'

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
  readonly x402: EvmNetworks
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
  const x402 = openEvmNetworks({ ...runtime, ...config, ...opened, names, ledger, owner, report: log })
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
