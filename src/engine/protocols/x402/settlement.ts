import { isAddress, type Address } from '../../address.ts'
import { bid, FeeOracle, GAS, GAS_CONTRACT_WALLET } from '../../chains/evm/fees.ts'
import {
  isHex,
  isKnown,
  poll,
  type Block,
  type Chain,
  type Clock,
  type RpcAnswer,
  type TransactionReceipt,
} from '../../chains/evm/rpc.ts'
import type { SignerPool } from '../../chains/evm/batch-signer.ts'
import {
  FEES_TOO_HIGH,
  SENDER_UNFUNDED,
  STUCK,
  TOO_LATE,
  type SendResult,
  type Tracked,
} from '../../chains/evm/transaction.ts'
import type { Refusal } from '../../errors.ts'
import type { SettlementAttempt, OwnTransaction } from '../../ledger/payment-record.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Network } from '../../networks.ts'
import { UNCONFIRMED, type Journal, type Settlement } from '../protocol.ts'
import {
  balanceOf,
  containsTransfer,
  settled,
  simulate,
  transferCall,
  verifyErc1271,
  type ExpectedTransfer,
  type SignedAuthorization,
} from './eip3009.ts'
import { findTransfer, isOver, onchainStatus, type ChainReader } from './onchain-status.ts'
import {
  offerOf,
  type AcceptedNetwork,
  type Listing,
  type PaymentPayload,
  type Requirements,
} from './payload.ts'
import { GasLosses, PayerLimits, type Exposure } from './payer-limits.ts'

/** One payment to be carried out: one object for its whole life. */
export interface SettlementRequest {
  readonly payload: PaymentPayload
  readonly signedBy: SignedAuthorization['signedBy']
  readonly requirements: Requirements
  readonly expected: ExpectedTransfer
}

/**
 * Made of our offer and what was signed. What a buyer has added, or echoed differently than when the payment was taken,
 * stays out: a facilitator would settle on another token for it, or list it under our name. `listed` is what was bought,
 * where a facilitator may list it.
 */
export function settlementRequestOf(
  network: AcceptedNetwork,
  { accepted, payload: { signature, authorization } }: PaymentPayload,
  listed?: Listing & { readonly url: string },
): SettlementRequest {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const flow = accepted.extra?.['paymentFlow'] === 'upfront' ? 'upfront' : 'after'
  const requirements = offerOf({ ...network, payTo: to }, value, flow)
  return {
    payload: {
      x402Version: 2,
      ...(listed === undefined ? {} : { resource: { ...listed.resource, url: listed.url } }),
      accepted: requirements,
      payload: { signature, authorization: { from, to, value, validAfter, validBefore, nonce } },
      ...(listed === undefined ? {} : { extensions: listed.extensions }),
    },
    // Until the signature says otherwise.
    signedBy: 'key',
    requirements,
    expected: { token: network.network.token.address, from, to, value: BigInt(value), nonce },
  }
}

/** Who carries authorizations out on one network: this process with a signer of its own, or a facilitator. */
export interface Settler {
  /** Whether a contract wallet accepts a signature that no key has made; `digest` is what was signed. */
  verifyContract(request: SettlementRequest, digest: Uint8Array): Promise<Refusal | undefined>
  /** Whether the token would carry the authorization out now. */
  simulate(request: SettlementRequest): Promise<Refusal | undefined>
  /** The HTTP request with it is done: what `simulate` has reserved is free again. */
  release(request: SettlementRequest): void
  settle(request: SettlementRequest, journal: Journal): Promise<Settlement>
  /**
   * Finds out what became of a payment; `dispatch` is what was sent for it, if anything was. `validBefore` and `since`,
   * the time the payment came: milliseconds since the epoch.
   */
  resolve(
    expected: ExpectedTransfer,
    dispatch: SettlementAttempt | undefined,
    validBefore: number,
    since: number,
  ): Promise<Settlement>
}

/** What it takes to settle on one network with signers of this process. */
export interface SettlementContext extends ChainReader, Clock {
  readonly token: Address
  readonly signers: SignerPool
  readonly fees: FeeOracle
  readonly payers: PayerLimits
  readonly losses: GasLosses
}

