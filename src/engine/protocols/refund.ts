import { keccak256, stringToHex } from 'viem'
import { sign } from 'viem/accounts'
import type { Transaction as TempoTransaction } from 'viem/tempo'
import { isAddress, sameAddress, type Address } from '../address.ts'
import { LogScanner, addressTopic, isTransactionHash, readTransfer } from '../chains/evm/logs.ts'
import { broadcast } from '../chains/evm/unmined.ts'
import {
  Chain,
  isHex,
  poll,
  word,
  isRevert,
  type Clock,
  type Log,
  type LogFilter,
  type SignedTransaction,
} from '../chains/evm/chain.ts'
import { type RpcTransport } from '../runtime.ts'
import { openAccount } from '../chains/evm/batch-signer.ts'
import { acquireExpired, type LeaseContext, type PaymentLease } from '../ledger/lease.ts'
import { chargeStatus } from '../ledger/payment-lifecycle.ts'
import type { PaymentRecord, Refund } from '../ledger/payment-record.ts'
import { findNetwork } from '../networks.ts'
import { TRANSFER_WITH_MEMO } from './mpp/reconcile-source.ts'
import { AUTHORIZATION_USED, authorizationDigest, transferCall } from './x402/payload.ts'

export interface RefundSettings extends LeaseContext, Clock {
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly caller: RpcTransport
  /** Private key of the account that holds the money and pays the gas: the same in every attempt. */
  readonly key: `0x${string}`
}

export type RefundResult =
  | { readonly kind: 'sent'; readonly hash: string }
  /** Nothing was sent now. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Sent, and in no block yet: run again, it is never sent twice. */
  | { readonly kind: 'unconfirmed'; readonly hash: string }

/**
 * Sends the amount of a charged payment back to its payer, once. x402: as an EIP-3009 authorization whose nonce follows
 * from the payment’s id, so that the token refuses a second one even when the ledger was lost. MPP: as a TIP-20 transfer
 * whose memo follows from it, which is looked for on the chain first. The transaction is recorded before it is broadcast.
 *
 * Throws `RpcUnavailableError` when the chain cannot be searched for an earlier refund: nothing is sent then.
 */
export async function refundPayment(settings: RefundSettings, entry: PaymentRecord): Promise<RefundResult> {
  const refused = (reason: string): RefundResult => ({ kind: 'refused', reason })
  const charged = chargeStatus(entry)
  if (charged !== 'yes')
    return refused(charged === 'no' ? 'nothing was charged' : 'whether it was charged is not known yet')
  if (entry.refund?.kind === 'sent') return refused(`it was refunded before, in ${entry.refund.hash}`)
  const chainId = Number(/^eip155:(\d+)$/.exec(entry.network)?.[1])
  const url = settings.rpcUrls[chainId]
  if (url === undefined) return refused(`RPC_URL_${chainId} is not set`)
  const lease = await acquireExpired(settings, entry)
  if (lease === undefined) return refused('a server is working on this payment: run the refund again')
  try {
    const { key, now, sleep, caller } = settings
    return await send({ key, now, sleep, chainId, chain: new Chain(url, caller) }, lease)
  } finally {
    await lease.release()
  }
}

/** How long a broadcast refund is waited for. */
const PACE = { first: 100, factor: 1.5, longest: 2_000, patience: 60_000 }
/** An authorization that is not carried out by then never is. */
const VALID_S = 3_600
const BALANCE_CALL = keccak256(stringToHex('balanceOf(address)')).slice(2, 10)
const TRANSFER_CALL = keccak256(stringToHex('transferWithMemo(address,uint256,bytes32)')).slice(2, 10)

interface RefundContext extends Clock {
  readonly chain: Chain
  readonly chainId: number
  readonly key: `0x${string}`
}

async function send(settings: RefundContext, lease: PaymentLease): Promise<RefundResult> {
  const transfer = await planTransfer(settings, lease.entry)
  if (transfer === undefined)
    return { kind: 'refused', reason: 'this version cannot refund on its network or in its token' }
  const finish = async (hash: string): Promise<RefundResult> => {
    await lease.refund({ kind: 'sent', hash })
    return { kind: 'sent', hash }
  }
  const { refund } = lease.entry
  const resumed = refund?.kind === 'sending' ? await resume(settings, transfer, refund) : undefined
  if (resumed !== undefined) return resumed.kind === 'sent' ? finish(resumed.hash) : resumed
  const earlier = await findEarlier(settings, transfer, lease.entry)
  if (earlier !== undefined) return finish(earlier)
  const signed = await signTransaction(settings, transfer)
  if (signed.kind === 'refused') return signed
  const { hash, raw, nonce } = signed
  await lease.refund({ kind: 'sending', hash, raw, nonce })
  const result = await submit(settings, transfer, { hash, raw })
  return result.kind === 'sent' ? finish(hash) : result
}

