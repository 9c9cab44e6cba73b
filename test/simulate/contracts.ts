import { keccak256 } from 'js-sha3'
import { toChecksum, type Address } from '../../src/engine/base/address.ts'
import { PERMIT2, UPTO_PROXY } from '../../src/engine/base/permit2.ts'
import { selector, word } from '../../src/engine/chains/evm/abi.ts'
import {
  AUTHORIZATION_CANCELED,
  AUTHORIZATION_USED,
} from '../../src/engine/chains/evm/eip3009/authorization-log.ts'
import { MULTICALL3 } from '../../src/engine/chains/evm/multicall.ts'
import { INVALIDATION } from '../../src/engine/chains/evm/permit2/permit-outcome.ts'
import { recoverSigner, splitSignature } from '../../src/engine/chains/evm/signature.ts'
import { TRANSFER } from '../../src/engine/chains/evm/transfer-log.ts'
import type { ChannelConfig } from '../../src/engine/base/channel-config.ts'
import { CHANNELS, DEPOSIT_COLLECTOR } from '../../src/engine/base/channel-contracts.ts'
import {
  channelIdOf,
  claimDigest,
  depositNonce,
  refundDigest,
  voucherDigest,
} from '../../src/engine/x402/batch-settlement-evm/typed-data.ts'
import type { Hex } from '../../src/vendor/viem.ts'

export interface Log {
  /** In lower case. */
  readonly address: string
  readonly topics: readonly Hex[]
  readonly data: Hex
}

/** What contracts keep: a number under each name, zero at first. */
export interface State {
  get(name: string): bigint
  set(name: string, value: bigint): void
}

/** Changes that are made together, or not at all. */
export class Draft implements State {
  readonly #under: Pick<State, 'get'>
  readonly changes = new Map<string, bigint>()

  constructor(under: Pick<State, 'get'>) {
    this.#under = under
  }

  get(name: string): bigint {
    return this.changes.get(name) ?? this.#under.get(name)
  }

  set(name: string, value: bigint): void {
    this.changes.set(name, value)
  }

  applyTo(state: State): void {
    for (const [name, value] of this.changes) state.set(name, value)
  }
}

/** One call, with everything that it may read and leaves behind. */
export interface Frame {
  readonly state: State
  /** In lower case. */
  readonly sender: string
  /** Seconds since the epoch. */
  readonly timestamp: number
  readonly logs: Log[]
  gas: bigint
}

export type Called = { readonly kind: 'done'; readonly result: Hex } | Revert
/** `data`: empty, or the error of a contract. */
export type Revert = { readonly kind: 'reverted'; readonly reason: string; readonly data: Hex }

/** What a payer does on the chain by itself. */
export type PayersAct =
  /** Moves money away until so much is left. */
  | { readonly kind: 'spend'; readonly from: string; readonly leave: bigint }
  /** Gets money until it has so much. */
  | { readonly kind: 'receive'; readonly from: string; readonly until: bigint }
  /** Cancels an authorization (EIP-3009), or a nonce of Permit2. */
  | { readonly kind: 'cancel' | 'invalidate'; readonly from: string; readonly nonce: string }
  /** What Permit2 may move from now on. */
  | { readonly kind: 'allow'; readonly from: string; readonly amount: bigint }
  /** Begins to withdraw from a channel whatever is not claimed, and takes it when the delay is over. */
  | { readonly kind: 'withdraw' | 'take'; readonly from: string; readonly config: ChannelConfig }

const GAS = {
  batch: 30_000n,
  member: 39_000n,
  transfer: 66_100n,
  permit: 83_800n,
  deposit: 116_000n,
  claim: 30_000n,
  row: 25_500n,
  settle: 60_000n,
  refund: 70_000n,
}

