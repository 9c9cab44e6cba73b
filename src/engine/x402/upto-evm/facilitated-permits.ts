import type { Refusal } from '../../base/errors.ts'
import type { Network } from '../../base/networks.ts'
import { GAS_SPONSORING, PERMIT2, UPTO_PROXY } from '../../base/permit2.ts'
import { allowanceOf, balanceOf } from '../../chains/evm/eip3009/token-state.ts'
import { nonceWord } from '../../chains/evm/permit2/permit.ts'
import { isNonceUsed } from '../../chains/evm/permit2/permit-outcome.ts'
import { BY_PERMIT_OF_OTHERS, type ExpectedPayment } from '../../chains/evm/transfer-proof.ts'
import type { Settlement } from '../../payment/settlement.ts'
import { askToVerify, NO_FACILITATOR } from '../facilitators/ask-facilitators.ts'
import type { Facilitator, FacilitatorRequest } from '../facilitators/facilitator-client.ts'
import { verifyErc1271 } from '../exact-evm/contract-wallet.ts'
import type { FacilitatedSettlement } from '../exact-evm/exact.ts'
import { resolveByFacilitator, settleByFacilitator } from '../exact-evm/facilitated-transfer.ts'
import type { ChainReader } from '../exact-evm/onchain-status.ts'
import { reasonsFor, verifyRefusal } from './permit-reasons.ts'
import { expectedIn, expectedOf, validBefore } from './permit-order.ts'
import type { PermitRequest, PermitSettlement } from './permit-settlement.ts'

/**
 * Facilitators carry permits out: the one whose account a buyer has named verifies the most that it allows, and settles
 * what the work has cost. One that moves another amount is given no other permit while this process runs.
 */
export function facilitatedPermits(network: Network, theirs: FacilitatedSettlement): PermitSettlement {
  const { accounts, reader, report } = theirs
  const verify = async (request: PermitRequest): Promise<Refusal | undefined> => {
    const named = accounts.settlerOf(request.signed.permit.facilitator)
    if (named === undefined) return NO_FACILITATOR
    const verified = await askToVerify(
      [named],
      requestFor(request, request.requirements.amount),
      verifyRefusal,
    )
    return verified.kind === 'refused' ? verified.refusal : undefined
  }
  /** What was moved is what the receipt says; another amount than was asked for is told to the operator. */
  const compared = (settlement: Settlement, asked: ExpectedPayment, by: Facilitator): Settlement => {
    if (settlement.kind !== 'settled' || settlement.receipt.amount === asked.value.toString())
      return settlement
    accounts.distrust(by)
    const { amount, transaction } = settlement.receipt
    const word = reader === undefined ? 'says that it has moved' : 'has moved'
    report(
      `x402: facilitator ${new URL(by.url).host} ${word} ${amount} instead of ${asked.value} atomic units in ${transaction} (${network.id}): it settles nothing more by upto until the next start`,
    )
    return settlement
  }
  return {
    get offered() {
      return accounts.offered?.account
    },
    get approvals() {
      return accounts.offered?.approvals ?? 'not sent'
    },
    mayName: (account) => accounts.all.includes(account),
    verifyContract: async (request, digest) => {
      const { permit, signature } = request.signed
      if (reader !== undefined) return verifyErc1271(reader.chain, permit.from, digest, signature)
      const refusal = await verify(request)
      // A permit that cannot be carried out now does not prove who has signed it.
      return refusal === undefined || refusal.code === 'invalid_permit2_signature' ? refusal : NO_FACILITATOR
    },
    simulate: async (request) => {
      const refusal = await verify(request)
      return refusal === undefined
        ? { kind: 'ready', release: () => undefined }
        : { kind: 'refused', refusal }
    },
    settle: async (request, amount, journal) => {
      const { permit } = request.signed
      const by = accounts.settlerOf(permit.facilitator)
      if (by === undefined) return { kind: 'failed', refusal: NO_FACILITATOR }
      const expected = { ...expectedOf(request.signed, amount), proof: BY_PERMIT_OF_OTHERS }
      const settlement = await settleByFacilitator(
        // Nobody else can settle it.
        { ...theirs, facilitators: [by] },
        { kind: 'verified', by },
        {
          request: requestFor(request, amount.toString()),
          expected,
          validBefore: validBefore(permit),
          reasons: reasonsFor(reader, BigInt(permit.amount)),
          isRefusedOnChain: (node) => isRefusedOnChain(node, request, amount),
        },
        journal,
      )
      return compared(settlement, expected, by)
    },
    resolve: async (record) => {
      const expected = expectedIn(record, network, BY_PERMIT_OF_OTHERS)
      if (expected === undefined) return NOT_OURS
      const { dispatch, failedIn, createdAt: since, validBefore: deadline, authorizedAmount, amount } = record
      const end = dispatch === undefined && failedIn === undefined ? 0 : deadline
      const reasons = reasonsFor(reader, BigInt(authorizedAmount ?? amount))
      const settlement = await resolveByFacilitator(theirs, expected, { dispatch, end, since }, reasons)
      const by = theirs.facilitators.find(
        ({ url }) => dispatch?.kind === 'facilitator' && url === dispatch.url,
      )
      return by === undefined ? settlement : compared(settlement, expected, by)
    },
  }
}

/** What a facilitator is sent: made from our offer and what was signed, since members that a buyer has added are not ours. */
function requestFor(
  { signed: { permit, signature }, approval, requirements, listed }: PermitRequest,
  amount: string,
): FacilitatorRequest & { readonly operation: string | undefined } {
  const { from, token, amount: most, nonce, deadline, to, facilitator, validAfter } = permit
  const sponsored = approval === undefined ? {} : { [GAS_SPONSORING]: approval }
  return {
    payload: {
      x402Version: 2,
      ...(listed === undefined ? {} : { resource: { ...listed.resource, url: listed.url } }),
      accepted: requirements,
      payload: {
        signature,
        permit2Authorization: {
          permitted: { token, amount: most },
          from,
          spender: UPTO_PROXY,
          nonce,
          deadline,
          witness: { to, facilitator, validAfter },
        },
      },
      extensions: { ...listed?.extensions, ...sponsored },
    },
    requirements: { ...requirements, amount },
    operation: listed?.operation,
  }
}

/** Use, balance and allowance are read at one block: several nodes may be behind one address. */
async function isRefusedOnChain(
  { chain }: ChainReader,
  { signed: { permit, approval } }: PermitRequest,
  amount: bigint,
): Promise<boolean> {
  const head = await chain.block('latest')
  if (head.kind !== 'result') return false
  const { number } = head.result
  const [used, balance, allowance] = await Promise.all([
    isNonceUsed(chain, { from: permit.from, nonce: nonceWord(permit) }, number),
    balanceOf({ chain, token: permit.token }, permit.from, number),
    allowanceOf({ chain, token: permit.token }, permit.from, PERMIT2, number),
  ])
  if (used !== false || balance === undefined || allowance === undefined) return false
  return balance < amount || (approval === undefined && allowance < amount)
}

const NOT_OURS: Settlement = { kind: 'unknown', detail: 'this is no payment of scheme upto' }
