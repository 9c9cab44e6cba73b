import { sameAddress } from '../../base/address.ts'
import { DEPOSIT_MARGIN_S, DEPOSIT_VALID_S } from '../../base/money-times.ts'
import type { Refusal } from '../../base/errors.ts'
import { allowanceOf, balanceOf, isUsed } from '../../chains/evm/eip3009/token-state.ts'
import { word } from '../../chains/evm/abi.ts'
import { isNonceUsed } from '../../chains/evm/permit2/permit-outcome.ts'
import { PERMIT2 } from '../../base/permit2.ts'
import { checkApproval } from '../gas-sponsoring.ts'
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
/** Gas of an approval by signature and its failure, beside the deposit. */
const GAS_APPROVAL = 100_000n
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
  { config, signed }: Deposit,
  seconds: number,
): Refusal | undefined {
  const { amount } = signed
  if (BigInt(amount) < leastDeposit)
    return {
      code: 'invalid_batch_settlement_evm_deposit_below_min_deposit',
      detail: `the deposit is ${amount}; the offer asks for ${leastDeposit} at least`,
    }
  const approval = signed.method === 'permit2' ? signed.approval : undefined
  const validAfter = signed.method === 'permit2' ? '0' : signed.validAfter
  const ends = [validBefore(signed), BigInt(approval?.deadline ?? FAR)]
  if (ends.some((end) => end < BigInt(seconds + DEPOSIT_MARGIN_S)) || BigInt(validAfter) > BigInt(seconds))
    return { code: 'deadline_too_short', detail: 'the deposit is not valid now, or not for long enough' }
  return approval && checkApproval(approval, { payer: config.payer, token: config.token, amount })
}

type Simulated =
  | { readonly kind: 'passed' }
  /** Its signature was used, by an earlier request of its buyer or in another way: the channel shows whether it is there. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Whether the contract would take the deposit now. */
export async function simulateDeposit(on: ChannelNetwork, deposit: Deposit): Promise<Simulated> {
  const { chain, losses, signers } = await on.open()
  const suspended = await losses.refuse(deposit.config.payer, 'new', on.limits.maxGasLoss)
  if (suspended !== undefined) return { kind: 'refused', refusal: suspended }
  const [from] = signers.ready
  const sender = from === undefined ? undefined : { from, gas: gasOf(deposit.signed) }
  const data = depositCall(deposit.config, deposit.signed)
  const answer = await chain.call(CHANNELS, data, sender, SIMULATION_MS)
  if (answer.kind === 'result') return { kind: 'passed' }
  if (await isTaken(on, deposit)) return { kind: 'taken' }
  const refusal = isRevert(answer) ? await explainRevert(on, deposit) : UNREACHABLE
  return { kind: 'refused', refusal }
}

async function explainRevert(on: ChannelNetwork, { config, signed }: Deposit): Promise<Refusal> {
  const { chain } = await on.open()
  const reader = { chain, token: on.network.token.address }
  const amount = BigInt(signed.amount)
  const balance = await balanceOf(reader, config.payer)
  if (balance !== undefined && balance < amount)
    return {
      code: 'invalid_batch_settlement_evm_insufficient_balance',
      detail: 'the payer does not hold what it wants to deposit',
    }
  if (signed.method === 'permit2') {
    const allowance = await allowanceOf(reader, config.payer, PERMIT2)
    if (allowance !== undefined && allowance < amount)
      return {
        code: 'permit2_allowance_required',
        detail:
          signed.approval === undefined
            ? `the payer allows Permit2 to move ${allowance}, less than ${amount}`
            : 'the token does not accept the signed approval of Permit2',
      }
  }
  return {
    code: 'invalid_batch_settlement_evm_deposit_simulation_failed',
    detail: 'the contract would not take it',
  }
}

const UNREACHABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the network cannot be reached now; nothing was charged',
  retryAfter: 10,
}

/** Whether the signature of a deposit was used. Its payer may have used or canceled it otherwise: the balance shows that. */
export async function isTaken(on: ChannelNetwork, { id, config, signed }: Deposit): Promise<boolean> {
  const { chain } = await on.open()
  const from = config.payer
  if (signed.method === 'permit2')
    return (await isNonceUsed(chain, { from, nonce: `0x${word(BigInt(signed.nonce))}` })) === true
  const token = on.network.token.address
  return (await isUsed(chain, { token, from, nonce: depositNonce(id, signed.salt) })) === true
}

function gasOf(signed: DepositAuthorization): bigint {
  const isApproving = signed.method === 'permit2' && signed.approval !== undefined
  return isApproving ? GAS_DEPOSIT + GAS_APPROVAL : GAS_DEPOSIT
}

/** The first second in which it is not taken any more. Permit2 takes a permit in the block of its deadline too. */
function validBefore(signed: DepositAuthorization): bigint {
  return signed.method === 'permit2' ? BigInt(signed.deadline) + 1n : BigInt(signed.validBefore)
}

/** The same in milliseconds since the epoch. */
export function expiryOf(signed: DepositAuthorization): number {
  const end = validBefore(signed)
  return Number(end < FAR ? end : FAR) * 1000
}

/** The year 4000 in seconds: later is "never" to every clock we keep. */
const FAR = 64_060_588_800n

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
    gas: gasOf(signed),
    expires: expiryOf(signed),
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