const FIELDS = 'address,address,uint256,uint256,uint256,bytes32'
const TRANSFER_BY_KEY = selector(`transferWithAuthorization(${FIELDS},uint8,bytes32,bytes32)`)
const STATE = selector('authorizationState(address,bytes32)')
const BALANCE = selector('balanceOf(address)')
const ALLOWANCE = selector('allowance(address,address)')
const AGGREGATE = '82ad56cb'
const BITMAP = selector('nonceBitmap(address,uint256)')
const PERMIT = selector(
  'settle(((address,uint256),uint256,uint256),uint256,address,(address,address,uint256),bytes)',
)
const CONFIG = '(address,address,address,address,address,uint40,bytes32)'
const DEPOSIT = selector(`deposit(${CONFIG},uint128,address,bytes)`)
const CLAIM = selector(`claimWithSignature(((${CONFIG},uint128),bytes,uint128)[],bytes)`)
const SETTLE = selector('settle(address,address)')
const REFUND = selector(`refundWithSignature(${CONFIG},uint128,uint256,bytes)`)
const TOGETHER = selector('multicall(bytes[])')
const CHANNEL = selector('channels(bytes32)')
const WITHDRAWAL = selector('pendingWithdrawals(bytes32)')
const REFUND_NONCE = selector('refundNonce(bytes32)')
const RECEIVER = selector('receivers(address,address)')
const ERROR = selector('Error(string)')

const [DEPOSITED, CLAIMED, REFUNDED, INITIATED, FINALIZED] = [
  'Deposited(bytes32,address,uint128,uint128)',
  'Claimed(bytes32,address,uint128,uint128)',
  'Refunded(bytes32,address,uint128)',
  'WithdrawInitiated(bytes32,uint128,uint40)',
  'WithdrawFinalized(bytes32,address,uint128)',
].map((event): Hex => `0x${keccak256(event)}`)

/** Words of calldata after the function, and bytes at a place. */
class Words {
  readonly #digits: string

  constructor(digits: string) {
    this.#digits = digits
  }

  at(place: number): string {
    return this.#digits.slice(place * 64, place * 64 + 64)
  }

  number(place: number): bigint {
    return BigInt(`0x${this.at(place) || '0'}`)
  }

  address(place: number): string {
    return `0x${this.at(place).slice(24)}`
  }

  /** What a word names by its distance in bytes from a word. */
  from(place: number, base = 0): number {
    return base + Number(this.number(place)) / 32
  }

  bytes(place: number): string {
    return this.#digits.slice((place + 1) * 64, (place + 1) * 64 + Number(this.number(place)) * 2)
  }

  config(place: number): ChannelConfig {
    const [payer, payerAuthorizer, receiver, receiverAuthorizer, token] = [0, 1, 2, 3, 4].map(
      (each): Address => toChecksum(this.address(place + each)),
    )
    if (!payer || !payerAuthorizer || !receiver || !receiverAuthorizer || !token) throw new Error('five')
    const withdrawDelay = Number(this.number(place + 5))
    const salt: Hex = `0x${this.at(place + 6)}`
    return { payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt }
  }
}

/** Names of what contracts keep. */
export const balanceName = (account: string): string => `balance ${account.toLowerCase()}`
/** 1: used, 2: canceled. */
export const nonceName = (kind: 'authorization' | 'permit', payer: string, nonce: string): string =>
  `${kind} ${payer} ${nonce}`.toLowerCase()
/** What the use of a nonce has moved to the payee. */
export const movedName = (kind: 'authorization' | 'permit', payer: string, nonce: string): string =>
  `moved ${nonceName(kind, payer, nonce)}`
export const channelName = (
  what: 'balance' | 'claimed' | 'withdrawing' | 'since' | 'refunds',
  id: string,
): string => `channel ${what} ${id}`
export const allowanceName = (payer: string): string => `allowance ${payer}`.toLowerCase()
const bitmapName = (payer: string, place: bigint): string => `bitmap ${payer} ${place}`.toLowerCase()
const receiverName = (what: 'claimed' | 'settled', receiver: string): string =>
  `receiver ${what} ${receiver}`.toLowerCase()

function markBit(state: State, payer: string, nonce: bigint): void {
  const name = bitmapName(payer, nonce >> 8n)
  state.set(name, state.get(name) | (1n << (nonce & 0xffn)))
}

/** One token (EIP-3009), Multicall3, Permit2 with the proxy of scheme upto, and the contract of channels. */
export class Contracts {
  readonly token: string
  readonly #chainId: number
  /** What payers have signed, by signature. */
  readonly #signed = new Map<string, string>()

  constructor(token: string, chainId: number) {
    this.token = token.toLowerCase()
    this.#chainId = chainId
  }

  /** A payer has signed something: its words, or what is named instead of them. */
  know(signed: string, signature: string): void {
    this.#signed.set(signature.toLowerCase(), signed.toLowerCase())
  }

