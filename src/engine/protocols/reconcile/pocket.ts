import { isAddress, toChecksum, type Address } from '../../address.ts'
import type { Entry } from '../../ledger/entry.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { NETWORKS } from '../../networks.ts'
import { isQuestionable } from './judge.ts'

/** Where money comes in: one token on one network, with the addresses it comes in to. */
export interface Pocket {
  readonly protocol: string
  readonly network: string
  readonly asset: string
  readonly payees: ReadonlySet<Address>
  /** Keys of the entries the chain has to confirm, if it does not show them by itself. */
  readonly questionable: ReadonlySet<string>
  /** Keys of recent payments by what the chain calls them, where it has a name of its own for them. */
  readonly keys: ReadonlyMap<string, string>
}

export interface PocketSettings {
  readonly ledger: Ledger
  /** Chain ids with an endpoint. */
  readonly chains: ReadonlySet<number>
  /** Who is paid by x402 now; others are known from the ledger. */
  readonly payTo: string | undefined
  /** Milliseconds since the epoch. */
  readonly since: number
  /** What the chain calls a payment. */
  readonly namesOf: (entry: Entry) => readonly string[]
}

/** An entry is older than its settlement, by less than this. */
const LEAD_MS = 3_600_000

/** Goes through the whole ledger once; an entry that has not come to an end counts however old it is. */
export async function findPockets(settings: PocketSettings): Promise<Pocket[]> {
  const { ledger, chains, payTo, since, namesOf } = settings
  const pockets = new Map<string, Growing>()
  const pocketOf = (protocol: string, network: string, asset: string): Growing => {
    const name = [protocol, network, asset].join(' ').toLowerCase()
    const known = pockets.get(name)
    if (known !== undefined) return known
    const pocket = {
      protocol,
      network,
      asset,
      payees: new Set<Address>(),
      questionable: new Set<string>(),
      keys: new Map<string, string>(),
    }
    pockets.set(name, pocket)
    return pocket
  }
  if (payTo !== undefined && isAddress(payTo)) {
    for (const { id, chainId, token } of NETWORKS)
      if (chains.has(chainId)) pocketOf('x402', id, token.address).payees.add(toChecksum(payTo))
  }
  for await (const entry of ledger.entries()) {
    const { protocol, network, asset, payee, key, createdAt, settledAt } = entry
    const pocket = pocketOf(protocol, network, asset)
    if (isAddress(payee)) pocket.payees.add(toChecksum(payee))
    if (createdAt >= since - LEAD_MS) for (const name of namesOf(entry)) pocket.keys.set(name, key)
    const recent = (settledAt ?? createdAt) >= since
    if (isQuestionable(entry) && (recent || entry.receipt === undefined)) pocket.questionable.add(key)
  }
  return [...pockets.values()]
}

interface Growing extends Pocket {
  readonly payees: Set<Address>
  readonly questionable: Set<string>
  readonly keys: Map<string, string>
}
