import { keccak256 } from 'js-sha3'
import { sameAddress, type Address } from '../../../base/address.ts'
import { PERMIT2, UPTO_PROXY } from '../../../base/permit2.ts'
import { selector, word } from '../abi.ts'
import type { Block, Chain } from '../chain.ts'
import type { Log, LogFilter } from '../event-log.ts'
import type { ExpectedTransfer } from '../eip3009/token-state.ts'
import { findLog } from '../find-log.ts'
import { addressTopic, isTransfer, readTransfer, TRANSFER } from '../transfer-log.ts'
import { outcomeOfNonce, type ConfirmedChain, type TransferOutcome } from '../transfer-outcome.ts'
import { findSettleCall } from './settle-call.ts'

const BITMAP = selector('nonceBitmap(address,uint256)')
export const INVALIDATION = `0x${keccak256('UnorderedNonceInvalidation(address,uint256,uint256)')}` as const

/** Calldata that asks Permit2 which nonces of a word are used. */
export function bitmapCall(owner: Address, nonce: bigint): `0x${string}` {
  return `0x${BITMAP}${word(owner)}${word(nonce >> 8n)}`
}

/** Whether a word of nonces shows this one as used. */
export function isInBitmap(bitmap: bigint, nonce: bigint): boolean {
  return ((bitmap >> (nonce & 0xffn)) & 1n) === 1n
}

/** Whether a nonce of Permit2 is used or canceled, now or up to a block; undefined when the node does not say. */
export async function isNonceUsed(
  chain: Chain,
  { from, nonce }: Pick<ExpectedTransfer, 'from' | 'nonce'>,
  block?: bigint,
): Promise<boolean | undefined> {
  const number = BigInt(nonce)
  const answer = await chain.read(PERMIT2, bitmapCall(from, number), block)
  if (answer.kind !== 'result' || answer.result.length !== 66) return undefined
  return isInBitmap(BigInt(answer.result), number)
}

/** Whether these logs show the transfer. Permit2 logs no nonce: which permit it was, its transaction alone shows. */
export function showsTransfer(
  logs: readonly Log[],
  { token, from, to, value: amount }: ExpectedTransfer,
): boolean {
  return logs.some((log) => isTransfer(log, { token, from, to, amount }))
}

/**
 * What became of a permit, as `outcomeOfNonce` says it. The proof is the transaction that has called the proxy with its
 * nonce. A nonce that was used in another way is void for us: its payer has canceled it, or signed it for another spender.
 */
export function permitOutcome(
  confirmed: ConfirmedChain,
  expected: ExpectedTransfer,
  since: number,
  isVoid: (block: Block) => boolean | Promise<boolean>,
): Promise<TransferOutcome | undefined> {
  return outcomeOf(confirmed, { ...expected, amounts: 'expected' }, since, isVoid)
}

/** The same of a permit that others carry out: they may have moved another amount than they were asked for. */
export function permitOutcomeOfAnyAmount(
  confirmed: ConfirmedChain,
  expected: ExpectedTransfer,
  since: number,
  isVoid: (block: Block) => boolean | Promise<boolean>,
): Promise<TransferOutcome | undefined> {
  return outcomeOf(confirmed, { ...expected, amounts: 'any' }, since, isVoid)
}

interface Searched extends ExpectedTransfer {
  /** Which amounts a transfer of this permit may have. */
  readonly amounts: 'expected' | 'any'
}

function outcomeOf(
  confirmed: ConfirmedChain,
  expected: Searched,
  since: number,
  isVoid: (block: Block) => boolean | Promise<boolean>,
): Promise<TransferOutcome | undefined> {
  const { chain } = confirmed
  return outcomeOfNonce(confirmed, {
    isUsed: (block) => isNonceUsed(chain, expected, block),
    outcomeOfUse: (newest) => outcomeOfUse(chain, expected, { since, newest }, isVoid),
    isVoid,
  })
}

async function outcomeOfUse(
  chain: Chain,
  expected: Searched,
  searched: { readonly since: number; readonly newest: Block },
  isVoid: (block: Block) => boolean | Promise<boolean>,
): Promise<TransferOutcome | undefined> {
  const { token, from, to } = expected
  const transfers: LogFilter = { address: token, topics: [TRANSFER, addressTopic(from), addressTopic(to)] }
  const found = await findLog(chain, transfers, searched, (logs) => settlementIn(chain, logs, expected))
  if (found.kind === 'unknown') return { kind: 'used' }
  if (found.kind === 'found') {
    const { transactionHash: transaction } = found.log
    const receipt = await chain.receipt(transaction)
    if (receipt.kind !== 'result' || receipt.result === null) return undefined
    const amount = readTransfer(found.log)?.amount
    return { kind: 'moved', transaction, receipt: receipt.result, ...(amount !== undefined && { amount }) }
  }
  const cancelations: LogFilter = { address: PERMIT2, topics: [INVALIDATION, addressTopic(from)] }
  const canceled = await findLog(chain, cancelations, searched, async (logs) =>
    logs.find((log) => cancels(log, BigInt(expected.nonce))),
  )
  return canceled.kind === 'found' || (await isVoid(searched.newest))
    ? { kind: 'void', block: searched.newest }
    : { kind: 'used' }
}

/** The transfer among these that a call of the proxy with this nonce has made. */
async function settlementIn(
  chain: Chain,
  logs: readonly Log[],
  asked: Searched,
): Promise<Log | undefined | 'unknown'> {
  for (const log of logs) {
    const value = asked.amounts === 'any' ? (readTransfer(log)?.amount ?? asked.value) : asked.value
    const expected = { ...asked, value }
    if (!showsTransfer([log], expected)) continue
    const sent = await chain.transaction(log.transactionHash)
    if (sent.kind !== 'result' || sent.result === null) return 'unknown'
    if (settles(sent.result, expected)) return log
  }
  return undefined
}

/** Whether a transaction calls the proxy to move this money with this nonce. */
export function settles(
  { to, input }: { readonly to: string; readonly input: string },
  { from, nonce, value }: Pick<ExpectedTransfer, 'from' | 'nonce' | 'value'>,
): boolean {
  const call = sameAddress(to, UPTO_PROXY) ? findSettleCall(input) : undefined
  if (call === undefined) return false
  const { permit } = call.signed
  return sameAddress(permit.from, from) && BigInt(permit.nonce) === BigInt(nonce) && call.amount === value
}

/** Whether a log of Permit2 is the cancelation of a nonce. */
export function cancels({ data }: Log, nonce: bigint): boolean {
  if (data.length !== 130) return false
  const [at, mask] = [BigInt(data.slice(0, 66)), BigInt(`0x${data.slice(66)}`)]
  return at === nonce >> 8n && isInBitmap(mask, nonce)
}
