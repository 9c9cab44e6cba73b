import { encodeBase58 } from '../base/base58.ts'
import { SVM_LATEST_MS } from '../base/money-times.ts'
import { poll, type Clock, type Pace } from '../base/poll.ts'
import type { SvmAccount } from '../base/svm-signature.ts'
import { writeTransferMessage } from '../base/svm-transfer-message.ts'
import { tokenAccountOf } from '../base/token-account.ts'
import { patiently } from '../chains/evm/log-scanner.ts'
import { checkSvmNode } from '../chains/svm/check-node.ts'
import type { SvmChain } from '../chains/svm/svm-chain.ts'
import { readOrder, writeOrder, type SvmOrder } from '../chains/svm/svm-order.ts'
import { writeTransaction } from '../chains/svm/transaction.ts'
import { transactionsSince } from '../chains/svm/transactions-since.ts'
import type { PaymentLease } from '../ledger/lease.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import {
  finish,
  refundedBefore,
  refused,
  type Refused,
  type RefundResult,
  type SentRefund,
} from './refund-result.ts'
import { svmRefunderIn, svmRefundTermsOf, type SvmRefundTerms } from './svm-refund-proof.ts'

interface SvmRefundContext extends Clock {
  readonly chain: SvmChain
  /** Holds the money and pays the fee. */
  readonly account: SvmAccount
}

/** Nodes drop transactions when they are busy. */
const RESEND_MS = 2_000
const PACE: Pace = { first: 150, factor: 1.3, longest: 1_000, patience: 60_000 }
/** Lamports: one signature, and the least priority fee. */
const FEE = 5_001n

/**
 * Sends the amount of a payment on Solana back, as a transfer whose memo follows from the payment’s id. The transaction
 * is recorded before it is sent, and every further attempt, with whatever key, sends the same bytes until no block can
 * contain them. Throws `RpcUnavailableError` when the chain cannot be searched for an earlier refund.
 */
export async function sendSvmRefund(context: SvmRefundContext, lease: PaymentLease): Promise<RefundResult> {
  const { record } = lease
  const terms = svmRefundTermsOf(record)
  if (terms === undefined) return refused('this version cannot refund on its network or in its token')
  await checkSvmNode(context, terms.network)
  const { refund } = record
  if (refund?.kind === 'sent') return refundedBefore(refund)
  if (refund?.kind === 'sending') {
    const followed = await followUp(context, terms, lease, refund)
    if (followed !== 'impossible') return followed
  }
  const earlier = await findEarlier(context, terms, record)
  if (earlier !== undefined) return finish(context, lease, earlier)
  const signed = await signTransfer(context, terms)
  if (signed.kind === 'refused') return signed
  const { order, ...transaction } = signed.transaction
  await lease.refund({ kind: 'sending', raw: writeOrder(order), ...transaction })
  return deliver(context, lease, transaction, order)
}

/** Continues a refund that an earlier run has recorded; `impossible`: another one may be signed. */
async function followUp(
  context: SvmRefundContext,
  terms: SvmRefundTerms,
  lease: PaymentLease,
  refund: SentRefund,
): Promise<RefundResult | 'impossible'> {
  const { chain } = context
  const { hash } = refund
  const order = readOrder(refund.raw)
  // Read before the status: a transaction that is unknown after its last height is in no block.
  const height = await patiently(context, () => chain.height('finalized'))
  const status = await patiently(context, () => chain.status(hash))
  switch (status.kind) {
    case 'succeeded': {
      const landed = await patiently(context, () => chain.transaction(hash))
      return landed !== null && svmRefunderIn(terms, landed.bytes) !== undefined
        ? finish(context, lease, refund)
        : refused(`${hash} was carried out, and the node does not show that it is the refund`)
    }
    // A transaction that has failed in a block is in no other one.
    case 'failed':
      return 'impossible'
    case 'processed':
      return { kind: 'unconfirmed', hash }
    case 'none':
      if (order === undefined)
        return refused(
          `the record does not say until when ${hash} may be carried out, and the chain does not show it`,
        )
      return height > order.lastHeight ? 'impossible' : deliver(context, lease, refund, order)
  }
}

