import { keccak256 } from 'js-sha3'
import type { Address } from '../../base/address.ts'
import { poll } from '../../base/poll.ts'
import type { Refusal } from '../../base/errors.ts'
import type { Sender, TransactionReceipt } from '../../chains/evm/chain.ts'
import { isRevert } from '../../chains/evm/json-rpc.ts'
import { SENDER_UNFUNDED } from '../../chains/evm/transaction.ts'
import type { OwnTransaction } from '../../ledger/payment-record.ts'
import type { ChannelNetwork } from './channel-network.ts'
import { CHANNELS } from '../../base/channel-contracts.ts'

/** A call of the contract, in a transaction of its own. */
export interface ChannelCall {
  readonly data: `0x${string}`
  readonly gas: bigint
  /** Milliseconds since the epoch, after which it is not sent any more. */
  readonly expires: number
  /** The payer whose fault a failure would be. */
  readonly payer?: Address
  /** Records the signed transaction before it is sent. */
  readonly record: (transaction: OwnTransaction) => Promise<void>
}

export type Outcome =
  | { readonly kind: 'mined'; readonly receipt: TransactionReceipt }
  /** A block contains it, and it has changed nothing. */
  | { readonly kind: 'reverted'; readonly receipt: TransactionReceipt }
  /** The contract would refuse it: nothing was sent. `data`: what it has reverted with. */
  | { readonly kind: 'refused'; readonly detail: string }
  /** Nothing was sent. */
  | { readonly kind: 'unsent'; readonly detail: string }
  /** It may still be mined. */
  | { readonly kind: 'unknown'; readonly hash: string }

/** While a buyer waits. */
const PACE = { first: 15, factor: 1.6, longest: 1_000, patience: 30_000 }
/**
 * For claims and payouts: longer than a signer waits for transactions of another process that a reorganization has dropped,
 * before it uses their nonces up.
 */
export const CLAIM_PATIENCE_MS = 75_000

const WOULD_FAIL: Refusal = {
  code: 'invalid_batch_settlement_evm_deposit_simulation_failed',
  detail: 'the contract would not carry it out',
}
const NO_NODE: Refusal = { code: 'chain_unavailable', detail: 'the network cannot be reached now' }

/** Checks the call, records it, sends it and waits for its block and those above it that are asked for. */
export async function sendCall(on: ChannelNetwork, call: ChannelCall): Promise<Outcome> {
  const context = await on.open()
  const { limits } = on
  const { chain, signers, budget, losses } = context
  const { data, gas, expires, payer, record } = call
  // Calls end alike, with the padding of a signature.
  const nonce = `0x${keccak256(data)}`
  const risk = `channel ${nonce} ${on.clock.now()}`
  const standing = payer === undefined ? 'known' : 'new'
  const sent = await signers.send({
    to: CHANNELS,
    data,
    gas,
    maxFeePerGas: limits.maxFeePerGas,
    expires,
    reserve: (wei) => budget.hold({ id: risk, standing, payments: 'one', wei }, limits.maxGasLoss),
    check: async (sender: Sender, timeout: number) => {
      const answer = await chain.call(CHANNELS, data, sender, timeout)
      if (answer.kind === 'result') return undefined
      if (answer.kind === 'refused' && /insufficient funds/i.test(answer.message)) return SENDER_UNFUNDED
      return isRevert(answer) ? WOULD_FAIL : NO_NODE
    },
    journal: { record },
  })
  switch (sent.kind) {
    case 'refused':
      budget.drop(risk)
      return sent.refusal === WOULD_FAIL
        ? { kind: 'refused', detail: WOULD_FAIL.detail }
        : { kind: 'unsent', detail: sent.refusal.detail }
    case 'unsent':
      budget.drop(risk)
      return sent
    case 'unknown':
    case 'sent': {
      const { hash } = sent.transaction
      const ask = sent.kind === 'sent' ? sent.receipt : () => chain.receipt(hash)
      const pace = payer === undefined ? { ...PACE, patience: CLAIM_PATIENCE_MS } : PACE
      const receipt = await poll(on.clock, pace, async () => {
        const head = limits.confirmations === 1 ? undefined : await chain.blockNumber()
        const seen = await ask()
        if (seen.kind !== 'result' || seen.result === null) return undefined
        const depth = seen.result.block + BigInt(limits.confirmations) - 1n
        return head === undefined || (head.kind === 'result' && depth <= head.result)
          ? seen.result
          : undefined
      })
      budget.drop(risk, receipt === undefined ? expires : undefined)
      if (receipt === undefined) return { kind: 'unknown', hash }
      if (sent.kind === 'sent') sent.mined(receipt)
      if (receipt.succeeded) return { kind: 'mined', receipt }
      const { gasCost } = receipt
      await losses.add({ payer, hash: receipt.hash, gasCost, nonce, standing }, limits.maxGasLoss)
      return { kind: 'reverted', receipt }
    }
  }
}
