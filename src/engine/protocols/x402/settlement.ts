import { isAddress } from '../../address.ts'
import type { OwnTransaction } from '../../ledger/entry.ts'
import type { Journal, Settlement } from '../protocol.ts'
import {
  isKnown,
  type Block,
  type Chain,
  type RpcAnswer,
  type TransactionReceipt,
} from '../../chains/evm/rpc.ts'
import type { Bench, Lookout } from './bench.ts'
import { GAS, GAS_CONTRACT_WALLET } from '../../chains/evm/fees.ts'
import { isOver, outcomeOf, settled, UNCONFIRMED } from './outcome.ts'
import { TOO_LATE, type SendResult, type Tracked } from '../../chains/evm/transaction.ts'
import type { Exposure } from './payer-limits.ts'
import { simulate } from './simulation.ts'
import { showsMovement, transferCall, type Movement, type SignedAuthorization } from './token.ts'

/** How long a broadcast transaction is waited for before the buyer is told to ask again. */
const PATIENCE_MS = 30_000
const FIRST_POLL_MS = 15
const LONGEST_POLL_MS = 1_000
/** Nine looks within the two seconds of a usual block: operators pay their node by the call. */
const POLL_FACTOR = 1.6

/** Who has used it longer ago than this is found when the payment is resolved, by the time it came. */
const RECENT_MS = 600_000

/**
 * Simulates once more right before it is sent, for the buyer’s funds may have moved while the handler ran and while
 * others were served; then waits for the block.
 */
export async function settle(
  bench: Bench,
  movement: Movement,
  signed: SignedAuthorization,
  journal: Journal,
): Promise<Settlement> {
  const validBefore = Number(signed.authorization.validBefore) * 1000
  const settlement = await bench.payers.whileSettling(
    exposureOf(movement, signed),
    async () => {
      const result = await bench.signers.send({
        to: movement.token,
        data: transferCall(signed),
        gas: gasFor(signed),
        maxFeePerGas: bench.limits.maxFeePerGas,
        expires: validBefore,
        check: (sender, timeout) => simulate(bench, signed, sender, timeout),
        journal,
      })
      return follow(bench, movement, validBefore, result)
    },
    () => bench.now() >= validBefore,
  )
  if (settlement === 'late') return { kind: 'failed', refusal: TOO_LATE.refusal }
  if (settlement.kind === 'settled') bench.payers.note(exposureOf(movement, signed), 'settled')
  return settlement
}

/** Gas of the transaction that carries an authorization out. */
export function gasFor({ signedBy }: Pick<SignedAuthorization, 'signedBy'>): bigint {
  return signedBy === 'key' ? GAS : GAS_CONTRACT_WALLET
}

/** What a payment puts at risk for its payer. */
export function exposureOf(
  { from, nonce, value }: Movement,
  { signedBy }: Pick<SignedAuthorization, 'signedBy'>,
): Exposure {
  return { payer: from, nonce, value, signedBy }
}

async function follow(
  bench: Bench,
  movement: Movement,
  validBefore: number,
  sent: SendResult,
): Promise<Settlement> {
  const since = bench.now() - RECENT_MS
  switch (sent.kind) {
    case 'refused':
      return sent.refusal.code === 'invalid_exact_evm_nonce_already_used'
        ? // The node that is asked now may not have seen the use that another one has told of.
          poll(bench, () => outcomeOf(bench, movement, since, () => false))
        : { kind: 'failed', refusal: sent.refusal }
    case 'unsent': {
      // Somebody else may have carried it out.
      const seen = await outcomeOf(bench, movement, since, () => false)
      const refusal = { code: 'chain_unavailable', detail: `${sent.detail}; nothing was charged` } as const
      return seen ?? { kind: 'failed', refusal }
    }
    case 'unknown':
      // A node that answers again tells what has become of it; one that does not is asked by whoever comes next.
      return resume(bench, movement, sent.transaction, validBefore, since)
    case 'sent':
      return conclude(bench, movement, sent.transaction, since, sent)
  }
}

/** Finds out what became of a transaction that another attempt has sent, or was about to send. */
export async function resume(
  bench: Bench,
  movement: Movement,
  transaction: OwnTransaction,
  validBefore: number,
  since: number,
): Promise<Settlement> {
  const { chain } = bench
  const seen = await chain.receipt(transaction.hash)
  if (seen.kind !== 'result') return UNCONFIRMED
  if (seen.result === null) {
    // While it stands in no block, it is over with it once its time or its account nonce is gone.
    const outcome = (): Promise<Settlement | undefined> =>
      outcomeOf(
        bench,
        movement,
        since,
        async (block) => isOver(block, validBefore) || (await isSpent(chain, transaction, block)),
      )
    const known = await outcome()
    if (known !== undefined) return known
    if ((await resend(chain, transaction)) === 'refused') return (await outcome()) ?? UNCONFIRMED
  }
  return conclude(bench, movement, transaction, since)
}