  /** Carries a call out: nothing is changed when it reverts. */
  run(frame: Frame, to: string, data: string): Called {
    const draft = new Draft(frame.state)
    const inner = { ...frame, state: draft, logs: new Array<Log>() }
    const done = this.#call(inner, to.toLowerCase(), data)
    if (done.kind === 'reverted') return done
    draft.applyTo(frame.state)
    frame.logs.push(...inner.logs)
    frame.gas = inner.gas
    return done
  }

  act(frame: Frame, act: PayersAct): void {
    const { state, logs, timestamp } = frame
    switch (act.kind) {
      case 'spend': {
        const balance = state.get(balanceName(act.from))
        state.set(balanceName(act.from), balance < act.leave ? balance : act.leave)
        return
      }
      case 'receive': {
        const balance = state.get(balanceName(act.from))
        state.set(balanceName(act.from), balance > act.until ? balance : act.until)
        return
      }
      case 'cancel': {
        const name = nonceName('authorization', act.from, act.nonce)
        if (state.get(name) !== 0n) return
        state.set(name, 2n)
        const topics: Hex[] = [AUTHORIZATION_CANCELED, topic(act.from), hexOf(act.nonce)]
        logs.push({ address: this.token, topics, data: '0x' })
        return
      }
      case 'invalidate': {
        const name = nonceName('permit', act.from, act.nonce)
        if (state.get(name) !== 0n) return
        state.set(name, 2n)
        const nonce = BigInt(act.nonce)
        markBit(state, act.from, nonce)
        const data: Hex = `0x${word(nonce >> 8n)}${word(1n << (nonce & 0xffn))}`
        logs.push({ address: PERMIT2.toLowerCase(), topics: [INVALIDATION, topic(act.from)], data })
        return
      }
      case 'allow':
        state.set(allowanceName(act.from), act.amount)
        return
      case 'withdraw': {
        const { id, free } = this.#channel(state, act.config)
        if (state.get(channelName('since', id)) !== 0n || free === 0n) return
        state.set(channelName('withdrawing', id), free)
        state.set(channelName('since', id), BigInt(timestamp))
        const end = BigInt(timestamp + act.config.withdrawDelay)
        logs.push(channelLog(INITIATED, id, undefined, [free, end]))
        return
      }
      case 'take': {
        const { id, free, balance } = this.#channel(state, act.config)
        const since = state.get(channelName('since', id))
        if (since === 0n || BigInt(timestamp) < since + BigInt(act.config.withdrawDelay)) return
        const asked = state.get(channelName('withdrawing', id))
        const amount = asked > free ? free : asked
        state.set(channelName('withdrawing', id), 0n)
        state.set(channelName('since', id), 0n)
        state.set(channelName('balance', id), balance - amount)
        logs.push(channelLog(FINALIZED, id, act.from, [amount]))
        if (amount > 0n) this.#move(frame, CHANNELS, act.config.payer, amount)
      }
    }
  }