/** A call of the token’s contract, and the log that proves it. */
interface RefundTransfer {
  readonly from: Address
  readonly token: Address
  readonly isTempo: boolean
  /** Atomic units. */
  readonly amount: bigint
  readonly data: `0x${string}`
  readonly proof: LogFilter
}

async function planTransfer(
  { key, now }: RefundContext,
  entry: PaymentRecord,
): Promise<RefundTransfer | undefined> {
  const { id, protocol, network, asset, receipt } = entry
  const from = openAccount(key).address
  if (receipt === undefined || !isAddress(asset) || !isAddress(receipt.payer)) return undefined
  const { payer: to, amount: value } = receipt
  const mark = markOf(id)
  if (protocol === 'mpp') {
    const data = `0x${TRANSFER_CALL}${word(to)}${word(BigInt(value))}${mark.slice(2)}` as const
    const topics = [TRANSFER_WITH_MEMO, addressTopic(from), addressTopic(to), mark]
    return {
      from,
      token: asset,
      isTempo: true,
      amount: BigInt(value),
      data,
      proof: { address: asset, topics },
    }
  }
  const known = findNetwork(network)
  if (known === undefined || known.token.address.toLowerCase() !== asset.toLowerCase()) return undefined
  const validBefore = String(Math.floor(now() / 1000) + VALID_S)
  const authorization = { from, to, value, validAfter: '0', validBefore, nonce: mark }
  const digest = Buffer.from(authorizationDigest(known, authorization)).toString('hex')
  const signature = await sign({ hash: `0x${digest}`, privateKey: key, to: 'hex' })
  const data = transferCall({ authorization, signature, signedBy: 'key' })
  return {
    from,
    token: asset,
    isTempo: false,
    amount: BigInt(value),
    data,
    proof: { address: asset, topics: [AUTHORIZATION_USED, addressTopic(from), mark] },
  }
}

/** The name of a payment's refund on the chain: the nonce of its authorization, or the memo of its transfer. */
function markOf(id: string): `0x${string}` {
  return keccak256(stringToHex(`ratecard refund of ${id}, 1`))
}

/** Whether the logs of a transaction show the refund of a payment, whichever account has sent it. */
export function showsRefund({ id, protocol, asset, receipt }: PaymentRecord, logs: readonly Log[]): boolean {
  const [event, place] = protocol === 'mpp' ? [TRANSFER_WITH_MEMO, 3] : [AUTHORIZATION_USED, 2]
  const ours = logs.filter(({ address }) => sameAddress(address, asset))
  const isMarked = ours.some(
    ({ topics }) => topics[0] === event && topics[place]?.toLowerCase() === markOf(id),
  )
  return (
    isMarked &&
    ours
      .flatMap((log) => readTransfer(log) ?? [])
      .some(
        ({ to, amount }) => sameAddress(to, receipt?.payer ?? '') && amount.toString() === receipt?.amount,
      )
  )
}

/** Goes on with a transaction that an earlier attempt has recorded; undefined when it can never be mined any more. */
async function resume(
  settings: RefundContext,
  transfer: RefundTransfer,
  { hash, raw, nonce }: Extract<Refund, { readonly kind: 'sending' }>,
): Promise<RefundResult | undefined> {
  const { chain } = settings
  const head = await chain.blockNumber()
  const mined = head.kind === 'result' ? await chain.minedNonce(transfer.from, head.result) : head
  if (mined.kind !== 'result') return { kind: 'unconfirmed', hash }
  const isSpent = mined.result > BigInt(nonce)
  if (!isSpent) return isHex(raw) ? submit(settings, transfer, { hash, raw }) : wait(settings, transfer, hash)
  // Its nonce is spent: by this transaction, which has succeeded or reverted, or by another one.
  const receipt = await chain.receipt(hash)
  if (receipt.kind !== 'result') return { kind: 'unconfirmed', hash }
  return isProof(transfer, receipt.result?.logs ?? []) ? { kind: 'sent', hash } : undefined
}