/** Whether the account nonce of a transaction has gone to another one, or to itself. */
async function isSpent(chain: Chain, { signer, nonce }: OwnTransaction, block: Block): Promise<boolean> {
  const mined = isAddress(signer) ? await chain.minedNonce(signer, block.number) : undefined
  return mined?.kind === 'result' && mined.result > BigInt(nonce)
}

async function resend(chain: Chain, { raw }: OwnTransaction): Promise<'sent' | 'refused'> {
  if (raw === undefined || !isHexText(raw)) return 'sent'
  const answer = await chain.broadcast(raw)
  return answer.kind === 'refused' && !isKnown(answer.message) ? 'refused' : 'sent'
}

/** Waits for the block of a transaction, and for those above it that are asked for. */
async function conclude(
  bench: Bench,
  movement: Movement,
  transaction: OwnTransaction,
  since: number,
  tracked: Tracked = { hashes: () => [transaction.hash], mined: () => undefined },
): Promise<Settlement> {
  const { chain, limits } = bench
  let mined = false
  // What has just come to a pool is in no block yet.
  await bench.sleep(FIRST_POLL_MS)
  const found = await poll(bench, async () => {
    // Before the receipt: what is there afterwards lies as deep as this says.
    const head = limits.confirmations === 1 ? undefined : await chain.blockNumber()
    const seen = await findReceipt(chain, tracked.hashes())
    if (seen.kind !== 'result') return undefined
    // A block that is undone takes its transactions with it, and not every node puts them back into its pool.
    if (mined && seen.result === null) await resend(chain, transaction)
    mined = seen.result !== null
    if (seen.result === null) return undefined
    const counts =
      head === undefined ||
      (head.kind === 'result' && seen.result.block + BigInt(limits.confirmations) - 1n <= head.result)
    if (!counts) return undefined
    tracked.mined(seen.result)
    return judge(bench, movement, seen.result, since)
  })
  // Another process may have replaced the transaction.
  return found.kind === 'unknown' ? ((await outcomeOf(bench, movement, since, () => false)) ?? found) : found
}

async function findReceipt(
  chain: Chain,
  hashes: readonly string[],
): Promise<RpcAnswer<TransactionReceipt | null>> {
  let last: RpcAnswer<TransactionReceipt | null> = { kind: 'unreachable' }
  for (const hash of hashes) {
    last = await chain.receipt(hash)
    if (last.kind === 'result' && last.result !== null) return last
  }
  return last
}

/** Our own revert may mean that somebody else was faster, or another transaction of ours. */
async function judge(
  bench: Bench,
  movement: Movement,
  { hash, block, succeeded, logs, gasCost }: TransactionReceipt,
  since: number,
): Promise<Settlement | undefined> {
  if (succeeded && showsMovement(logs, movement)) return settled(bench, movement, hash)
  // A node that is behind the one that has shown the receipt does not know yet.
  const outcome = await outcomeOf(bench, movement, since, ({ number }) => number >= block)
  if (outcome?.kind !== 'failed' || succeeded) return outcome
  const payer = movement.from
  bench.payers.note({ payer }, 'reverted')
  await bench.losses.add({ payer, hash, gasCost }, bench.limits.maxGasLoss)
  return outcome
}

/**
 * Finds out what became of a payment that somebody else may carry out: failed only when nobody can any more. `end`:
 * milliseconds since the epoch; in a block from then on, an authorization that is unused stays so.
 */
export async function findMovement(
  lookout: Lookout,
  movement: Movement,
  end: number,
  since: number,
): Promise<Settlement> {
  return (await outcomeOf(lookout, movement, since, (block) => isOver(block, end))) ?? UNCONFIRMED
}

async function poll({ now, sleep }: Bench, look: () => Promise<Settlement | undefined>): Promise<Settlement> {
  const patience = now() + PATIENCE_MS
  for (let wait = FIRST_POLL_MS; now() < patience; wait = Math.min(wait * POLL_FACTOR, LONGEST_POLL_MS)) {
    const settlement = await look()
    if (settlement !== undefined) return settlement
    await sleep(wait)
  }
  return UNCONFIRMED
}

function isHexText(text: string): text is `0x${string}` {
  return /^0x[0-9a-fA-F]+$/.test(text)
}