interface ContextSettings extends Clock {
  readonly network: Network
  readonly chain: Chain
  readonly signerKeys: readonly `0x${string}`[]
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** What stays while limits change. Loads viem, which is most of the process’s memory and start-up time. */
export async function openContext({
  signerKeys,
  ...settings
}: ContextSettings): Promise<Omit<SettlementContext, 'limits'>> {
  const { openAccount, Signer, SignerPool } = await import('../../chains/evm/batch-signer.ts')
  const { network, chain, now, sleep } = settings
  const token = network.token.address
  const fees = new FeeOracle(chain, now)
  // A key that is listed twice is one account: two queues would use its nonces twice.
  const accounts = new Map(signerKeys.map(openAccount).map((account) => [account.address, account]))
  return {
    networkId: network.id,
    token,
    chain,
    fees,
    signers: new SignerPool(
      Array.from(accounts.values(), (account) => new Signer({ ...settings, account, fees })),
    ),
    payers: new PayerLimits((payer) => balanceOf({ chain, token }, payer), { now, sleep }),
    losses: new GasLosses(settings),
    now,
    sleep,
  }
}

/** How long a payment’s own code may keep its buyer waiting. */
const SIMULATION_MS = 5_000
/** Seconds after which a network that cannot settle may be able to. */
const RETRY_AFTER = 10
/** How long a broadcast transaction is waited for before the buyer is told to ask again; nine looks in the two seconds of a usual block, for operators pay their node by the call. */
const PACE = { first: 15, factor: 1.6, longest: 1_000, patience: 30_000 }
/** Who has used it longer ago than this is found when the payment is resolved, by the time it came. */
const RECENT_MS = 600_000

/** Settles with signers of this process, over a node of the operator’s choice. */
export function createLocalSettler(context: SettlementContext): Settler {
  const { chain, payers } = context
  return {
    verifyContract: ({ payload: { payload } }, digest) =>
      verifyErc1271(chain, payload.authorization.from, digest, payload.signature),
    simulate: (request) => preflight(context, request),
    release: ({ expected }) => payers.release({ payer: expected.from, nonce: expected.nonce }),
    settle: (request, journal) => settle(context, request.expected, signedOf(request), journal),
    resolve: (expected, dispatch, validBefore, since) =>
      dispatch?.kind === 'own'
        ? resume(context, expected, dispatch, validBefore, since)
        : // When nothing was sent for it, an authorization that is unused now has failed, whatever its end.
          findTransfer(context, expected, dispatch === undefined ? 0 : validBefore, since),
  }
}

/** Before the work: whether this payment could be sent now and would be carried out, besides others of its payer. */
async function preflight(
  context: SettlementContext,
  request: SettlementRequest,
): Promise<Refusal | undefined> {
  const { limits, losses, payers, signers } = context
  const signed = signedOf(request)
  const exposure = exposureOf(request.expected, signed)
  const { ready } = signers
  if (ready.length === 0) return unavailable(STUCK.detail)
  const [suspended, fees] = await Promise.all([
    losses.refuse(exposure.payer, signed.signedBy, limits.maxGasLoss),
    context.fees.current(),
  ])
  if (suspended !== undefined) return suspended
  if (fees === undefined) return unavailable('the payment network cannot be reached now')
  const price = bid(fees, limits.maxFeePerGas)
  if (price === undefined) return unavailable(FEES_TOO_HIGH.detail)
  const short = await payers.reserve(exposure)
  if (short !== undefined) return short
  let refusal: Refusal | undefined = SENDER_UNFUNDED
  for (const from of ready) {
    refusal = await simulate(context, signed, { from, gas: gasFor(signed), ...price }, SIMULATION_MS)
    if (refusal !== SENDER_UNFUNDED) break
  }
  if (refusal !== undefined) payers.release(exposure)
  return refusal
}

function unavailable(detail: string): Refusal {
  return { code: 'chain_unavailable', detail: `${detail}; nothing was charged`, retryAfter: RETRY_AFTER }
}

function signedOf({ payload: { payload }, signedBy }: SettlementRequest): SignedAuthorization {
  return { ...payload, signedBy }
}

/** Gas of the transaction that carries an authorization out. */
function gasFor({ signedBy }: Pick<SignedAuthorization, 'signedBy'>): bigint {
  return signedBy === 'key' ? GAS : GAS_CONTRACT_WALLET
}

/** What a payment puts at risk for its payer. */
function exposureOf(
  { from, nonce, value }: ExpectedTransfer,
  { signedBy }: Pick<SignedAuthorization, 'signedBy'>,
): Exposure {
  return { payer: from, nonce, value, signedBy }
}

/**
 * Simulates once more right before it is sent, for the buyer’s funds may have moved while the handler ran and while
 * others were served; then waits for the block.
 */
export async function settle(
  context: SettlementContext,
  expected: ExpectedTransfer,
  signed: SignedAuthorization,
  journal: Journal,
): Promise<Settlement> {
  const validBefore = Number(signed.authorization.validBefore) * 1000
  const exposure = exposureOf(expected, signed)
  const settlement = await context.payers.whileSettling(
    exposure,
    async () => {
      const result = await context.signers.send({
        to: expected.token,
        data: transferCall(signed),
        gas: gasFor(signed),
        maxFeePerGas: context.limits.maxFeePerGas,
        expires: validBefore,
        check: (sender, timeout) => simulate(context, signed, sender, timeout),
        journal,
      })
      return follow(context, expected, validBefore, result)
    },
    () => context.now() >= validBefore,
  )
  if (settlement === 'late') return { kind: 'failed', refusal: TOO_LATE.refusal }
  if (settlement.kind === 'settled') context.payers.note(exposure, 'settled')
  return settlement
}

async function follow(
  context: SettlementContext,
  expected: ExpectedTransfer,
  validBefore: number,
  sent: SendResult,
): Promise<Settlement> {
  const since = context.now() - RECENT_MS
  const seen = (): Promise<Settlement | undefined> => onchainStatus(context, expected, since, () => false)
  switch (sent.kind) {
    case 'refused':
      return sent.refusal.code === 'invalid_exact_evm_nonce_already_used'
        ? // The node that is asked now may not have seen the use that another one has reported.
          ((await poll(context, PACE, seen)) ?? UNCONFIRMED)
        : { kind: 'failed', refusal: sent.refusal }
    case 'unsent': {
      const refusal = { code: 'chain_unavailable', detail: `${sent.detail}; nothing was charged` } as const
      // Somebody else may have carried it out.
      return (await seen()) ?? { kind: 'failed', refusal }
    }
    case 'unknown':
      // A node that answers again tells what has become of it; one that does not is asked again by the next request or by recovery.
      return resume(context, expected, sent.transaction, validBefore, since)
    case 'sent':
      return confirm(context, expected, sent.transaction, since, sent)
  }
}

/** Finds out what became of a transaction that another attempt has sent, or was about to send. */
export async function resume(
  context: SettlementContext,
  expected: ExpectedTransfer,
  transaction: OwnTransaction,
  validBefore: number,
  since: number,
): Promise<Settlement> {
  const { chain } = context
  const seen = await chain.receipt(transaction.hash)
  if (seen.kind !== 'result') return UNCONFIRMED
  if (seen.result === null) {
    // While it stands in no block, it is over with it once its time or its account nonce is gone.
    const status = (): Promise<Settlement | undefined> =>
      onchainStatus(
        context,
        expected,
        since,
        async (block) => isOver(block, validBefore) || (await isSpent(chain, transaction, block)),
      )
    const known = await status()
    if (known !== undefined) return known
    if ((await resend(chain, transaction)) === 'refused') return (await status()) ?? UNCONFIRMED
  }
  return confirm(context, expected, transaction, since)
}

/** Whether the account nonce of a transaction has gone to another one, or to itself. */
async function isSpent(chain: Chain, { signer, nonce }: OwnTransaction, block: Block): Promise<boolean> {
  const mined = isAddress(signer) ? await chain.minedNonce(signer, block.number) : undefined
  return mined?.kind === 'result' && mined.result > BigInt(nonce)
}

async function resend(chain: Chain, { raw }: OwnTransaction): Promise<'sent' | 'refused'> {
  if (!isHex(raw)) return 'sent'
  const answer = await chain.broadcast(raw)
  return answer.kind === 'refused' && !isKnown(answer.message) ? 'refused' : 'sent'
}

/** Waits for the block of a transaction, and for those above it that are asked for. */
async function confirm(
  context: SettlementContext,
  expected: ExpectedTransfer,
  transaction: OwnTransaction,
  since: number,
  tracked: Tracked = { hashes: () => [transaction.hash], mined: () => undefined },
): Promise<Settlement> {
  const { chain, limits } = context
  let mined = false
  // What has just come to a pool is in no block yet.
  await context.sleep(PACE.first)
  const found = await poll(context, PACE, async () => {
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
    return readReceipt(context, expected, seen.result, since)
  })
  if (found !== undefined && found.kind !== 'unknown') return found
  // Another process may have replaced the transaction.
  return (await onchainStatus(context, expected, since, () => false)) ?? UNCONFIRMED
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
async function readReceipt(
  context: SettlementContext,
  expected: ExpectedTransfer,
  { hash, block, succeeded, logs, gasCost }: TransactionReceipt,
  since: number,
): Promise<Settlement | undefined> {
  if (succeeded && containsTransfer(logs, expected)) return settled(context, expected, hash)
  // A node that is behind the one that has shown the receipt does not know yet.
  const status = await onchainStatus(context, expected, since, ({ number }) => number >= block)
  if (status?.kind !== 'failed' || succeeded) return status
  const payer = expected.from
  context.payers.note({ payer }, 'reverted')
  await context.losses.add({ payer, hash, gasCost }, context.limits.maxGasLoss)
  return status
}
