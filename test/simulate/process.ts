import { LedgerError, LedgerLostError } from '../../src/engine/base/errors.ts'
import { BASE, BASE_URL, type Market, type Way } from './market.ts'
import type { Runtime } from '../../src/engine/base/runtime.ts'
import type { Route } from '../../src/engine/catalog/catalog.ts'
import { BuyerConnections } from '../../src/engine/http/buyer-connections.ts'
import { DELIVERED_MS } from '../../src/engine/http/deliveries.ts'
import type { PaymentRecord } from '../../src/engine/ledger/payment-record.ts'
import type { Protocol } from '../../src/engine/payment/protocol.ts'
import { markReceived, markUndelivered } from '../../src/engine/purchase/delivery-marks.ts'
import { followBlocks } from '../../src/engine/purchase/follow-blocks.ts'
import { PaymentLocks } from '../../src/engine/purchase/payment-locks.ts'
import { purchase, replyTo, type PurchaseReply } from '../../src/engine/purchase/purchase.ts'
import { cleanUp } from '../../src/engine/ledger/clean-up.ts'
import { recover, takeHandedOver } from '../../src/engine/purchase/recovery.ts'
import { hasArrived } from '../../src/engine/purchase/redelivery.ts'
import type { Fulfillment, PurchaseDeps } from '../../src/engine/purchase/request.ts'
import type { PurchaseResult } from '../../src/engine/purchase/result.ts'
import { openChannels } from '../../src/engine/x402/batch-settlement-evm/batch-settlement.ts'
import { permitNetworks, uptoScheme } from '../../src/engine/x402/upto-evm/upto.ts'
import { quoteCall } from '../../src/engine/purchase/purchase.ts'
import type { ActionResult } from '../../src/engine/payment/payment.ts'
import { exactScheme } from '../../src/engine/x402/exact-evm/exact.ts'
import { openFacilitators } from '../../src/engine/x402/facilitators/open-facilitators.ts'
import { openEvmNetworks } from '../../src/engine/x402/exact-evm/evm-networks.ts'
import { exactSvmScheme } from '../../src/engine/x402/exact-svm/exact-svm.ts'
import { openSvmNetworks } from '../../src/engine/x402/exact-svm/svm-networks.ts'
import type { Scheme } from '../../src/engine/x402/scheme.ts'
import { createX402 } from '../../src/engine/x402/x402.ts'
import { VARIABLES } from '../../src/engine/app/option-names.ts'
import { EVM_NODE, openPorts, SVM_NODE, type Ports, type World } from './ports.ts'
import { SOLANA } from './svm-chain.ts'
import { randomOf } from './random.ts'

/** The ways to pay, in the order in which they are offered. */
const OFFERED = ['exact', 'exact-svm', 'upto', 'batch-settlement'] as const satisfies readonly Way[]

/** Interval of recovery, as the service has it. */
const RECOVERY_MS = 2_000
const URGENT_MS = 1_000
const UPKEEP_MS = 5_000

/** A request with a payment, as a process takes it. */
export interface Call {
  readonly header: string
  readonly route: Route
  /** What is asked for: the digest of the arguments. */
  readonly args: string
  readonly fulfillment: (life: Life) => Fulfillment
  readonly gone: AbortSignal
}

/** One life of a process: everything it knows ends with it. */
export interface Life {
  readonly ports: Ports
  readonly protocol: Protocol
  readonly routes: Market['routes']
  /** Rejects never; stays pending for ever when the process dies. `key`: of the payment, once it is known what it buys. */
  serve(call: Call): Promise<{ readonly reply: PurchaseReply; readonly key: string | undefined }>
  /** Carries out a payload that buys nothing; stays pending for ever when the process dies. */
  act(header: string): Promise<ActionResult | { readonly kind: 'fault' }>
  /** Claims what all channels owe. */
  claim(): Promise<void>
  /** The last byte of an answer was sent. */
  sent(record: PaymentRecord, gone: AbortSignal): void
}

