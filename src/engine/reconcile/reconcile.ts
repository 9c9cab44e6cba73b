import { RpcUnavailableError } from '../chains/evm/log-scanner.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { isRefundDue } from '../ledger/payment-lifecycle.ts'
import { findSvmNetwork } from '../base/networks.ts'
import { onchainNames } from '../mpp/memo-source.ts'
import type { ChainHistory, HistorySettings } from './chain-history.ts'
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
import { chainIdOf, openEvmHistory } from './evm-history.ts'
import { findAccounts, type MppAccount, type ReceivingAccount } from './receiving-accounts.ts'
import { openSvmHistory } from './svm-history.ts'

interface ReconcileSettings extends HistorySettings {
  /** The ledger, which is only read. */
  readonly ledger: Ledger
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** Those of Solana networks by CAIP-2 id. */
  readonly svmRpcUrls: Readonly<Record<string, string>>
  /** Who is paid by x402 now; others are known from the ledger. */
  readonly payTo: string | undefined
  readonly payToSolana: string | undefined
  /** Who is paid by MPP now. */
  readonly mpp?: MppAccount | undefined
  /** Called with the progress of the search on a network. */
  readonly progress: (network: string, read: string) => void
}

/** Compares the ledger with every chain it has payments on, in both directions. Changes nothing. */
export async function reconcile(settings: ReconcileSettings): Promise<Statement[]> {
  const accounts = await findAccounts({
    ...settings,
    chains: new Set(Object.keys(settings.rpcUrls).map(Number)),
    svmNetworks: new Set(Object.keys(settings.svmRpcUrls)),
    namesOf: (record) => (record.protocol === 'mpp' ? onchainNames(record) : []),
  })
  const statements: Statement[] = []
  // One after the other: nodes count requests.
  for (const account of accounts) statements.push(...(await statementOf(settings, account)))
  return statements
}

async function statementOf(settings: ReconcileSettings, account: ReceivingAccount): Promise<Statement[]> {
  const { protocol, network: id, asset, questionable, refunds } = account
  const network = findSvmNetwork(id)
  const { rpcUrls, svmRpcUrls } = settings
  const url = network === undefined ? rpcUrls[chainIdOf(id)] : svmRpcUrls[id]
  // A network of the past, with nothing to confirm on it.
  if (url === undefined && questionable.size + refunds.size === 0) return []
  try {
    const history =
      network === undefined
        ? await openEvmHistory(settings, account)
        : await openSvmHistory(settings, network, account)
    return [await check(settings, account, history)]
  } catch (fault) {
    if (!(fault instanceof RpcUnavailableError)) throw fault
    return [{ kind: 'unchecked', protocol, network: id, asset, reason: fault.message }]
  }
}

async function check(
  settings: ReconcileSettings,
  account: ReceivingAccount,
  history: ChainHistory,
): Promise<Checked> {
  const { ledger, now, progress } = settings
  const { protocol, network, asset, questionable } = account
  const comparison = new Comparison()
  const seen = new Set<string>()
  for await (const { incoming, read } of history.incoming()) {
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
    progress(network, read)
  }
  for (const key of questionable) {
    const record = seen.has(key) ? undefined : await ledger.get(key)
    if (record !== undefined && isQuestionable(record))
      comparison.take(compareEntry(record, await history.status(record), now()))
  }
  for (const key of account.refunds) {
    const record = await ledger.get(key)
    const refund = record?.refund
    if (record === undefined || refund === undefined || refund.kind === 'due') {
      if (record !== undefined && isRefundDue(record, now())) comparison.refund('due', record)
      continue
    }
    const isShown = await history.showsRefund(record, refund.hash)
    comparison.refund(isShown ? 'sent' : 'due', record)
    const difference = compareRefund(record, isShown)
    if (difference !== undefined) comparison.take(difference)
  }
  const { span } = history
  const payees = [...account.payees]
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
