import { isRevert } from '../../chains/evm/json-rpc.ts'
import { SENDER_UNFUNDED } from '../../chains/evm/transaction.ts'
import { GAS, GAS_CONTRACT_WALLET } from '../../chains/evm/account.ts'
import { UPTO_PROXY } from '../../base/permit2.ts'
import { nonceWord, type SignedPermit } from '../../chains/evm/permit2/permit.ts'
import { settleCall } from '../../chains/evm/permit2/settle-call.ts'
import { BY_PERMIT, type ExpectedPayment, type TransferProof } from '../../chains/evm/transfer-proof.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import { isAddress } from '../../base/address.ts'
import type { Network } from '../../base/networks.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import { readUptoKey } from './upto-key.ts'
import { NODE_UNREACHABLE } from '../exact-evm/node-unreachable.ts'
import type { Order } from '../exact-evm/order.ts'
import { explainPermitRevert, USED } from './permit-revert.ts'

/** Gas of an approval by signature and its failure, beside the transfer. */
const GAS_APPROVAL = 100_000n

/** How a permit is carried out: the account that it names has the proxy move an amount of at most what was signed. */
export function permitOrder(chain: Chain, signed: SignedPermit, amount: bigint): Order {
  const { permit, signedBy, approval } = signed
  const data = settleCall(signed, amount)
  const gas = (signedBy === 'key' ? GAS : GAS_CONTRACT_WALLET) + (approval === undefined ? 0n : GAS_APPROVAL)
  return {
    expected: expectedOf(signed, amount),
    signedBy,
    validBefore: validBefore(permit),
    call: { to: UPTO_PROXY, data, gas },
    sender: permit.facilitator,
    simulate: async (sender, timeout) => {
      const answer = await chain.call(UPTO_PROXY, data, { ...sender, from: permit.facilitator }, timeout)
      if (answer.kind === 'result') return undefined
      if (answer.kind === 'refused' && /insufficient funds/i.test(answer.message)) return SENDER_UNFUNDED
      return isRevert(answer) ? explainPermitRevert(chain, signed, amount, answer) : NODE_UNREACHABLE
    },
    usedCode: USED,
  }
}

/** What the chain shows once an amount was moved. */
export function expectedOf({ permit }: Pick<SignedPermit, 'permit'>, amount: bigint): ExpectedPayment {
  const { token, from, to } = permit
  return { token, from, to, value: amount, nonce: nonceWord(permit), proof: BY_PERMIT }
}

/** What the chain shows once the payment of a record is carried out; undefined when it is none of scheme upto. */
export function expectedIn(
  { key, payee, amount }: PaymentRecord,
  { token }: Pick<Network, 'token'>,
  proof: TransferProof,
): ExpectedPayment | undefined {
  const signed = readUptoKey(key)
  if (signed === undefined || !isAddress(payee)) return undefined
  return { token: token.address, ...signed, to: payee, value: BigInt(amount), proof }
}

/** Permit2 takes a permit in the block of its deadline too. Milliseconds since the epoch. */
export function validBefore({ deadline }: SignedPermit['permit']): number {
  const end = BigInt(deadline) + 1n
  return Number(end < FAR ? end : FAR) * 1000
}

/** The year 4000 in seconds: later is "never" to every clock we keep. */
const FAR = 64_060_588_800n
