import { isAddress, sameAddress, toChecksum, type Address } from '../base/address.ts'
import { LogScanner, RpcUnavailableError } from '../chains/evm/log-scanner.ts'
import { Chain } from '../chains/evm/chain.ts'
import { type RpcTransport } from '../base/runtime.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { isRefundDue } from '../ledger/payment-lifecycle.ts'
import { findNetwork, findSvmNetwork, NETWORKS } from '../base/networks.ts'
import { MppSource, onchainNames } from '../mpp/memo-source.ts'
import { showsRefund } from '../refunds/refund-proof.ts'
import { X402Source } from '../x402/exact-evm/authorization-source.ts'
import {
  compareEntry,
  comparePayment,
  compareRefund,
  isQuestionable,
  type Checked,
  type Difference,
  type Statement,
  type Verdict,
} from './compare.ts'
import { type ReconcileSource } from '../payment/reconcile-source.ts'

interface ReconcileSettings {
  /** The ledger, which is only read. */
  readonly ledger: Ledger
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** Who is paid by x402 now; others are known from the ledger. */
  readonly payTo: string | undefined
  /** Who is paid by MPP now. */
  readonly mpp?: MppAccount | undefined
  /** Milliseconds since the epoch. */
  readonly since: number
  readonly caller: RpcTransport
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  /** Called with the progress of the search on a network, in blocks. */
  readonly progress: (network: string, done: bigint, all: bigint) => void
}

/** An account that is paid by MPP. */
interface MppAccount {
  /** Chain id. */
  readonly chain: number
  /** Address of the token. */
  readonly currency: string
  readonly recipient: string
}

/** Compares the ledger with the logs of every chain it has payments on, in both directions. Changes nothing. */
export async function reconcile(settings: ReconcileSettings): Promise<Statement[]> {
  const accounts = await findAccounts({
    ...settings,
    chains: new Set(Object.keys(settings.rpcUrls).map(Number)),
    namesOf: (record) => (record.protocol === 'mpp' ? onchainNames(record) : []),
  })
  const statements: Statement[] = []
  // One after the other: nodes count requests.
  for (const account of accounts) statements.push(...(await statementOf(settings, account)))
  return statements
}

