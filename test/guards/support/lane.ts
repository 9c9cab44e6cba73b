import type { Way } from './way.ts'
import type { Chains, Which } from './chains.ts'
import {
  connect,
  HTTP,
  payByMpp,
  payByX402,
  type Answer,
  type Connection,
  type Face,
  type Offers,
  type Payment,
} from './buyer.ts'
import { addressOf, type Faults, type Hex } from '../../support/payment.ts'
import type { TransactionFaults } from '../../support/tempo.ts'
import { beside, readable, type Names, type Tree } from './record.ts'

/** A running server and the ways to its nodes. */
export interface Site {
  readonly url: string
  readonly chains: Chains
  readonly ways: Readonly<Record<Which, Way>>
}

export type ProtocolName = 'x402' | 'mpp'

/** Everything that was said in a case, and what it cost. */
export interface Told {
  readonly steps: Readonly<Record<string, unknown>>
  /** Atomic units. */
  readonly charged: string
}

/** What a case does with its payer. */
export interface Buying {
  /** Of the payer. */
  readonly key: Hex
  /** Arguments nobody has asked with before. */
  readonly args: { readonly n: number }
  /** Asks without a payment and notes nothing: what is noted later is compared with it. */
  readonly offers: (operation: string, args?: object) => Promise<Offers>
  /** Signs what was offered. */
  readonly pay: (offers: Offers, faults?: Wrong) => Promise<Payment>
  /** Asks, and notes the answer under a title. */
  readonly step: (
    title: string,
    operation: string,
    payment?: Payment,
    more?: Partial<More>,
  ) => Promise<Answer>
  /** Reads a path without a payment. */
  readonly look: (title: string, path: string) => Promise<void>
}

/** What is wrong with a payment. */
export interface Wrong {
  readonly x402?: Faults
  readonly mpp?: TransactionFaults
}

interface More {
  readonly args: object
  /** One of its own is closed as soon as the answer is there, so that nobody can tell whether it has arrived. */
  readonly on: 'the connection' | 'a connection of its own'
  /** Asks again until this holds; only the last answer is noted. */
  readonly until: (answer: Answer) => boolean
}

/** The buyers of one protocol at one face of a server, one case after the other. */
export interface Lane {
  readonly protocol: ProtocolName
  readonly face: Face
  readonly site: Site
  readonly book: ReadonlyMap<string, Told>
  readonly wallet: () => Promise<Hex>
  /** A case is told under its title. The payer is that of the lane unless another is named. */
  readonly run: (title: string, work: (buying: Buying) => Promise<void>, payer?: Hex) => Promise<void>
  readonly close: () => void
}

export async function openLane(site: Site, protocol: ProtocolName, face: Face): Promise<Lane> {
  const { chains } = site
  const chain = protocol === 'x402' ? chains.base : chains.tempo
  const own = await chain.wallet()
  const connection = connect(site.url)
  const book = new Map<string, Told>()
  let last = 0
  /** What an unpaid request was told first: others are compared with it. */
  let first: Tree | undefined

  const askOn = async (
    way: More['on'],
    ask: (connection: Connection) => Promise<Answer>,
  ): Promise<Answer> => {
    if (way === 'the connection') return ask(connection)
    const other = connect(site.url)
    try {
      return await ask(other)
    } finally {
      other.close()
    }
  }

  return {
    protocol,
    face,
    site,
    book,
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
        const answer = await connection.ask(face.question(operation, given))
        unpaid.set(operation, readable(answer, names))
        first ??= unpaid.get(operation)
        return answer
      }
      await work({
        key,
        args,
        offers: async (operation, given) => face.offers(await offer(operation, given)),
        pay: (offers, faults) =>
          protocol === 'x402'
            ? payByX402(offers, key, faults?.x402)
            : payByMpp(chains.tempo.rpcUrl, offers, key, faults?.mpp),
        step: async (name, operation, payment, { args: given = args, on = 'the connection', until } = {}) => {
          // Steps that are taken at once stand in the order in which they were begun.
          steps[name] = undefined
          const question = face.question(operation, given, payment)
          let answer = await askOn(on, (each) => each.ask(question))
          while (until?.(answer) === false) answer = await askOn(on, (each) => each.ask(question))
          const read = readable(answer, names)
          const { status, ...told } = beside(read, unpaid.get(operation) ?? first, ['status'])
          first ??= read
          const asked = face.name === 'http' ? `${question.path}` : `${operation} ${JSON.stringify(given)}`
          steps[name] = { asked, status, ...told }
          return answer
        },
        look: async (name, path) => {
          steps[name] = readable(await connection.ask({ path }), names)
        },
      })
      if (process.env['GUARD_TRACE'])
        console.error(new Date().toISOString().slice(14), protocol, face.name, title)
      const after = await chain.charged(payer)
      const count = after.transfers - before.transfers
      const amount = BigInt(after.amount) - BigInt(before.amount)
      book.set(title, {
        steps,
        charged: count === 0 ? 'no' : `${amount} in ${count === 1 ? 'one transfer' : `${count} transfers`}`,
      })
    },
    close: () => connection.close(),
  }
}

/** Buys once, so that what is loaded at the first payment costs no later one its time. */
export async function warmUp({ url, chains }: Site): Promise<void> {
  const connection = connect(url)
  const key = await chains.tempo.wallet()
  for (let status = 0; status !== 200;) {
    const offers = HTTP.offers(await connection.ask(HTTP.question('other', { n: 1000 })))
    const payment = await payByMpp(chains.tempo.rpcUrl, offers, key)
    status = (await connection.ask(HTTP.question('other', { n: 1000 }, payment))).status
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