type Sent = Omit<SentRefund, 'kind' | 'raw'>

/** Sends recorded bytes and waits for their block. */
async function deliver(
  context: SvmRefundContext,
  lease: PaymentLease,
  transaction: Sent,
  order: SvmOrder,
): Promise<RefundResult> {
  const { chain, now } = context
  const { hash } = transaction
  let sentAt = -Infinity
  const found = await poll(context, PACE, async (): Promise<RefundResult | undefined> => {
    if (now() - sentAt >= RESEND_MS) {
      sentAt = now()
      await chain.send(order.transaction)
    }
    const status = await chain.status(hash)
    if (status.kind !== 'result') return undefined
    if (status.result.kind === 'succeeded')
      return finish(context, lease, { raw: writeOrder(order), ...transaction })
    return status.result.kind === 'failed'
      ? refused(`transaction ${hash} has failed: see at an explorer why, and run the refund again`)
      : undefined
  })
  return found ?? { kind: 'unconfirmed', hash }
}

/** The refund that a ledger has forgotten. */
async function findEarlier(
  context: SvmRefundContext,
  terms: SvmRefundTerms,
  { settledAt, createdAt }: PaymentRecord,
): Promise<Sent | undefined> {
  // Blocks tell the time in seconds, and not all of them exactly.
  const since = (settledAt ?? createdAt) - SVM_LATEST_MS
  for await (const page of transactionsSince(context, terms.tokenAccount, since)) {
    const succeeded = page.filter((found) => found.succeeded)
    for (const { signature: hash } of succeeded) {
      const landed = await patiently(context, () => context.chain.transaction(hash))
      const sender = landed === null ? undefined : svmRefunderIn(terms, landed.bytes)
      if (sender !== undefined) return { hash, sender }
    }
  }
  return undefined
}

type SignedRefund =
  { readonly kind: 'signed'; readonly transaction: Sent & { readonly order: SvmOrder } } | Refused

async function signTransfer(
  { chain, account, now }: SvmRefundContext,
  { network, payer, tokenAccount: destination, amount, memo }: SvmRefundTerms,
): Promise<SignedRefund> {
  const { address: sender } = account
  const { token, title, coin } = network
  const source = tokenAccountOf(sender, token.address)
  if (source === undefined || source === destination) return refused('the account of the refund is the payer')
  const [coins, own, theirs, life] = await Promise.all([
    chain.balance(sender),
    chain.tokenAccount(source),
    chain.tokenAccount(destination),
    chain.latestBlockhash(),
  ])
  if (coins.kind !== 'result' || own.kind !== 'result' || theirs.kind !== 'result' || life.kind !== 'result')
    return refused(`${title} cannot be reached now`)
  if (theirs.result === null)
    return refused(
      `${payer} has no token account for ${token.symbol} any more: ask its owner where to send it`,
    )
  if ((own.result?.amount ?? 0n) < amount)
    return refused(`${sender} holds too little of the token: fund it and run the refund again`)
  if (coins.result < FEE)
    return refused(`${sender} holds too little ${coin} to pay the fee: fund it and run the refund again`)
  const { blockhash, lastHeight } = life.result
  const message = writeTransferMessage({
    feePayer: sender,
    owner: sender,
    source,
    destination,
    mint: token.address,
    decimals: token.decimals,
    amount,
    memo,
    blockhash,
  })
  const signature = account.sign(message)
  const bytes = writeTransaction({ signatures: [signature], message })
  const order = { lastHeight, transaction: Buffer.from(bytes).toString('base64') }
  const hash = encodeBase58(signature)
  return { kind: 'signed', transaction: { hash, sender, validBefore: now() + SVM_LATEST_MS, order } }
}
