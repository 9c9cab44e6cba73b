import { isAddress, toChecksum } from '../base/address.ts'
import { NETWORKS, SVM_NETWORKS } from '../base/networks.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { isRefundDue } from '../ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { isQuestionable } from './compare.ts'

/** An account that is paid by MPP. */
export interface MppAccount {
  /** Chain id. */
  readonly chain: number
  /** Address of the token. */
  readonly currency: string
  readonly recipient: string
}

/** One token on one network, with the addresses that receive it. */
export interface ReceivingAccount {
  readonly protocol: string
  readonly network: string
  readonly asset: string
  readonly payees: ReadonlySet<string>
  /** Keys of the records the chain has to confirm, if it does not show them by itself. */
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
  /** Ids of Solana networks with an endpoint. */
  readonly svmNetworks: ReadonlySet<string>
  /** Who is paid by x402 now; others are known from the ledger. */
  readonly payTo: string | undefined
  readonly payToSolana: string | undefined
  readonly mpp?: MppAccount | undefined
  /** Milliseconds since the epoch. */
  readonly since: number
  /** What the chain calls a payment. */
  readonly namesOf: (record: PaymentRecord) => readonly string[]
}

/** A record is older than its settlement, by less than this. */
const LEAD_MS = 3_600_000

/** Reads the whole ledger once; an unfinished record counts whatever its age. */
export async function findAccounts(settings: AccountSettings): Promise<ReceivingAccount[]> {
  const { ledger, chains, svmNetworks, payTo, payToSolana, mpp, since, namesOf } = settings
  const accounts = new Map<string, Growing>()
  const accountOf = (protocol: string, network: string, asset: string): Growing => {
    const name = [protocol, network, asset].join(' ').toLowerCase()
    const known = accounts.get(name)
    if (known !== undefined) return known
    const account = {
      protocol,
      network,
      asset,
      payees: new Set<string>(),
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
  if (payToSolana !== undefined) {
    for (const { id, token } of SVM_NETWORKS)
      if (svmNetworks.has(id)) accountOf('x402', id, token.address).payees.add(payToSolana)
  }
  if (mpp !== undefined && chains.has(mpp.chain) && isAddress(mpp.recipient))
    accountOf('mpp', `eip155:${mpp.chain}`, mpp.currency).payees.add(toChecksum(mpp.recipient))
  for await (const record of ledger.records()) {
    const { protocol, network, asset, payee, key, createdAt, settledAt } = record
    const account = accountOf(protocol, network, asset)
    account.payees.add(isAddress(payee) ? toChecksum(payee) : payee)
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
  readonly payees: Set<string>
  readonly questionable: Set<string>
  readonly refunds: Set<string>
  readonly keys: Map<string, string>
}
