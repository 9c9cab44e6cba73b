import { REFUND_VALID_S } from '../base/money-times.ts'
import { keccak256, stringToHex } from '../../vendor/viem.ts'
import { sign } from '../../vendor/viem-accounts.ts'
import type { Transaction as TempoTransaction } from '../../vendor/viem-tempo.ts'
import type { Address } from '../base/address.ts'
import { findSvmNetwork, svmRpcVariable } from '../base/networks.ts'
import type { SvmAccount } from '../base/svm-signature.ts'
import { SvmChain } from '../chains/svm/svm-chain.ts'
import { LogScanner } from '../chains/evm/log-scanner.ts'
import { broadcast } from '../chains/evm/broadcast.ts'
import { word } from '../chains/evm/abi.ts'
import { Chain, isHex } from '../chains/evm/chain.ts'
import type { SignedTransaction } from '../chains/evm/account.ts'
import { type RpcTransport } from '../base/runtime.ts'
import { poll, type Clock } from '../base/poll.ts'
import { openAccount } from '../chains/evm/local-account.ts'
import { acquireExpired, type LeaseContext, type PaymentLease } from '../ledger/lease.ts'
import { chargeStatus } from '../ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { fateOf } from './refund-attempt.ts'
import { refunderIn, refundFilter, refundTermsOf, type RefundTerms } from './refund-proof.ts'
import {
  finish,
  refundedBefore,
  refused,
  type Refused,
  type RefundResult,
  type SentRefund,
} from './refund-result.ts'
import { sendSvmRefund } from './svm-refund.ts'
import { transferCall } from '../chains/evm/eip3009/transfer-call.ts'
import { authorizationDigest } from '../chains/evm/eip3009/digest.ts'
import { isRevert } from '../chains/evm/json-rpc.ts'

export interface RefundSettings extends LeaseContext, Clock {
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** Those of Solana networks by CAIP-2 id. */
  readonly svmRpcUrls: Readonly<Record<string, string>>
  readonly caller: RpcTransport
  readonly keys: RefundKeys
}

/** The accounts that hold the money and pay the fees; undefined where there is none. */
export interface RefundKeys {
  /** Private key of the account on EVM networks. */
  readonly evm: `0x${string}` | undefined
  readonly svm: SvmAccount | undefined
}

/**
 * Sends the amount of a charged payment back to its payer, once. x402: as an EIP-3009 authorization whose nonce follows
 * from the payment’s id, so that the token refuses a second one of the same account even when the ledger was lost. MPP:
 * as a TIP-20 transfer whose memo follows from it. Solana: as a transfer with such a memo. Each is looked for on the
 * chain first, of whichever account.
 *
 * The transaction is recorded before it is broadcast. Until it is impossible, every further attempt, with whatever key,
 * sends the same bytes.
 *
 * Throws `RpcUnavailableError` when the chain cannot be searched for an earlier refund: nothing is sent then.
 */
export async function refundPayment(settings: RefundSettings, record: PaymentRecord): Promise<RefundResult> {
  const charged = chargeStatus(record)
  if (charged !== 'yes')
    return refused(charged === 'no' ? 'nothing was charged' : 'whether it was charged is not known yet')
  const { now } = settings
  if (record.refund?.kind === 'sent' && isFinal(record.refund, now())) return refundedBefore(record.refund)
  const opened = openSender(settings, record)
  if (opened.kind === 'refused') return opened
  const lease = await acquireExpired(settings, record)
  if (lease === undefined) return refused('a server is working on this payment: run the refund again')
  try {
    return await opened.send(lease)
  } finally {
    await lease.release()
  }
}

type Sender =
  { readonly kind: 'opened'; readonly send: (lease: PaymentLease) => Promise<RefundResult> } | Refused