async function submit(
  settings: RefundContext,
  transfer: RefundTransfer,
  transaction: SignedTransaction,
): Promise<RefundResult> {
  const outcome = await broadcast(settings.chain, transaction, settings)
  return outcome === 'unfunded' ? noGas(transfer) : wait(settings, transfer, transaction.hash)
}

function noGas({ from }: RefundTransfer): Extract<RefundResult, { readonly kind: 'refused' }> {
  return {
    kind: 'refused',
    reason: `${from} holds too little to pay for the gas: fund it and run the refund again`,
  }
}

async function wait(settings: RefundContext, transfer: RefundTransfer, hash: string): Promise<RefundResult> {
  const found = await poll(settings, PACE, async (): Promise<RefundResult | undefined> => {
    const answer = await settings.chain.receipt(hash)
    if (answer.kind !== 'result' || answer.result === null) return undefined
    if (isProof(transfer, answer.result.logs)) return { kind: 'sent', hash }
    return { kind: 'refused', reason: `transaction ${hash} was reverted; run the refund again` }
  })
  return found ?? { kind: 'unconfirmed', hash }
}

function isProof({ proof }: RefundTransfer, logs: readonly Log[]): boolean {
  return logs.some(
    ({ address, topics }) =>
      address.toLowerCase() === proof.address.toLowerCase() &&
      proof.topics.every((topic, place) => topic === topics[place]?.toLowerCase()),
  )
}

/** The refund that a ledger has forgotten. Throws `RpcUnavailableError`: without the answer, nothing is sent. */
async function findEarlier(
  { chain, chainId, sleep }: RefundContext,
  { proof }: RefundTransfer,
  { settledAt, createdAt }: PaymentRecord,
): Promise<string | undefined> {
  const scanner = await LogScanner.open({ chain, sleep }, chainId)
  const from = await scanner.blockAt(settledAt ?? createdAt)
  for await (const { logs } of scanner.logs(proof, { from, to: scanner.head }))
    for (const { transactionHash } of logs) if (isTransactionHash(transactionHash)) return transactionHash
  return undefined
}

type SignedRefund =
  | { readonly kind: 'signed'; readonly hash: string; readonly raw: `0x${string}`; readonly nonce: number }
  | Extract<RefundResult, { readonly kind: 'refused' }>

async function signTransaction(
  { chain, chainId, key }: RefundContext,
  transfer: RefundTransfer,
): Promise<SignedRefund> {
  const { from, token, data, amount, isTempo } = transfer
  const [gas, fees, nonce, coins, tokens] = await Promise.all([
    chain.estimateGas(from, token, data),
    chain.fees(),
    chain.nextNonce(from),
    chain.balance(from),
    chain.read(token, `0x${BALANCE_CALL}${word(from)}`),
  ])
  if (tokens.kind === 'result' && BigInt(tokens.result === '0x' ? 0 : tokens.result) < amount)
    return {
      kind: 'refused',
      reason: `${from} holds too little of the token: fund it and run the refund again`,
    }
  if (isRevert(gas))
    return { kind: 'refused', reason: 'the token refuses it: it may have been refunded before' }
  if (gas.kind !== 'result' || fees.kind !== 'result' || nonce.kind !== 'result' || coins.kind !== 'result')
    return { kind: 'refused', reason: 'the network cannot be reached now' }
  const { base, tip } = fees.result
  const limits = {
    chainId,
    nonce: Number(nonce.result),
    gas: (gas.result * 5n) / 4n,
    maxFeePerGas: base * 3n + tip,
    maxPriorityFeePerGas: tip,
  }
  if (!isTempo && coins.result < limits.gas * limits.maxFeePerGas) return noGas(transfer)
  const signed = isTempo
    ? await signTempo({ type: 'tempo', ...limits, calls: [{ to: token, data }] }, key)
    : openAccount(key).sign({ ...limits, to: token, data })
  return { kind: 'signed', ...signed, nonce: limits.nonce }
}

/** Tempo has no coin: only its own transactions pay their fee in a token. */
async function signTempo(
  transaction: TempoTransaction.TransactionSerializableTempo,
  privateKey: `0x${string}`,
): Promise<SignedTransaction> {
  // Loaded here: every start of the server would pay for it otherwise.
  const { Transaction } = await import('viem/tempo')
  const digest = keccak256(await Transaction.serialize(transaction))
  const raw = await Transaction.serialize(transaction, await sign({ hash: digest, privateKey, to: 'object' }))
  return { raw, hash: keccak256(raw) }
}
