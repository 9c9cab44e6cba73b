import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Address, isAddress } from '../../engine/base/address.ts'
import type { ChannelConfig } from '../../engine/base/channel-config.ts'
import { digestJson, isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { formatShort, toMicros } from '../../engine/base/money.ts'
import { findNetwork, type Network } from '../../engine/base/networks.ts'
import { type PrivateKeyAccount, privateKeyToAccount } from '../../vendor/viem-accounts.ts'
import type { BuyerRuntime } from '../buyer-runtime.ts'
import { Turns } from '../mcp/turns.ts'
import { lockFile } from '../state-file.ts'
import { configOf, type ChannelState, type ChannelTerms, type SignedDeposit } from './channel.ts'
import { amountIn, listChannels, readChannel, writeChannel } from './channel-file.ts'
import { readBalance } from './read-balance.ts'
import { channelIdOf, signDeposit, signVoucher } from './sign-voucher.ts'

/** Decides on a deposit. Amounts are in atomic units. */
export type DepositRule = (asked: {
  /** The least that the shop takes and the call needs. */
  readonly least: bigint
  /** Deposited before, and not charged. */
  readonly unspent: bigint
}) =>
  | { readonly kind: 'deposit'; readonly amount: bigint }
  /** The sentence says what to do. */
  | { readonly kind: 'refused'; readonly reason: string }

/** An offer of scheme `batch-settlement`. */
export interface ChannelOffer {
  readonly network: Network
  readonly payTo: Address
  /** Atomic units: the most that the call may cost. */
  readonly amount: bigint
  readonly timeoutSeconds: number
  readonly channel: ChannelTerms
}

export type SignedVoucher =
  | {
      readonly kind: 'signed'
      readonly payer: Address
      readonly payload: JsonObject
      readonly deposit: bigint | undefined
    }
  | { readonly kind: 'unsigned'; readonly reason: string }

/** What an answer has shown of a channel. */
export type Noted =
  | { readonly kind: 'noted' }
  /** The channel stands elsewhere: another voucher is needed. `isSpent`: the one that was sent was charged before. */
  | { readonly kind: 'corrected'; readonly isSpent: boolean }

interface ChannelsOptions {
  /** Of one wallet at one shop. */
  readonly folder: string
  readonly key: `0x${string}`
  readonly rule: DepositRule
  /** Endpoints by chain id. */
  readonly rpcUrl: (chainId: number) => string | undefined
  readonly runtime: BuyerRuntime
}

/** How long another process may work on a call. */
const PATIENCE_MS = 60_000
/** A node may show a deposit this long after the last block that could take it. */
const LANDED_S = 60n

/**
 * The channels of one wallet at one shop, in files that several processes share. What a shop says of a channel is taken only
 * as far as it was signed: it can neither charge more, nor have more signed or deposited, than was decided here.
 */
export class Channels {
  readonly #options: ChannelsOptions
  readonly #account: PrivateKeyAccount
  readonly #turns = new Turns()

  constructor(options: ChannelsOptions) {
    this.#options = options
    this.#account = privateKeyToAccount(options.key)
    mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  }

  /** Runs one call at a time, over all processes: the next voucher follows from what the last one was charged. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.take(async () => {
      const { folder, runtime } = this.#options
      const release = await lockFile(join(folder, 'calls'), PATIENCE_MS, runtime)
      try {
        return await work()
      } finally {
        release()
      }
    })
  }

  /** Deposited in all channels, and not charged. Atomic units. */
  unspent(): bigint {
    return listChannels(this.#options.folder).reduce((sum, state) => sum + unspentOf(state), 0n)
  }

  /** Signs the voucher of a call, with a deposit where the channel does not hold enough. Must be called alone. */
  async sign(offer: ChannelOffer): Promise<SignedVoucher> {
    const { network, amount } = offer
    const config = configOf(this.#account.address, offer, offer.channel)
    const file = this.#fileOf(network, config)
    const channelId = await channelIdOf(config, network)
    const state = await this.#settled(readChannel(file), network, channelId)
    const ceiling = state.charged + amount
    const deposit = await this.#deposit(offer, channelId, state, ceiling)
    if (deposit.kind === 'refused') return { kind: 'unsigned', reason: deposit.reason }
    const { signed: added } = deposit
    const isNew = added !== undefined && added !== state.pending
    writeChannel(file, {
      ...state,
      signed: largest(state.signed, ceiling),
      deposited: state.deposited + (isNew ? added.amount : 0n),
      ...(added && { pending: added }),
    })
    const signature = await signVoucher(this.#account, network, { channelId, ceiling })
    const voucher = { channelId, maxClaimableAmount: String(ceiling), signature }
    const channelConfig = { ...config }
    const payload =
      added === undefined
        ? { type: 'voucher', channelConfig, voucher }
        : { type: 'deposit', channelConfig, voucher, deposit: depositFields(added) }
    return { kind: 'signed', payer: config.payer, payload, deposit: added?.amount }
  }

  /** Signs that what is left of a channel is wanted back. Must be called alone. */
  async signRefund(
    offer: ChannelOffer,
  ): Promise<{ readonly state: ChannelState; readonly payload: JsonObject }> {
    const { network } = offer
    const config = configOf(this.#account.address, offer, offer.channel)
    const state = readChannel(this.#fileOf(network, config))
    const channelId = await channelIdOf(config, network)
    const signature = await signVoucher(this.#account, network, { channelId, ceiling: state.charged })
    const voucher = { channelId, maxClaimableAmount: String(state.charged), signature }
    return { state, payload: { type: 'refund', channelConfig: { ...config }, voucher } }
  }

  /** Takes what was given back from the channel of a refund that was carried out. */
  noteRefund({ network, payTo, channel }: ChannelOffer, amount: bigint): void {
    const file = this.#fileOf(network, configOf(this.#account.address, { network, payTo }, channel))
    const state = readChannel(file)
    const less = (sum: bigint): bigint => largest(sum - amount, state.charged)
    writeChannel(file, { ...state, balance: less(state.balance), deposited: less(state.deposited) })
  }

  /**
   * Keeps what an answer to a payment says of its channel. `payment`: as it was sent; `response`: of its settlement;
   * `required`: the 402. Must be called alone.
   */
  async note(
    payment: JsonObject,
    {
      response,
      required,
    }: { readonly response: JsonObject | undefined; readonly required: JsonObject | undefined },
  ): Promise<Noted> {
    const sent = readSent(payment)
    if (sent === undefined) return { kind: 'noted' }
    const { network, config, channelId, ceiling } = sent
    const file = this.#fileOf(network, config)
    const state = readChannel(file)
    if (response?.['success'] === true) {
      writeChannel(file, charged(state, sent, response))
      return { kind: 'noted' }
    }
    const shown = required && readCorrection(required, channelId)
    if (shown === undefined) return { kind: 'noted' }
    // Signed by this wallet, whatever its file has lost: signatures of the same voucher are equal.
    const { voucher } = shown
    const isOwn =
      voucher !== undefined &&
      voucher.signature ===
        (await signVoucher(this.#account, network, { channelId, ceiling: voucher.ceiling }))
    const signed = isOwn ? largest(state.signed, voucher.ceiling) : state.signed
    if (shown.charged > signed) return { kind: 'noted' }
    const { pending, ...rest } = state
    const isTaken = pending !== undefined && shown.balance >= state.balance + pending.amount
    const isSame = shown.charged === state.charged && shown.balance === state.balance
    writeChannel(file, {
      ...rest,
      signed,
      charged: shown.charged,
      balance: shown.balance,
      deposited: largest(state.deposited, shown.balance),
      ...(pending && !isTaken && { pending }),
    })
    return isSame ? { kind: 'noted' } : { kind: 'corrected', isSpent: ceiling <= shown.charged }
  }

  #fileOf({ chainId }: Network, config: ChannelConfig): string {
    return join(this.#options.folder, `${chainId}-${digestJson({ ...config }).slice(0, 32)}.json`)
  }

  /** Asks a node for a deposit whose outcome nobody has learned, once it cannot be taken any more. */
  async #settled(state: ChannelState, network: Network, channelId: `0x${string}`): Promise<ChannelState> {
    const { pending, ...rest } = state
    const { rpcUrl } = this.#options
    if (pending === undefined || this.#seconds() < pending.validBefore + LANDED_S) return state
    const url = rpcUrl(network.chainId) ?? network.rpcUrl
    const balance = await readBalance(url, channelId)
    return balance === undefined ? state : { ...rest, balance, deposited: largest(balance, state.charged) }
  }

  async #deposit(
    { network, channel, timeoutSeconds }: ChannelOffer,
    channelId: `0x${string}`,
    state: ChannelState,
    ceiling: bigint,
  ): Promise<
    | { readonly kind: 'signed'; readonly signed: SignedDeposit | undefined }
    | { readonly kind: 'refused'; readonly reason: string }
  > {
    const needed = ceiling - state.balance
    if (needed <= 0n) return { kind: 'signed', signed: undefined }
    const { rule, runtime } = this.#options
    const { pending } = state
    const now = this.#seconds()
    if (pending !== undefined) {
      if (now < pending.validBefore && needed <= pending.amount) return { kind: 'signed', signed: pending }
      return { kind: 'refused', reason: UNKNOWN_DEPOSIT }
    }
    const decided = rule({ least: largest(needed, channel.leastDeposit), unspent: unspentOf(state) })
    if (decided.kind === 'refused') return decided
    const { amount } = decided
    const salt = `0x${Buffer.from(runtime.random(32)).toString('hex')}` as const
    const validBefore = now + BigInt(timeoutSeconds)
    const signed = await signDeposit(this.#account, network, channelId, { amount, validBefore, salt })
    return { kind: 'signed', signed }
  }

  #seconds(): bigint {
    return BigInt(Math.floor(this.#options.runtime.now() / 1000))
  }
}

const UNKNOWN_DEPOSIT =
  'whether the last deposit was taken is not known yet: try again in ten minutes, with a node of the network in RPC_URL_…'

/** Whether a payment, as the `_meta` of a call has it, goes through a channel. */
export function isByChannel(meta: JsonObject): boolean {
  const payment = meta['x402/payment']
  return isJsonObject(payment) && readSent(payment) !== undefined
}

/** A deposit of an amount that was named, where one is needed. */
export function depositOf(named: bigint | undefined): DepositRule {
  return ({ least }) => {
    const usd = formatShort(toMicros(least))
    if (named === undefined)
      return {
        kind: 'refused',
        reason: `the channel needs a deposit: allow it with --deposit ${usd}, or more`,
      }
    return named < least
      ? { kind: 'refused', reason: `the channel needs a deposit of ${usd} USD at least: raise --deposit` }
      : { kind: 'deposit', amount: named }
  }
}

function unspentOf({ deposited, charged: used }: ChannelState): bigint {
  return deposited > used ? deposited - used : 0n
}

function largest(one: bigint, another: bigint): bigint {
  return one > another ? one : another
}

function depositFields({ amount, validBefore, salt, signature }: SignedDeposit): JsonObject {
  const erc3009Authorization = { validAfter: '0', validBefore: String(validBefore), salt, signature }
  return { amount: String(amount), authorization: { erc3009Authorization } }
}

/** A payment of this wallet, as it was sent. */
interface Sent {
  readonly network: Network
  readonly config: ChannelConfig
  readonly channelId: `0x${string}`
  readonly ceiling: bigint
  /** The most that the call may cost. */
  readonly amount: bigint
  readonly deposit: bigint
}

/** Undefined for a payment by another scheme. */
function readSent({ accepted, payload }: JsonObject): Sent | undefined {
  if (!isJsonObject(accepted) || !isJsonObject(payload) || accepted['scheme'] !== 'batch-settlement')
    return undefined
  const { channelConfig, voucher, deposit } = payload
  const network = typeof accepted['network'] === 'string' ? findNetwork(accepted['network']) : undefined
  const config = readConfig(channelConfig)
  const { channelId, maxClaimableAmount } = isJsonObject(voucher) ? voucher : {}
  const [ceiling, amount] = [amountIn(maxClaimableAmount), amountIn(accepted['amount'])]
  if (network === undefined || config === undefined || ceiling === undefined || amount === undefined)
    return undefined
  if (!isHash(channelId)) return undefined
  const added = isJsonObject(deposit) ? (amountIn(deposit['amount']) ?? 0n) : 0n
  return { network, config, channelId, ceiling, amount, deposit: added }
}

function readConfig(value: unknown): ChannelConfig | undefined {
  const { payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt } = isJsonObject(
    value,
  )
    ? value
    : {}
  if (!isText(payer) || !isText(payerAuthorizer) || !isText(receiver)) return undefined
  if (!isText(receiverAuthorizer) || !isText(token) || typeof withdrawDelay !== 'number') return undefined
  if (typeof salt !== 'string' || !/^0x0{64}$/.test(salt)) return undefined
  return {
    payer,
    payerAuthorizer,
    receiver,
    receiverAuthorizer,
    token,
    withdrawDelay,
    salt: `0x${salt.slice(2)}`,
  }
}

function isHash(value: unknown): value is `0x${string}` {
  return typeof value === 'string' && /^0x[0-9a-f]{64}$/.test(value)
}

function isText(value: unknown): value is Address {
  return typeof value === 'string' && isAddress(value)
}

/** After an answer: what the shop says was charged counts as far as it was signed. */
function charged(state: ChannelState, sent: Sent, response: JsonObject): ChannelState {
  const { pending, ...rest } = state
  const extra = isJsonObject(response['extra']) ? response['extra'] : {}
  const shown = isJsonObject(extra['channelState']) ? extra['channelState'] : {}
  const cost = amountIn(extra['chargedAmount']) ?? sent.amount
  const total = amountIn(shown['chargedCumulativeAmount']) ?? sent.ceiling - sent.amount + cost
  const isKnown = total <= state.signed
  return {
    ...rest,
    charged: isKnown ? total : state.charged,
    balance: state.balance + sent.deposit,
    ...(pending && sent.deposit === 0n && { pending }),
  }
}

interface Correction {
  readonly charged: bigint
  readonly balance: bigint
  readonly voucher: { readonly ceiling: bigint; readonly signature: string } | undefined
}

const CORRECTIONS: readonly unknown[] = [
  'invalid_batch_settlement_evm_cumulative_amount_mismatch',
  'invalid_batch_settlement_evm_cumulative_below_claimed',
]

/** Where a channel stands according to a 402. */
function readCorrection({ error, accepts }: JsonObject, channelId: string): Correction | undefined {
  if (!CORRECTIONS.includes(error) || !Array.isArray(accepts)) return undefined
  const offer = accepts.find((each) => isJsonObject(each) && each['scheme'] === 'batch-settlement')
  const extra = isJsonObject(offer) && isJsonObject(offer['extra']) ? offer['extra'] : {}
  const shown = isJsonObject(extra['channelState']) ? extra['channelState'] : {}
  const [used, balance] = [amountIn(shown['chargedCumulativeAmount']), amountIn(shown['balance'])]
  if (shown['channelId'] !== channelId || used === undefined || balance === undefined) return undefined
  const { signedMaxClaimable, signature } = isJsonObject(extra['voucherState']) ? extra['voucherState'] : {}
  const ceiling = amountIn(signedMaxClaimable)
  const voucher = ceiling === undefined || typeof signature !== 'string' ? undefined : { ceiling, signature }
  return { charged: used, balance, voucher }
}