/** Starts a process with an empty memory. Awaits the modules that its first payment would load, in no time at all. */
export async function startLife(world: World, index: number, number: number): Promise<Life> {
  const ports = openPorts(world, index)
  const { market, signerKeys, channelKeys } = world.terms()
  const { catalog, routes } = market
  const { ledger } = ports
  const name = `process ${index + 1}`
  const random = randomOf(world.seed, `${name} ${number}`)
  const owner = `${index + 1}-${Buffer.from(random.bytes(6)).toString('hex')}`
  const report = (fault: unknown): void => {
    if (!ports.isAlive()) return
    world.trace.note(name, `reports ${fault instanceof Error ? fault.message : String(fault)}`)
    if (isBug(fault))
      world.violate(`${name} reports a bug: ${fault instanceof Error ? (fault.stack ?? '') : String(fault)}`)
  }
  const runtime: Runtime = {
    now: ports.now,
    random: random.bytes,
    sleep: ports.sleep,
    every: ports.every,
    deadline: ports.deadline,
    caller: ports.caller,
    fetcher: () => Promise.reject(new Error('nothing is fetched')),
    http: ports.http,
    openRequest: () => {
      throw new Error('nothing is passed on')
    },
  }
  const { x402 } = catalog.payments
  if (x402 === undefined) throw new Error('the catalog sells by x402')
  const facilitators = [...world.facilitators.keys()].map((url) => ({ url, token: undefined }))
  const networks = openEvmNetworks({
    ...runtime,
    payTo: world.payTo,
    rpcUrls: { [BASE.chainId]: EVM_NODE },
    signerKeys: facilitators.length === 0 ? signerKeys : [],
    ...openFacilitators({ ...runtime, facilitators, ledger, report }),
    names: VARIABLES,
    ledger,
    owner,
    report,
  })
  const reachable = networks.reachable(x402)
  const offered = networks.of(x402)
  const channels = openChannels({
    ...runtime,
    ledger,
    owner,
    now: ledger.now,
    report,
    authorizerKeys: channelKeys,
    settlementOf: (network) => networks.ownSettlement(network),
  })(x402, { offered, reachable })
  const upto = uptoScheme({
    offered: permitNetworks(offered),
    reachable: permitNetworks(reachable),
    prices: ['fixed', 'metered'],
  })
  const svm = openSvmNetworks({
    ...runtime,
    payToSolana: world.svmPayTo,
    svmRpcUrls: { [SOLANA.id]: SVM_NODE },
    feePayers: [world.svmFeePayer],
    ...openFacilitators({ ...runtime, facilitators: [], ledger, report }),
    names: VARIABLES,
    ledger,
    now: ledger.now,
    report,
  })
  const ways: Readonly<Record<Way, Scheme>> = {
    exact: exactScheme({ offered, reachable }),
    'exact-svm': exactSvmScheme({ offered: svm.of(x402), reachable: svm.reachable(x402) }),
    upto,
    'batch-settlement': channels,
  }
  const { service } = catalog
  const protocol = createX402({
    service,
    baseUrl: BASE_URL,
    schemes: OFFERED.filter((way) => world.ways.includes(way)).map((way) => ways[way]),
    v1: false,
    random: random.bytes,
  })
  await Promise.all(reachable.map((network) => network.settler()))
  const leaseContext = { ledger, owner, now: ledger.now, every: ports.every }
  const buyers = new BuyerConnections()
  const deps: PurchaseDeps = {
    ...leaseContext,
    sleep: ports.sleep,
    redeliver: catalog.payments.redeliver,
    denied: new Set(),
    payerLimit: catalog.payments.payerLimit,
    streamCredit: catalog.payments.streamCredit,
    recentOffers: async () => [],
    buyers,
    locks: new PaymentLocks({ ...leaseContext, sleep: ports.sleep }),
    stopping: new AbortController().signal,
    report,
  }
  const recovery = { ...leaseContext, protocols: () => [protocol], storeOf: () => undefined, report }
  const repeat = (work: () => Promise<unknown>, pause: number): void => {
    void ports
      .sleep(pause)
      .then(work)
      .catch(report)
      .then(() => repeat(work, pause))
  }
  const begin = async (found: Promise<readonly Promise<void>[]>): Promise<void> => {
    for (const work of await found) work.catch(report)
  }
  const follow = (which: 'due' | 'all'): Promise<void> => begin(followBlocks(recovery, which))
  repeat(() => begin(recover(recovery)), RECOVERY_MS)
  repeat(() => cleanUp(recovery), UPKEEP_MS)
  repeat(() => follow('due'), URGENT_MS)
  void follow('all').catch(report)
  if (world.ways.some((way) => way !== 'exact')) repeat(async () => protocol.background?.(), UPKEEP_MS)
  if (world.ways.includes('upto')) repeat(() => begin(takeHandedOver(recovery)), URGENT_MS)
  const life: Life = {
    ports,
    protocol,
    routes,
    serve: async ({ header, route, args, fulfillment, gone }) => {
      const found = protocol.detect({ 'payment-signature': header })
      if (found.kind !== 'payment') throw new Error('the header holds a payment')
      const { operation } = route
      const scope = `${operation.id}:${args}`
      let key: string | undefined
      const buy = async (): Promise<PurchaseResult> => {
        const named = await found.payment.keyFor?.(`${operation.id} ${args}`, (record) =>
          hasArrived(buyers, record),
        )
        const payment = named === undefined ? found.payment : { ...found.payment, key: named }
        ;({ key } = payment)
        return purchase(deps, {
          payment,
          offer: {
            endpoint: route,
            resource: BASE_URL + route.path,
            scope,
            price: quoteCall(operation, {}).amount,
          },
          revision: 'r1',
          args: {},
          digest: args,
          identifier: payment.identifier,
          fulfillment: fulfillment(life),
          gone,
        })
      }
      const result = await buy().catch((fault: unknown): PurchaseResult => {
        if (!(fault instanceof LedgerError)) throw fault
        const code = fault instanceof LedgerLostError ? 'ledger_lost' : 'ledger_unavailable'
        return { kind: 'unavailable', code }
      })
      return { reply: replyTo({ report }, result), key }
    },
    act: async (header) => {
      const found = protocol.detect({ 'payment-signature': header })
      if (found.kind !== 'action') throw new Error('the header holds no payment')
      return found.action.run().catch((fault: unknown) => {
        report(fault)
        return { kind: 'fault' }
      })
    },
    claim: async () => {
      await channels.claim('all').catch(report)
    },
    sent: (record, gone) => {
      const leave = (): void => {
        if (gone.aborted) {
          buyers.forget(record.id)
          void markUndelivered(leaseContext, record).catch(report)
        } else buyers.arrived(record.id, markReceived(leaseContext, record).catch(report))
      }
      if (gone.aborted) leave()
      else void ports.sleep(DELIVERED_MS).then(leave)
    },
  }
  return life
}

/** What nobody has foreseen: everything but a store that fails, and reports of what has gone wrong outside. */
function isBug(fault: unknown): boolean {
  if (typeof fault === 'string' || fault instanceof LedgerError) return false
  return fault instanceof Error && !FORESEEN.has(fault.name) && !('code' in fault)
}

const FORESEEN: ReadonlySet<string> = new Set(['LeaseLostError', 'CommitAbandonedError'])