async function statementOf(settings: ReconcileSettings, account: ReceivingAccount): Promise<Statement[]> {
  const { protocol, network, asset, questionable, refunds } = account
  if (findSvmNetwork(network) !== undefined) {
    const reason =
      'payments on Solana are not compared yet: see them with "payments list", and at an explorer'
    return questionable.size === 0 ? [] : [{ kind: 'unchecked', protocol, network, asset, reason }]
  }
  const chainId = Number(/^eip155:(\d+)$/.exec(network)?.[1])
  const url = settings.rpcUrls[chainId]
  // A network of the past, with nothing to confirm on it.
  if (url === undefined && questionable.size + refunds.size === 0) return []
  try {
    if (url === undefined) throw new RpcUnavailableError(`RPC_URL_${chainId} is not set`)
    // A search without an address would find all transfers.
    if (account.payees.size === 0) throw new RpcUnavailableError('no address of a payee is known')
    const { caller, sleep, now } = settings
    const scanner = await LogScanner.open({ chain: new Chain(url, caller), sleep }, chainId)
    if (isBehind(scanner, network, now()))
      throw new RpcUnavailableError(
        `its node is behind: its newest block is of ${new Date(scanner.headTime).toISOString()}`,
      )
    return [await check(settings, account, scanner, openSource(account, scanner))]
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

function openSource(
  { protocol, network: id, asset, keys }: ReceivingAccount,
  scanner: LogScanner,
): ReconcileSource {
  if (protocol === 'mpp' && isAddress(asset)) return new MppSource(scanner, asset, keys)
  const network = findNetwork(id)
  if (protocol !== 'x402' || network === undefined || !sameAddress(network.token.address, asset))
    throw new RpcUnavailableError(`this version does not know payments by ${protocol} in ${asset}`)
  return new X402Source(scanner, network)
}

async function check(
  settings: ReconcileSettings,
  account: ReceivingAccount,
  scanner: LogScanner,
  source: ReconcileSource,
): Promise<Checked> {
  const { ledger, since, now, progress } = settings
  const { protocol, network, asset, questionable } = account
  const payees = [...account.payees]
  const span = { from: await scanner.blockAt(since), to: scanner.head }
  const comparison = new Comparison()
  const seen = new Set<string>()
  for await (const { span: part, incoming } of source.incoming(payees, span)) {
    for (const arrival of incoming) {
      if (arrival.kind === 'transfer') {
        comparison.transfer(arrival.amount)
        continue
      }
      const { key } = arrival.payment
      // A ledger books a payment once: what comes in under its name again is money it does not know. It is read now,
      // and not before, since what the chain shows may have been booked meanwhile.
      const record = key === undefined || seen.has(key) ? undefined : await ledger.get(key)
      if (key !== undefined) seen.add(key)
      comparison.take(comparePayment(arrival.payment, record, now()))
    }
    progress(network, part.to - span.from + 1n, span.to - span.from + 1n)
  }
  for (const key of questionable) {
    const record = seen.has(key) ? undefined : await ledger.get(key)
    if (record !== undefined && isQuestionable(record))
      comparison.take(compareEntry(record, await source.status(record), now()))
  }
  for (const key of account.refunds) {
    const record = await ledger.get(key)
    const refund = record?.refund
    if (record === undefined || refund === undefined || refund.kind === 'due') {
      if (record !== undefined && isRefundDue(record, now())) comparison.refund('due', record)
      continue
    }
    const receipt = await scanner.receipt(refund.hash)
    const isShown = receipt !== null && showsRefund(record, receipt.logs)
    comparison.refund(isShown ? 'sent' : 'due', record)
    const difference = compareRefund(record, isShown)
    if (difference !== undefined) comparison.take(difference)
  }
  return { kind: 'checked', protocol, network, asset, payees, span, ...comparison.sums() }
}

class Comparison {
  #agreed = 0
  #underway = 0
  readonly #transfers = { count: 0, amount: 0n }
  readonly #refunds = { due: { count: 0, amount: 0n }, sent: { count: 0, amount: 0n } }
  readonly #differences: Difference[] = []

  take(verdict: Verdict): void {
    if (verdict.kind === 'agreed') this.#agreed += 1
    else if (verdict.kind === 'underway') this.#underway += 1
    else this.#differences.push(verdict)
  }

  transfer(amount: bigint): void {
    this.#transfers.count += 1
    this.#transfers.amount += amount
  }

  refund(kind: 'due' | 'sent', { receipt }: PaymentRecord): void {
    this.#refunds[kind].count += 1
    this.#refunds[kind].amount += BigInt(receipt?.amount ?? 0)
  }

  sums(): Pick<Checked, 'agreed' | 'underway' | 'transfers' | 'refunds' | 'differences'> {
    return {
      agreed: this.#agreed,
      underway: this.#underway,
      transfers: this.#transfers,
      refunds: this.#refunds,
      differences: this.#differences,
    }
  }
}

/** One token on one network, with the addresses that receive it. */
interface ReceivingAccount {
  readonly protocol: string
  readonly network: string
  readonly asset: string
  readonly payees: ReadonlySet<Address>
  /** Keys of the payments the chain has to confirm, if it does not show them by itself. */
  readonly questionable: ReadonlySet<string>
  /** Keys of the records with an owed or a recent refund. */
  readonly refunds: ReadonlySet<string>
  /** Keys of recent payments by their name on the chain, if that differs. */
  readonly keys: ReadonlyMap<string, string>
}

interface AccountSettings {
  readonly ledger: Ledger
  /** Chain ids with an endpoint. */
  readonly chains: ReadonlySet<number>
  /** Who is paid by x402 now; others are known from the ledger. */
  readonly payTo: string | undefined
  readonly mpp?: MppAccount | undefined
  /** Milliseconds since the epoch. */
  readonly since: number
  /** What the chain calls a payment. */
  readonly namesOf: (record: PaymentRecord) => readonly string[]
}

/** A record is older than its settlement, by less than this. */
const LEAD_MS = 3_600_000

/** Reads the whole ledger once; an unfinished record counts whatever its age. */
async function findAccounts(settings: AccountSettings): Promise<ReceivingAccount[]> {
  const { ledger, chains, payTo, mpp, since, namesOf } = settings
  const accounts = new Map<string, Growing>()
  const accountOf = (protocol: string, network: string, asset: string): Growing => {
    const name = [protocol, network, asset].join(' ').toLowerCase()
    const known = accounts.get(name)
    if (known !== undefined) return known
    const account = {
      protocol,
      network,
      asset,
      payees: new Set<Address>(),
      questionable: new Set<string>(),
      refunds: new Set<string>(),
      keys: new Map<string, string>(),
    }
    accounts.set(name, account)
    return account
  }
  if (payTo !== undefined && isAddress(payTo)) {
    for (const { id, chainId, token } of NETWORKS)
      if (chains.has(chainId)) accountOf('x402', id, token.address).payees.add(toChecksum(payTo))
  }
  if (mpp !== undefined && chains.has(mpp.chain) && isAddress(mpp.recipient))
    accountOf('mpp', `eip155:${mpp.chain}`, mpp.currency).payees.add(toChecksum(mpp.recipient))
  for await (const record of ledger.records()) {
    const { protocol, network, asset, payee, key, createdAt, settledAt } = record
    const account = accountOf(protocol, network, asset)
    if (isAddress(payee)) account.payees.add(toChecksum(payee))
    if (createdAt >= since - LEAD_MS) for (const name of namesOf(record)) account.keys.set(name, key)
    const recent = (settledAt ?? createdAt) >= since
    if (isRefundDue(record, ledger.now()) || (record.refund !== undefined && record.updatedAt >= since))
      account.refunds.add(key)
    // What is charged in the ledger alone has no transaction that the chain could show.
    if (record.receipt?.transaction === '') continue
    if (isQuestionable(record) && (recent || record.receipt === undefined)) account.questionable.add(key)
  }
  return [...accounts.values()]
}

interface Growing extends ReceivingAccount {
  readonly payees: Set<Address>
  readonly questionable: Set<string>
  readonly refunds: Set<string>
  readonly keys: Map<string, string>
}
