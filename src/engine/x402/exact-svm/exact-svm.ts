import { SVM_LATEST_MS } from '../../base/money-times.ts'
import type { ErrorCode, Refusal } from '../../base/errors.ts'
import { CANNOT_LOOK } from '../../chains/evm/finality.ts'
import { svmPayerKey } from '../../chains/svm/payer-key.ts'
import { isSignedBy } from '../../base/svm-signature.ts'
import { otherArguments } from '../../payment/call-price.ts'
import type { Settlement } from '../../payment/settlement.ts'
import type { PaymentPayload } from '../payload.ts'
import { matches, requirementsOf, type Requirements } from '../requirements.ts'
import type { Scheme, SchemePayment } from '../scheme.ts'
import type { RecentBlockhash } from './recent-blockhash.ts'
import { svmKey } from './svm-key.ts'
import { svmOfferOf, type AcceptedSvmNetwork } from './svm-offer.ts'
import { readSvm, type SvmPayload } from './svm-payload.ts'
import { svmRequestOf, type SvmSettler } from './svm-settler.ts'
import type { SvmTransfer } from './transfer.ts'

/** An accepted Solana network with its settler. */
export interface SettleableSvmNetwork extends AcceptedSvmNetwork {
  readonly settler: SvmSettler
  /** The associated token account of the payee, in the token of the network. */
  readonly tokenAccount: string
  /** Our accounts that pay fees; undefined where a facilitator pays, which knows its own. */
  readonly feePayers: readonly string[] | undefined
  /** Undefined where there is no node. */
  readonly recentBlockhash: RecentBlockhash | undefined
  readonly now: () => number
}

interface SvmNetworks {
  /** In order of preference. */
  readonly offered: readonly SettleableSvmNetwork[]
  /** Every network with settlement, offered or not: an accepted payment is finished on its network. */
  readonly reachable: readonly SettleableSvmNetwork[]
}

/** Scheme `exact` on Solana: the buyer signs a transfer of the price, and we, or a facilitator, pay the fee and send it. */
export function exactSvmScheme({ offered, reachable }: SvmNetworks): Scheme {
  const networkOf = (id: string): SettleableSvmNetwork | undefined =>
    reachable.find(({ network }) => network.id === id)
  return {
    name: 'exact',
    offers: offered.map(svmOfferOf),
    recent: () => offered.flatMap(({ recentBlockhash }) => recentBlockhash?.current() ?? []),
    knows: (network) => networkOf(network) !== undefined,
    payerKey: svmPayerKey,
    decode: (payload) => {
      const network = networkOf(payload.accepted.network)
      if (network === undefined) throw new Error(`${payload.accepted.network} is not settled here`)
      const read = readSvm(payload)
      return read.kind === 'payload'
        ? { kind: 'payment', payment: svmPayment(payload, read.payload, network) }
        : read
    },
    resolve: async (record) => (await networkOf(record.network)?.settler.resolve(record)) ?? NOT_CONFIGURED,
    resend: async (record) => networkOf(record.network)?.settler.resend?.(record),
    // A block that most of the stake has voted for has never been undone: receipts on Solana name none to look at.
    lookAtBlocks: async () => CANNOT_LOOK,
  }
}

const NOT_CONFIGURED: Settlement = {
  kind: 'unknown',
  detail: 'the network of this payment is not configured here any more',
}

const NO_OFFER_OF_OURS = '"accepted" is not one of the offers made here'

/** One signed transaction of scheme exact on one network. */
function svmPayment(
  { accepted: echoed }: PaymentPayload,
  payment: SvmPayload,
  accepted: SettleableSvmNetwork,
): SchemePayment {
  const { network, settler, feePayers } = accepted
  const { transaction, transfer, digest } = payment
  const validBefore = accepted.now() + SVM_LATEST_MS
  let request = svmRequestOf({ ...accepted, payTo: echoed.payTo }, payment, validBefore)
  return {
    key: svmKey(network, payment),
    network: network.id,
    asset: network.token.address,
    payee: echoed.payTo,
    authorizationHash: Buffer.from(digest, 'hex').toString('base64url'),
    authorizedAmount: transfer.amount,
    // The token moves what was signed, neither more nor less.
    amountFor: () => transfer.amount,
    check: ({ endpoint, price, settle, listed, timeoutSeconds = accepted.timeoutSeconds }) => {
      // The transaction names the fee payer, and an offer of another process or of a moment ago may have named another one.
      const terms = { ...accepted, timeoutSeconds, feePayer: transfer.feePayer }
      const offer = requirementsOf(svmOfferOf(terms), price, settle)
      if (
        feePayers?.includes(transfer.feePayer) === false ||
        namedFeePayer(echoed, transfer.feePayer) === 'another'
      )
        return refuse(
          'invalid_exact_svm_fee_payer_mismatch',
          `the fee payer of the transaction is ${transfer.feePayer}; the offer names ${accepted.feePayer}`,
        )
      if (!matches(echoed, offer, (a, b) => a === b))
        return refuse(
          'no_matching_requirements',
          otherArguments(endpoint, echoed.amount, offer.amount) ?? NO_OFFER_OF_OURS,
        )
      request = svmRequestOf(accepted, payment, validBefore, { settle, listed })
      return checkTransfer(transfer, offer, accepted)
    },
    verify: async () =>
      isSignedBy(transfer.payer, transaction.signatures[1] ?? new Uint8Array(), transaction.message)
        ? { kind: 'verified', payer: transfer.payer, account: 'key', validBefore }
        : {
            kind: 'refused',
            refusal: refuse(
              'invalid_exact_svm_payload_signature_invalid',
              'the owner of the tokens has not signed this transaction',
            ),
          },
    simulate: async () => {
      const refusal = await settler.simulate(request)
      // The next 402 must not name the hash again that has just been refused.
      if (refusal?.code === 'invalid_exact_svm_blockhash_expired') await accepted.recentBlockhash?.refresh()
      return refusal
    },
    release: () => settler.release(request),
    settle: (_amount, journal) => settler.settle(request, journal),
  }
}

/** Whether the offer that a payment repeats names another fee payer than its transaction has. */
function namedFeePayer({ extra }: PaymentPayload['accepted'], feePayer: string): 'another' | 'the same' {
  const named = extra?.['feePayer']
  return named === undefined || named === feePayer ? 'the same' : 'another'
}

/** Whether what was signed fits the offer. */
function checkTransfer(
  { mint, amount, destination, decimals }: SvmTransfer,
  { asset, amount: asked }: Requirements,
  { tokenAccount, network }: SettleableSvmNetwork,
): Refusal | undefined {
  const { decimals: places } = network.token
  if (mint !== asset || decimals !== places)
    return refuse(
      'invalid_exact_svm_payload_mint_mismatch',
      `the transaction transfers ${mint} with ${decimals} decimals; the offer asks for ${asset} with ${places}`,
    )
  if (destination !== tokenAccount)
    return refuse(
      'invalid_exact_svm_payload_recipient_mismatch',
      'the transaction pays another account than the associated token account of payTo',
    )
  if (amount.toString() !== asked)
    return refuse(
      'invalid_exact_svm_payload_amount_mismatch',
      `the transaction transfers ${amount}; the offer asks for ${asked}`,
    )
  return undefined
}

function refuse(code: ErrorCode, detail: string): Refusal {
  return { code, detail }
}
