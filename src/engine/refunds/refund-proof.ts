import { keccak256, stringToHex } from '../../vendor/viem.ts'
import { isAddress, sameAddress, type Address } from '../base/address.ts'
import type { Log, LogFilter } from '../chains/evm/event-log.ts'
import { addressTopic, topicAddress } from '../chains/evm/transfer-log.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { findNetwork, type Network } from '../base/networks.ts'
import { TRANSFER_WITH_MEMO } from '../mpp/memo-source.ts'
import { AUTHORIZATION_USED, containsTransfer } from '../chains/evm/eip3009/authorization-log.ts'

/** What is sent back for a payment, and the name under which the chain shows it. */
export interface RefundTerms {
  /** How it is sent: as an EIP-3009 authorization on this network, or as a TIP-20 transfer with a memo. */
  readonly by:
    | { readonly kind: 'authorization'; readonly network: Network }
    | { readonly kind: 'memo'; readonly network: string }
  readonly token: Address
  readonly payer: Address
  /** Atomic units. */
  readonly amount: bigint
  /** The nonce of the authorization, or the memo: it follows from the payment’s id. */
  readonly mark: `0x${string}`
}

/** Undefined when nothing was charged, or this version does not know the network or the token. */
export function refundTermsOf(record: PaymentRecord): RefundTerms | undefined {
  const { id, protocol, network: id_, asset: token, receipt } = record
  if (receipt === undefined || !isAddress(token) || !isAddress(receipt.payer)) return undefined
  const terms = { token, payer: receipt.payer, amount: BigInt(receipt.amount), mark: refundMark(id) }
  if (protocol === 'mpp') return { ...terms, by: { kind: 'memo', network: id_ } }
  const network = findNetwork(id_)
  if (network === undefined || !sameAddress(network.token.address, token)) return undefined
  return { ...terms, by: { kind: 'authorization', network } }
}

/** The name under which a chain shows the refund of a payment. */
export function refundMark(id: string): `0x${string}` {
  return keccak256(stringToHex(`ratecard refund of ${id}, 1`))
}

/** Finds the logs that name a refund, whichever account has sent it. */
export function refundFilter({ by, token, payer, mark }: RefundTerms): LogFilter {
  const topics =
    by.kind === 'memo'
      ? [TRANSFER_WITH_MEMO, null, addressTopic(payer), mark]
      : [AUTHORIZATION_USED, null, mark]
  return { address: token, topics }
}

/**
 * The account that has sent the refund, by the logs of one transaction; undefined when they show none. The name alone
 * proves nothing, since anybody can use it, and neither does a transfer of the same amount to the same payer.
 */
export function refunderIn(terms: RefundTerms, logs: readonly Log[]): Address | undefined {
  const { by, token, payer: to, amount: value, mark: nonce } = terms
  for (const { address, topics, data } of logs) {
    const from = topicAddress(topics[1])
    if (from === undefined || !sameAddress(address, token)) continue
    const isRefund =
      by.kind === 'memo'
        ? isMemo(terms, topics, data)
        : topics[0] === AUTHORIZATION_USED && containsTransfer(logs, { token, from, to, value, nonce })
    if (isRefund) return from
  }
  return undefined
}

function isMemo({ payer, amount, mark }: RefundTerms, topics: Log['topics'], data: string): boolean {
  const [event, , to, memo] = topics
  return (
    event === TRANSFER_WITH_MEMO &&
    to?.toLowerCase() === addressTopic(payer) &&
    memo?.toLowerCase() === mark &&
    /^0x[0-9a-f]{64}$/i.test(data) &&
    BigInt(data) === amount
  )
}

/** Whether the logs of a transaction show the refund of a payment. */
export function showsRefund(record: PaymentRecord, logs: readonly Log[]): boolean {
  const terms = refundTermsOf(record)
  return terms !== undefined && refunderIn(terms, logs) !== undefined
}
