import { isAddress, sameAddress } from '../../address.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { findNetwork } from '../../networks.ts'
import { LogScanner, RpcUnavailableError } from '../../chains/evm/logs.ts'
import { Chain, createRpc, type Caller } from '../../chains/evm/rpc.ts'
import { isQuestionable, judgeEntry, judgeSighting, type Verdict } from './judge.ts'
import { findPockets, type Pocket } from './pocket.ts'
import type { Checked, Difference, Statement } from './statement.ts'
import type { Trail } from './trail.ts'

export interface ReconcileSettings {
  /** Is only read. */
  readonly ledger: Ledger
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** Who is paid by x402 now; others are known from the ledger. */
  readonly payTo: string | undefined
  /** Milliseconds since the epoch. */
  readonly since: number
  readonly caller: Caller
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  /** Told how far the search on a network is. */
  readonly progress: (network: string, done: bigint, all: bigint) => void
}

/** Lays the ledger beside the logs of every chain it has payments on, in both directions. Changes nothing. */
export async function reconcile(settings: ReconcileSettings): Promise<Statement[]> {
  const { chainNames } = await import('../mpp/trail.ts')
  const pockets = await findPockets({
    ...settings,
    chains: new Set(Object.keys(settings.rpcUrls).map(Number)),
    namesOf: (entry) => (entry.protocol === 'mpp' ? chainNames(entry) : []),
  })
  const statements: Statement[] = []
  // One after the other: nodes count requests.
  for (const pocket of pockets) statements.push(...(await stateOf(settings, pocket)))
  return statements
}

async function stateOf(settings: ReconcileSettings, pocket: Pocket): Promise<Statement[]> {
  const { protocol, network, asset, questionable } = pocket
  const chainId = Number(/^eip155:(\d+)$/.exec(network)?.[1])
  const url = settings.rpcUrls[chainId]
  // A network of the past, with nothing to confirm on it.
  if (url === undefined && questionable.size === 0) return []
  try {
    if (url === undefined) throw new RpcUnavailableError(`RPC_URL_${chainId} is not set`)
    // A search for nobody would find everybody.
    if (pocket.payees.size === 0) throw new RpcUnavailableError('no address of a payee is known')
    const { caller, sleep, now } = settings
    const archive = await LogScanner.open({ chain: new Chain(createRpc(url, caller)), sleep }, chainId)
    if (isBehind(archive, network, now()))
      throw new RpcUnavailableError(
        `its node is behind: its newest block is of ${new Date(archive.headTime).toISOString()}`,
      )
    return [await check(settings, pocket, archive, await openTrail(pocket, archive))]
  } catch (fault) {
    if (!(fault instanceof RpcUnavailableError)) throw fault
    return [{ kind: 'unchecked', protocol, network, asset, reason: fault.message }]
  }
}

/** Every network has a block each few seconds; a test network may sleep. */
const BEHIND_MS = 600_000

function isBehind({ headTime }: LogScanner, network: string, now: number): boolean {
  return findNetwork(network)?.testnet !== true && headTime < now - BEHIND_MS
}

/** Opened when it is needed: viem is slow to load. */
async function openTrail(
  { protocol, network: id, asset, keys }: Pocket,
  archive: LogScanner,
): Promise<Trail> {
  if (protocol === 'mpp' && isAddress(asset)) {
    const { MppTrail } = await import('../mpp/trail.ts')
    return new MppTrail(archive, asset, keys)
  }
  const network = findNetwork(id)
  if (protocol !== 'x402' || network === undefined || !sameAddress(network.token.address, asset))
    throw new RpcUnavailableError(`this version does not know payments by ${protocol} in ${asset}`)
  const { X402Trail } = await import('../x402/trail.ts')
  return new X402Trail(archive, network)
}

async function check(
  settings: ReconcileSettings,
  pocket: Pocket,
  archive: LogScanner,
  trail: Trail,
): Promise<Checked> {
  const { ledger, since, now, progress } = settings
  const { protocol, network, asset, questionable } = pocket
  const payees = [...pocket.payees]
  const span = { from: await archive.blockAt(since), to: archive.head }
  const tally = new Tally()
  const seen = new Set<string>()
  for await (const { span: part, incoming } of trail.incoming(payees, span)) {
    for (const arrival of incoming) {
      if (arrival.kind === 'transfer') {
        tally.transfer(arrival.amount)
        continue
      }
      const { key } = arrival.sighting
      // A ledger books a payment once: what comes in under its name again is money it does not know. It is read now, and
      // not before, for what the chain shows may have been booked since.
      const entry = key === undefined || seen.has(key) ? undefined : await ledger.get(key)
      if (key !== undefined) seen.add(key)
      tally.take(judgeSighting(arrival.sighting, entry, now()))
    }
    progress(network, part.to - span.from + 1n, span.to - span.from + 1n)
  }
  for (const key of questionable) {
    const entry = seen.has(key) ? undefined : await ledger.get(key)
    if (entry !== undefined && isQuestionable(entry))
      tally.take(judgeEntry(entry, await trail.fate(entry), now()))
  }
  return { kind: 'checked', protocol, network, asset, payees, span, ...tally.sums() }
}

class Tally {
  #agreed = 0
  #underway = 0
  #count = 0
  #amount = 0n
  readonly #differences: Difference[] = []

  take(verdict: Verdict): void {
    if (verdict.kind === 'agreed') this.#agreed += 1
    else if (verdict.kind === 'underway') this.#underway += 1
    else this.#differences.push(verdict)
  }

  transfer(amount: bigint): void {
    this.#count += 1
    this.#amount += amount
  }

  sums(): Pick<Checked, 'agreed' | 'underway' | 'transfers' | 'differences'> {
    const transfers = { count: this.#count, amount: this.#amount }
    return { agreed: this.#agreed, underway: this.#underway, transfers, differences: this.#differences }
  }
}
