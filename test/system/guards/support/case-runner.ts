import type { NodeProxy } from './node-proxy.ts'
import type { Chains, ChainName } from './chains.ts'
import {
  connect,
  HTTP,
  payByMpp,
  payByX402,
  type Answer,
  type Connection,
  type Transport,
  type Offers,
  type Payment,
} from './buyer.ts'
import { addressOf, type Faults, type Hex } from '../../../support/payment.ts'
import type { TransactionFaults } from '../../../support/tempo.ts'
import { omitUnpaid, snapshotOf, type Names, type Tree } from './snapshot.ts'

/** A running server and the proxies in front of its nodes. */
export interface Site {
  readonly url: string
  readonly chains: Chains
  readonly nodes: Readonly<Record<ChainName, NodeProxy>>
}

export type ProtocolName = 'x402' | 'mpp'

/** The answers of a case, and what was charged for them. */
export interface CaseResult {
  readonly steps: Readonly<Record<string, unknown>>
  /** Atomic units. */
  readonly charged: string
}

/** What a case does with its payer. */
export interface CaseContext {
  /** Private key of the payer. */
  readonly key: Hex
  /** Arguments that no other case uses. */
  readonly args: { readonly n: number }
  /** Sends an unpaid request and records nothing: later answers are compared with this one. */
  readonly offers: (operation: string, args?: object) => Promise<Offers>
  /** Signs what was offered. */
  readonly pay: (offers: Offers, faults?: PaymentFaults) => Promise<Payment>
  /** Sends a request and records the answer under a title. */
  readonly step: (
    title: string,
    operation: string,
    payment?: Payment,
    options?: Partial<StepOptions>,
  ) => Promise<Answer>
  /** Requests a path without a payment and records the answer. */
  readonly get: (title: string, path: string) => Promise<void>
}

/** What is wrong with a payment. */
export interface PaymentFaults {
  readonly x402?: Faults
  readonly mpp?: TransactionFaults
}

interface StepOptions {
  readonly args: object
  /** A connection of its own is closed as soon as the answer is there, so the server does not see it arrive. */
  readonly on: 'the connection' | 'a connection of its own'
  /** Repeats the request until this holds; only the last answer is recorded. */
  readonly until: (answer: Answer) => boolean
}

/** Runs cases one after the other, with one protocol over one transport, and records the answers. */
export interface CaseRunner {
  readonly protocol: ProtocolName
  readonly transport: Transport
  readonly site: Site
  readonly results: ReadonlyMap<string, CaseResult>
  readonly wallet: () => Promise<Hex>
  /** Runs a case and records it under its title. The payer is that of the runner unless another is named. */
  readonly run: (title: string, work: (context: CaseContext) => Promise<void>, payer?: Hex) => Promise<void>
  readonly close: () => void
}

export async function openCaseRunner(
  site: Site,
  protocol: ProtocolName,
  transport: Transport,
): Promise<CaseRunner> {
  const { chains } = site
  const chain = protocol === 'x402' ? chains.base : chains.tempo
  const own = await chain.wallet()
  const connection = connect(site.url)
  const results = new Map<string, CaseResult>()
  let last = 0
  /** The first answer to an unpaid request: others are compared with it. */
  let first: Tree | undefined

  const askOn = async (
    on: StepOptions['on'],
    work: (connection: Connection) => Promise<Answer>,
  ): Promise<Answer> => {
    if (on === 'the connection') return work(connection)
    const other = connect(site.url)
    try {
      return await work(other)
    } finally {
      other.close()
    }
  }

  return {
    protocol,
    transport,
    site,
    results,
    wallet: () => chain.wallet(),
    run: async (title, work, key = own) => {
      const payer = addressOf(key)
      const names: Names = namesOf(chains, payer)
      const steps: Record<string, unknown> = {}
      const unpaid = new Map<string, Tree>()
      last += 1
      const args = { n: last }
      const before = await chain.charged(payer)
      const offer = async (operation: string, given: object = args): Promise<Answer> => {
        const answer = await connection.send(transport.request(operation, given))
        unpaid.set(operation, snapshotOf(answer, names))
        first ??= unpaid.get(operation)
        return answer
      }
      await work({
        key,
        args,
        offers: async (operation, given) => transport.offers(await offer(operation, given)),
        pay: (offers, faults) =>
          protocol === 'x402'
            ? payByX402(offers, key, faults?.x402)
            : payByMpp(chains.tempo.rpcUrl, offers, key, faults?.mpp),
        step: async (name, operation, payment, { args: given = args, on = 'the connection', until } = {}) => {
          // Concurrent steps are recorded in the order in which they start.
          steps[name] = undefined
          const request = transport.request(operation, given, payment)
          let answer = await askOn(on, (each) => each.send(request))
          while (until?.(answer) === false) answer = await askOn(on, (each) => each.send(request))
          const read = snapshotOf(answer, names)
          const { status, ...rest } = omitUnpaid(read, unpaid.get(operation) ?? first, ['status'])
          first ??= read
          const asked =
            transport.name === 'http' ? `${request.path}` : `${operation} ${JSON.stringify(given)}`
          steps[name] = { asked, status, ...rest }
          return answer
        },
        get: async (name, path) => {
          steps[name] = snapshotOf(await connection.send({ path }), names)
        },
      })
      if (process.env['GUARD_TRACE'])
        console.error(new Date().toISOString().slice(14), protocol, transport.name, title)
      const after = await chain.charged(payer)
      const count = after.transfers - before.transfers
      const amount = BigInt(after.amount) - BigInt(before.amount)
      results.set(title, {
        steps,
        charged: count === 0 ? 'no' : `${amount} in ${count === 1 ? 'one transfer' : `${count} transfers`}`,
      })
    },
    close: () => connection.close(),
  }
}

/** Buys once: the first payment loads modules, and later ones are not slowed down by that. */
export async function warmUp({ url, chains }: Site): Promise<void> {
  const connection = connect(url)
  const key = await chains.tempo.wallet()
  for (let status = 0; status !== 200;) {
    const offers = HTTP.offers(await connection.send(HTTP.request('other', { n: 1000 })))
    const payment = await payByMpp(chains.tempo.rpcUrl, offers, key)
    status = (await connection.send(HTTP.request('other', { n: 1000 }, payment))).status
  }
  connection.close()
}

export function namesOf(chains: Chains, payer: string): Names {
  return new Map([
    [chains.base.payee.toLowerCase(), '<payTo>'],
    [chains.tempo.payee.toLowerCase(), '<recipient>'],
    [payer.toLowerCase(), '<payer>'],
  ])
}
