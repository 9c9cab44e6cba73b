import { sameAddress } from '../../base/address.ts'
import { DEPOSIT_MARGIN_S, DEPOSIT_VALID_S } from '../../base/money-times.ts'
import type { Refusal } from '../../base/errors.ts'
import { balanceOf, isUsed } from '../../chains/evm/eip3009/token-state.ts'
import { blockOf } from '../../chains/evm/finality.ts'
import { isRevert } from '../../chains/evm/json-rpc.ts'
import type { OwnTransaction } from '../../ledger/payment-record.ts'
import { recoverSigner, splitSignature } from '../../chains/evm/signature.ts'
import { depositCall } from './channel-calls.ts'
import { channelOf, DEPOSITED } from './channel-events.ts'
import { distrustMirror } from './channel-mirror.ts'
import type { ChannelNetwork } from './channel-network.ts'
import { sendCall, type Outcome } from './channel-transaction.ts'
import { CHANNELS } from '../../base/channel-contracts.ts'
import { noteMined, refresh } from './refresh-mirror.ts'
import { recordDeposit, type Deposit } from './sent-deposit.ts'
import { depositDigest, depositNonce, type DepositAuthorization } from './typed-data.ts'

/** Gas of a deposit: the first one of a network takes 138,000. */
const GAS_DEPOSIT = 220_000n
const SIMULATION_MS = 5_000

/** Whether the payer itself has signed the deposit, with a key. */
export function isSignedByPayer(on: ChannelNetwork, { id, config, signed }: Deposit): boolean {
  const split = splitSignature(signed.signature)
  if (split === undefined) return false
  const signer = recoverSigner(depositDigest(on.network, config, id, signed), split)
  return signer !== undefined && sameAddress(signer, config.payer)
}

/** How long a deposit has to be valid, in seconds, where payments are for so many. */
export function depositSeconds(timeoutSeconds: number): number {
  return Math.max(timeoutSeconds, DEPOSIT_VALID_S)
}

/** Whether a deposit is large enough and valid long enough; `seconds`: now, since the epoch. */
export function checkDeposit(
  { terms: { leastDeposit } }: ChannelNetwork,
  { amount, validAfter, validBefore }: DepositAuthorization,
  seconds: number,
): Refusal | undefined {
  if (BigInt(amount) < leastDeposit)
    return {
      code: 'invalid_batch_settlement_evm_deposit_below_min_deposit',
      detail: `the deposit is ${amount}; the offer asks for ${leastDeposit} at least`,
    }
  if (BigInt(validBefore) < BigInt(seconds + DEPOSIT_MARGIN_S) || BigInt(validAfter) > BigInt(seconds))
    return { code: 'deadline_too_short', detail: 'the deposit is not valid now, or not for long enough' }
  return undefined
}

/** Whether the contract would take the deposit now; also passes when it has taken it already. */
export async function simulateDeposit(on: ChannelNetwork, deposit: Deposit): Promise<Refusal | undefined> {
  const { chain, losses, signers } = await on.open()
  const suspended = await losses.refuse(deposit.config.payer, 'new', on.limits.maxGasLoss)
  if (suspended !== undefined) return suspended
  const [from] = signers.ready
  const sender = from === undefined ? undefined : { from, gas: GAS_DEPOSIT }
  const data = depositCall(deposit.config, deposit.signed)
  const answer = await chain.call(CHANNELS, data, sender, SIMULATION_MS)
  if (answer.kind === 'result' || (await isTaken(on, deposit))) return undefined
  if (!isRevert(answer)) return UNREACHABLE
  const token = on.network.token.address
  const balance = await balanceOf({ chain, token }, deposit.config.payer)
  return balance !== undefined && balance < BigInt(deposit.signed.amount)
    ? {
        code: 'invalid_batch_settlement_evm_insufficient_balance',
        detail: 'the payer does not hold what it wants to deposit',
      }
    : {
        code: 'invalid_batch_settlement_evm_deposit_simulation_failed',
        detail: 'the contract would not take it',
      }
}

const UNREACHABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the network cannot be reached now; nothing was charged',
  retryAfter: 10,
}

export async function isTaken(on: ChannelNetwork, { id, config, signed }: Deposit): Promise<boolean> {
  const { chain } = await on.open()
  const token = on.network.token.address
  return (await isUsed(chain, { token, from: config.payer, nonce: depositNonce(id, signed.salt) })) === true
}

export type Deposited =
  | { readonly kind: 'taken'; readonly transaction: string }
  | { readonly kind: 'failed'; readonly refusal: Refusal }

/**
 * Sends a deposit. Before that, it is recorded, and the mirror of the channel is distrusted: whatever becomes of this
 * process, the next payment of the channel reads it from the chain.
 */
export function sendDeposit(
  on: ChannelNetwork,
  { id, config, signed }: Deposit,
  record: (transaction: OwnTransaction) => Promise<void>,
): Promise<Outcome> {
  return sendCall(on, {
    data: depositCall(config, signed),
    gas: GAS_DEPOSIT,
    expires: Number(signed.validBefore) * 1000,
    payer: config.payer,
    record: async (transaction) => {
      await distrustMirror(on.ledger, on.network.id, id)
      await record(transaction)
    },
  })
}

/** Brings a deposit into its channel. */
export async function makeDeposit(on: ChannelNetwork, deposit: Deposit): Promise<Deposited> {
  const { id } = deposit
  const outcome = await sendDeposit(on, deposit, ({ hash }) => recordDeposit(on, deposit, { hash }))
  switch (outcome.kind) {
    case 'mined': {
      const { receipt } = outcome
      const log = receipt.logs.find(
        (each) =>
          sameAddress(each.address, CHANNELS) && each.topics[0] === DEPOSITED && channelOf(each) === id,
      )
      if (log === undefined) return failed('the deposit has left no trace')
      await recordDeposit(on, deposit, { hash: receipt.hash, ...blockOf(receipt) })
      const balance = BigInt(`0x${log.data.slice(66, 130)}`).toString()
      await noteMined(on, id, { balance, readAt: on.clock.now() })
      return { kind: 'taken', transaction: receipt.hash }
    }
    case 'refused':
    case 'reverted':
      // An earlier request of the same buyer may have brought it in.
      if (await isTaken(on, deposit)) {
        await refresh(on, id)
        return { kind: 'taken', transaction: '' }
      }
      return failed('the contract did not take the deposit; nothing was charged')
    case 'unsent':
      return {
        kind: 'failed',
        refusal: { code: 'chain_unavailable', detail: `${outcome.detail}; nothing was charged` },
      }
    case 'unknown':
      return {
        kind: 'failed',
        refusal: {
          code: 'chain_unavailable',
          detail: `the deposit was sent in transaction ${outcome.hash} and is in no block yet; nothing was charged`,
        },
      }
  }
}

function failed(detail: string): Deposited {
  return {
    kind: 'failed',
    refusal: { code: 'invalid_batch_settlement_evm_deposit_transaction_failed', detail },
  }
}