  #call(frame: Frame, to: string, data: string): Called {
    const words = new Words(data.slice(8).toLowerCase())
    const name = data.slice(0, 8).toLowerCase()
    switch (to) {
      case MULTICALL3.toLowerCase():
        return name === AGGREGATE ? this.#aggregate(frame, data) : done()
      case this.token:
        return this.#ofToken(frame, name, words)
      case PERMIT2.toLowerCase():
        return name === BITMAP
          ? done(word(frame.state.get(bitmapName(words.address(0), words.number(1)))))
          : done()
      case UPTO_PROXY.toLowerCase():
        return name === PERMIT ? this.#permit(frame, words) : revert('unknown function')
      case CHANNELS.toLowerCase():
        return this.#ofChannels(frame, name, words)
      default:
        return done()
    }
  }

  #aggregate(frame: Frame, data: string): Called {
    frame.gas += GAS.batch
    const flags = callsOf(data).map(({ to, data: inner }) => {
      const before = frame.gas
      const called = this.run(frame, to, inner)
      frame.gas = before + GAS.member
      return called.kind === 'done'
    })
    return done(encodeResults(flags))
  }

  #ofToken(frame: Frame, name: string, words: Words): Called {
    const { state } = frame
    const payer = words.address(0)
    if (name === STATE)
      return done(word(state.get(nonceName('authorization', payer, `0x${words.at(1)}`)) === 0n ? 0n : 1n))
    if (name === BALANCE) return done(word(state.get(balanceName(payer))))
    if (name === ALLOWANCE) return done(word(state.get(allowanceName(payer))))
    if (name !== TRANSFER_BY_KEY) return revert('unknown function')
    const [to, value] = [words.address(1), words.number(2)]
    const fields = [0, 1, 2, 3, 4, 5].map((place) => words.at(place)).join('')
    const signature = `0x${words.at(7)}${words.at(8)}${words.at(6).slice(-2)}`
    const nonce = `0x${words.at(5)}`
    const refused = this.#authorize(frame, payer, nonce, words.number(3), words.number(4))
    if (refused !== undefined) return refused
    if (this.#signed.get(signature) !== fields) return revert('FiatTokenV2: invalid signature')
    if (state.get(balanceName(payer)) < value) return revert('ERC20: transfer amount exceeds balance')
    this.#use(frame, payer, nonce, value)
    this.#move(frame, payer, to, value)
    frame.gas += GAS.transfer
    return done()
  }

  #authorize({ state, timestamp }: Frame, payer: string, nonce: string, after: bigint, before: bigint) {
    if (BigInt(timestamp) <= after) return revert('FiatTokenV2: authorization is not yet valid')
    if (BigInt(timestamp) >= before) return revert('FiatTokenV2: authorization is expired')
    return state.get(nonceName('authorization', payer, nonce)) === 0n
      ? undefined
      : revert('FiatTokenV2: authorization is used or canceled')
  }

  #use({ state, logs }: Frame, payer: string, nonce: string, value: bigint): void {
    state.set(nonceName('authorization', payer, nonce), 1n)
    state.set(movedName('authorization', payer, nonce), value)
    logs.push({
      address: this.token,
      topics: [AUTHORIZATION_USED, topic(payer), hexOf(nonce)],
      data: '0x',
    })
  }

  #move({ state, logs }: Frame, from: string, to: string, value: bigint): void {
    state.set(balanceName(from), state.get(balanceName(from)) - value)
    state.set(balanceName(to), state.get(balanceName(to)) + value)
    logs.push({
      address: this.token,
      topics: [TRANSFER, topic(from), topic(to)],
      data: `0x${word(value)}`,
    })
  }

  #permit(frame: Frame, words: Words): Called {
    const { state, sender, timestamp } = frame
    const [token, most, nonce, deadline, amount] = [
      words.address(0),
      words.number(1),
      `0x${words.at(2)}`,
      words.number(3),
      words.number(4),
    ]
    const [payer, to, facilitator, after] = [
      words.address(5),
      words.address(6),
      words.address(7),
      words.number(8),
    ]
    if (sender !== facilitator) return custom('UnauthorizedFacilitator()')
    if (BigInt(timestamp) < after) return custom('PaymentTooEarly()')
    if (amount > most) return custom('AmountExceedsPermitted()')
    if (BigInt(timestamp) > deadline) return custom('SignatureExpired(uint256)')
    if (state.get(nonceName('permit', payer, nonce)) !== 0n) return custom('InvalidNonce()')
    const fields = [0, 1, 2, 3, 6, 7, 8].map((place) => words.at(place)).join('')
    if (token !== this.token || this.#signed.get(`0x${words.bytes(words.from(9))}`) !== fields)
      return custom('InvalidSigner()')
    const allowed = state.get(allowanceName(payer))
    if (allowed < amount || state.get(balanceName(payer)) < amount) return revert('TRANSFER_FROM_FAILED')
    state.set(allowanceName(payer), allowed - amount)
    state.set(nonceName('permit', payer, nonce), 1n)
    markBit(state, payer, BigInt(nonce))
    state.set(movedName('permit', payer, nonce), amount)
    this.#move(frame, payer, to, amount)
    frame.gas += GAS.permit
    return done()
  }

  #channel(
    state: State,
    config: ChannelConfig,
  ): { readonly id: Hex; readonly balance: bigint; readonly free: bigint } {
    const id = channelIdOf(config, this.#chainId)
    const balance = state.get(channelName('balance', id))
    return { id, balance, free: balance - state.get(channelName('claimed', id)) }
  }

  #ofChannels(frame: Frame, name: string, words: Words): Called {
    const { state } = frame
    const read = (what: Parameters<typeof channelName>[0]): string =>
      word(state.get(channelName(what, `0x${words.at(0)}`)))
    switch (name) {
      case CHANNEL:
        return done(read('balance') + read('claimed'))
      case WITHDRAWAL:
        return done(read('withdrawing') + read('since'))
      case REFUND_NONCE:
        return done(read('refunds'))
      case RECEIVER:
        return done(
          word(state.get(receiverName('claimed', words.address(0)))) +
            word(state.get(receiverName('settled', words.address(0)))),
        )
      case DEPOSIT:
        return this.#deposit(frame, words)
      case CLAIM:
        return this.#claim(frame, words)
      case SETTLE: {
        const receiver = words.address(0)
        const claimed = state.get(receiverName('claimed', receiver))
        const open = claimed - state.get(receiverName('settled', receiver))
        state.set(receiverName('settled', receiver), claimed)
        if (open > 0n) this.#move(frame, CHANNELS, receiver, open)
        frame.gas += GAS.settle
        return done()
      }
      case REFUND:
        return this.#refund(frame, words)
      case TOGETHER: {
        const list = words.from(0)
        for (let place = 0; place < Number(words.number(list)); place += 1) {
          const called = this.run(frame, CHANNELS, words.bytes(words.from(list + 1 + place, list + 1)))
          if (called.kind === 'reverted') return called
        }
        return done()
      }
      default:
        return revert('unknown function')
    }
  }

  #deposit(frame: Frame, words: Words): Called {
    const { state, sender } = frame
    const config = words.config(0)
    const amount = words.number(7)
    if (words.address(8) !== DEPOSIT_COLLECTOR.toLowerCase()) return custom('InvalidCollector()')
    if (amount === 0n) return custom('ZeroDeposit()')
    const { id, balance } = this.#channel(state, config)
    const data = new Words(words.bytes(words.from(9)))
    const salt: Hex = `0x${data.at(2)}`
    const nonce = depositNonce(id, salt)
    const payer = config.payer.toLowerCase()
    const refused = this.#authorize(frame, payer, nonce, data.number(0), data.number(1))
    if (refused !== undefined) return refused
    const signed = `deposit ${id} ${amount} ${data.number(0)} ${data.number(1)} ${salt}`
    if (this.#signed.get(`0x${data.bytes(data.from(3))}`) !== signed)
      return revert('FiatTokenV2: invalid signature')
    if (state.get(balanceName(payer)) < amount) return revert('ERC20: transfer amount exceeds balance')
    this.#use(frame, payer, nonce, amount)
    this.#move(frame, payer, CHANNELS, amount)
    state.set(channelName('balance', id), balance + amount)
    frame.logs.push(channelLog(DEPOSITED, id, sender, [amount, balance + amount]))
    frame.gas += GAS.deposit
    return done()
  }

  #claim(frame: Frame, words: Words): Called {
    const { state, sender } = frame
    const list = words.from(0)
    const count = Number(words.number(list))
    const rows = Array.from({ length: count }, (_, place) => {
      const row = words.from(list + 1 + place, list + 1)
      return {
        config: words.config(row),
        ceiling: words.number(row + 7),
        signature: `0x${words.bytes(words.from(row + 8, row))}`,
        total: words.number(row + 9),
      }
    })
    const authorizer = rows[0]?.config.receiverAuthorizer
    const entries = rows.map(({ config, ceiling, total }) => ({
      channelId: channelIdOf(config, this.#chainId),
      ceiling,
      total,
    }))
    if (!isSignedBy(authorizer, claimDigest(entries, this.#chainId), words.bytes(words.from(1))))
      return custom('InvalidSignature()')
    frame.gas += GAS.claim
    for (const { config, ceiling, signature, total } of rows) {
      if (config.receiverAuthorizer !== authorizer) return custom('NotReceiverAuthorizer()')
      const { id, balance } = this.#channel(state, config)
      const before = state.get(channelName('claimed', id))
      frame.gas += GAS.row
      if (total <= before) continue
      if (total > ceiling) return custom('ClaimExceedsCeiling()')
      if (total > balance) return custom('ClaimExceedsBalance()')
      if (!isSignedBy(config.payerAuthorizer, voucherDigest(id, ceiling, this.#chainId), signature.slice(2)))
        return custom('InvalidSignature()')
      state.set(channelName('claimed', id), total)
      const received = receiverName('claimed', config.receiver)
      state.set(received, state.get(received) + total - before)
      frame.logs.push(channelLog(CLAIMED, id, sender, [total - before, total]))
    }
    return done()
  }

  #refund(frame: Frame, words: Words): Called {
    const { state, sender } = frame
    const config = words.config(0)
    const [asked, nonce] = [words.number(7), words.number(8)]
    const { id, balance, free } = this.#channel(state, config)
    if (nonce !== state.get(channelName('refunds', id))) return custom('InvalidRefundNonce()')
    const digest = refundDigest(id, nonce, asked, this.#chainId)
    if (!isSignedBy(config.receiverAuthorizer, digest, words.bytes(words.from(9))))
      return custom('InvalidSignature()')
    if (asked === 0n) return custom('ZeroRefund()')
    state.set(channelName('refunds', id), nonce + 1n)
    frame.gas += GAS.refund
    const amount = asked > free ? free : asked
    if (amount === 0n) return done()
    state.set(channelName('balance', id), balance - amount)
    const withdrawing = state.get(channelName('withdrawing', id))
    if (state.get(channelName('since', id)) !== 0n) {
      const isOver = amount >= withdrawing
      state.set(channelName('withdrawing', id), isOver ? 0n : withdrawing - amount)
      if (isOver) state.set(channelName('since', id), 0n)
    }
    frame.logs.push(channelLog(REFUNDED, id, sender, [amount]))
    this.#move(frame, CHANNELS, config.payer, amount)
    return done()
  }
}

/** Who has signed a digest, by digest and signature: the same claim is checked again and again. */
const signers = new Map<string, string | undefined>()

function isSignedBy(address: string | undefined, digest: Uint8Array, signature: string): boolean {
  const name = `${Buffer.from(digest).toString('hex')} ${signature}`
  if (!signers.has(name)) {
    if (signers.size > 10_000) signers.clear()
    const split = /(1b|1c)$/.test(signature) ? splitSignature(`0x${signature}`) : undefined
    signers.set(name, split === undefined ? undefined : recoverSigner(digest, split))
  }
  return address !== undefined && signers.get(name) === address.toLowerCase()
}

function channelLog(
  event: Hex | undefined,
  id: Hex,
  sender: string | undefined,
  values: readonly bigint[],
): Log {
  const topics: Hex[] = [event ?? '0x', id, ...(sender === undefined ? [] : [topic(sender)])]
  return { address: CHANNELS.toLowerCase(), topics, data: `0x${values.map(word).join('')}` }
}

function done(result = ''): Called {
  return { kind: 'done', result: `0x${result}` }
}

function revert(reason: string): Revert {
  const text = Buffer.from(reason).toString('hex')
  const padded = text.padEnd(Math.ceil(text.length / 64) * 64, '0')
  return { kind: 'reverted', reason, data: `0x${ERROR}${word(32n)}${word(BigInt(reason.length))}${padded}` }
}

/** An error that a contract declares. */
function custom(error: string): Revert {
  return { kind: 'reverted', reason: '', data: `0x${selector(error)}` }
}

function topic(address: string): Hex {
  return `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
}

function hexOf(text: string): Hex {
  return `0x${text.slice(2).toLowerCase()}`
}

/** The calls in `aggregate3`. */
export function callsOf(data: string): readonly { readonly to: string; readonly data: string }[] {
  const body = data.slice(8)
  const at = (byte: number): number => Number.parseInt(body.slice(byte * 2, byte * 2 + 64), 16)
  const list = at(0)
  return Array.from({ length: at(list) }, (_, place) => {
    const tuple = list + 32 + at(list + 32 + place * 32)
    const bytes = tuple + at(tuple + 64)
    const to = `0x${body.slice(tuple * 2 + 24, tuple * 2 + 64)}`
    return { to, data: body.slice((bytes + 32) * 2, (bytes + 32 + at(bytes)) * 2) }
  })
}

/** `(bool success, bytes returnData)[]` without data. */
function encodeResults(flags: readonly boolean[]): string {
  const offsets = flags.map((_, place) => word(BigInt(flags.length * 32 + place * 96)))
  const tuples = flags.map((flag) => word(flag ? 1n : 0n) + word(64n) + word(0n))
  return `${word(32n)}${word(BigInt(flags.length))}${offsets.join('')}${tuples.join('')}`
}