/** What sends the refunds of a network. */
function openSender(settings: RefundSettings, { network: id }: PaymentRecord): Sender {
  const { keys, now, sleep, caller, rpcUrls, svmRpcUrls } = settings
  const network = findSvmNetwork(id)
  if (network !== undefined) {
    const [url, account] = [svmRpcUrls[id], keys.svm]
    if (url === undefined) return refused(`${svmRpcVariable(network)} is not set`)
    if (account === undefined) return refused('SOLANA_REFUND_PRIVATE_KEY is not set')
    const context = { chain: new SvmChain(url, caller), account, now, sleep }
    return { kind: 'opened', send: (lease) => sendSvmRefund(context, lease) }
  }
  const chainId = Number(/^eip155:(\d+)$/.exec(id)?.[1])
  const [url, key] = [rpcUrls[chainId], keys.evm]
  if (url === undefined) return refused(`RPC_URL_${chainId} is not set`)
  if (key === undefined) return refused('REFUND_PRIVATE_KEY is not set')
  const from = openAccount(key).address
  const context = { key, from, now, sleep, chainId, chain: new Chain(url, caller) }
  return { kind: 'opened', send: (lease) => send(context, lease) }
}

/** Whether its bytes cannot be sent again, should its block be undone. */
function isFinal({ raw, validBefore = 0 }: SentRefund, now: number): boolean {
  return raw === undefined || validBefore <= now
}

/** How long a broadcast refund is waited for. */
const PACE = { first: 100, factor: 1.5, longest: 2_000, patience: 60_000 }
const BALANCE_CALL = keccak256(stringToHex('balanceOf(address)')).slice(2, 10)
const TRANSFER_CALL = keccak256(stringToHex('transferWithMemo(address,uint256,bytes32)')).slice(2, 10)

interface RefundContext extends Clock {
  readonly chain: Chain
  readonly chainId: number
  readonly key: `0x${string}`
  /** The account of the key. */
  readonly from: Address
}

async function send(context: RefundContext, lease: PaymentLease): Promise<RefundResult> {
  const { record } = lease
  const terms = refundTermsOf(record)
  if (terms === undefined) return refused('this version cannot refund on its network or in its token')
  const { refund } = record
  if (refund !== undefined && refund.kind !== 'due') {
    const followed = await followUp(context, terms, lease, refund)
    if (followed !== 'impossible') return followed
  }
  const earlier = await findEarlier(context, terms, record)
  if (earlier !== undefined) return finish(context, lease, earlier)
  const signed = await signTransaction(context, terms)
  if (signed.kind === 'refused') return signed
  const { transaction } = signed
  await lease.refund({ kind: 'sending', ...transaction })
  const result = await submit(context, terms, transaction)
  return result.kind === 'sent' ? finish(context, lease, transaction) : result
}

/** Continues a refund that an earlier run has recorded; `impossible`: another one may be signed. */
async function followUp(
  context: RefundContext,
  terms: RefundTerms,
  lease: PaymentLease,
  refund: SentRefund,
): Promise<RefundResult | 'impossible'> {
  const { hash, raw, sender } = refund
  const fate = await fateOf(context, terms, lease.record, refund)
  if (refund.kind === 'sent' && fate.kind !== 'open') return refundedBefore(refund)
  switch (fate.kind) {
    case 'refunded':
      return finish(context, lease, fate.hash === hash ? { ...refund, sender: fate.sender } : fate)
    case 'open': {
      const result = isHex(raw)
        ? await submit(context, terms, { hash, raw, sender })
        : await wait(context, terms, hash)
      return result.kind === 'sent' ? finish(context, lease, refund) : result
    }
    case 'blocked':
      return refused(fate.reason)
    case 'unclear':
      return { kind: 'unconfirmed', hash }
    case 'impossible':
      return 'impossible'
  }
}

/** Calldata of the token’s contract. */
async function callOf(
  { key, from }: RefundContext,
  { by, payer: to, amount, mark: nonce }: RefundTerms,
  validBefore: number,
): Promise<`0x${string}`> {
  if (by.kind === 'memo') return `0x${TRANSFER_CALL}${word(to)}${word(amount)}${nonce.slice(2)}`
  const value = amount.toString()
  const authorization = { from, to, value, validAfter: '0', validBefore: String(validBefore), nonce }
  const digest = Buffer.from(authorizationDigest(by.network, authorization)).toString('hex')
  const signature = await sign({ hash: `0x${digest}`, privateKey: key, to: 'hex' })
  return transferCall({ authorization, signature, signedBy: 'key' })
}

async function submit(
  context: RefundContext,
  terms: RefundTerms,
  { hash, raw, sender }: SignedTransaction & { readonly sender: string | undefined },
): Promise<RefundResult> {
  const outcome = await broadcast(context.chain, { hash, raw }, context)
  return outcome === 'unfunded' ? noGas(sender ?? context.from) : wait(context, terms, hash)
}

function noGas(account: string): Refused {
  return refused(`${account} holds too little to pay for the gas: fund it and run the refund again`)
}

async function wait(context: RefundContext, terms: RefundTerms, hash: string): Promise<RefundResult> {
  const found = await poll(context, PACE, async (): Promise<RefundResult | undefined> => {
    const answer = await context.chain.receipt(hash)
    if (answer.kind !== 'result' || answer.result === null) return undefined
    if (refunderIn(terms, answer.result.logs) !== undefined) return { kind: 'sent', hash }
    return refused(`transaction ${hash} was reverted; run the refund again`)
  })
  return found ?? { kind: 'unconfirmed', hash }
}

/** The refund that a ledger has forgotten. Throws `RpcUnavailableError`: without the answer, nothing is sent. */
async function findEarlier(
  { chain, chainId, sleep }: RefundContext,
  terms: RefundTerms,
  { settledAt, createdAt }: PaymentRecord,
): Promise<{ readonly hash: string; readonly sender: Address } | undefined> {
  const scanner = await LogScanner.open({ chain, sleep }, chainId)
  const span = { from: await scanner.blockAt(settledAt ?? createdAt), to: scanner.head }
  for await (const { logs } of scanner.logs(refundFilter(terms), span)) {
    for (const hash of new Set(logs.map(({ transactionHash }) => transactionHash))) {
      const sender = refunderIn(terms, (await scanner.receipt(hash))?.logs ?? [])
      if (sender !== undefined) return { hash, sender }
    }
  }
  return undefined
}

type SignedRefund =
  | {
      readonly kind: 'signed'
      readonly transaction: SignedTransaction & Required<Omit<SentRefund, 'kind' | 'sentAt'>>
    }
  | Refused

async function signTransaction(context: RefundContext, terms: RefundTerms): Promise<SignedRefund> {
  const { chain, chainId, key, from, now } = context
  const { by, token, amount } = terms
  const validBefore = Math.floor(now() / 1000) + REFUND_VALID_S
  const data = await callOf(context, terms, validBefore)
  const [gas, fees, nonce, coins, tokens] = await Promise.all([
    chain.estimateGas(from, token, data),
    chain.fees(),
    chain.nextNonce(from),
    chain.balance(from),
    chain.read(token, `0x${BALANCE_CALL}${word(from)}`),
  ])
  if (tokens.kind === 'result' && BigInt(tokens.result === '0x' ? 0 : tokens.result) < amount)
    return refused(`${from} holds too little of the token: fund it and run the refund again`)
  if (isRevert(gas)) return refused('the token refuses it: it may have been refunded before')
  if (gas.kind !== 'result' || fees.kind !== 'result' || nonce.kind !== 'result' || coins.kind !== 'result')
    return refused('the network cannot be reached now')
  const { base, tip } = fees.result
  const limits = {
    chainId,
    nonce: Number(nonce.result),
    gas: (gas.result * 5n) / 4n,
    maxFeePerGas: base * 3n + tip,
    maxPriorityFeePerGas: tip,
  }
  const isTempo = by.kind === 'memo'
  if (!isTempo && coins.result < limits.gas * limits.maxFeePerGas) return noGas(from)
  const signed = isTempo
    ? await signTempo({ type: 'tempo', ...limits, validBefore, calls: [{ to: token, data }] }, key)
    : openAccount(key).sign({ ...limits, to: token, data })
  const recorded = { sender: from, nonce: limits.nonce, validBefore: validBefore * 1000 }
  return { kind: 'signed', transaction: { ...signed, ...recorded } }
}

/** Tempo has no coin: only its own transactions pay their fee in a token. */
async function signTempo(
  transaction: TempoTransaction.TransactionSerializableTempo,
  privateKey: `0x${string}`,
): Promise<SignedTransaction> {
  // Loaded here: every start of the server would pay for it otherwise.
  const { Transaction } = await import('../../vendor/viem-tempo.ts')
  const digest = keccak256(await Transaction.serialize(transaction))
  const raw = await Transaction.serialize(transaction, await sign({ hash: digest, privateKey, to: 'object' }))
  return { raw, hash: keccak256(raw) }
}
