import { keccak256 } from 'js-sha3'
import { word } from '../../src/engine/chains/evm/chain.ts'
import { fromRlp, type Hex } from '../../src/vendor/viem.ts'
import { recoverSigner } from '../../src/engine/chains/evm/signature.ts'
import { MULTICALL3 } from '../../src/engine/chains/evm/multicall.ts'
import {
  AUTHORIZATION_CANCELED,
  AUTHORIZATION_USED,
} from '../../src/engine/chains/evm/eip3009/authorization-log.ts'
import { TRANSFER } from '../../src/engine/chains/evm/transfer-log.ts'
import { selector } from '../../src/engine/chains/evm/abi.ts'

export const BLOCK_MS = 2_000
/** Gas of a transfer by signature that succeeds, of one that reverts, and of a batch besides its members. */
const GAS = { transfer: 66_100n, revert: 34_000n, batch: 30_000n, member: 39_000n, filler: 21_000n }
/** Most transactions in a block. */
const ROOM = 20

const FIELDS = 'address,address,uint256,uint256,uint256,bytes32'
const TRANSFER_BY_KEY = selector(`transferWithAuthorization(${FIELDS},uint8,bytes32,bytes32)`)
const STATE = selector('authorizationState(address,bytes32)')
const BALANCE = selector('balanceOf(address)')
const AGGREGATE = '82ad56cb'
const ERROR = selector('Error(string)')

export interface Log {
  readonly topics: readonly Hex[]
  readonly data: Hex
}

/** A transaction of an account that pays the gas. */
interface Transaction {
  readonly hash: Hex
  readonly from: string
  readonly nonce: number
  readonly tip: bigint
  readonly most: bigint
  readonly gas: bigint
  readonly to: string
  readonly data: string
}

export interface Mined {
  readonly hash: Hex
  readonly from: string
  readonly succeeded: boolean
  readonly gasUsed: bigint
  readonly price: bigint
  readonly logs: readonly Log[]
}

/** What happens on the chain without us: a payer who moves money away, or cancels what was signed. */
export type Outside =
  | { readonly kind: 'spend'; readonly from: string; readonly leave: bigint }
  | { readonly kind: 'cancel'; readonly from: string; readonly nonce: string }

export interface Block {
  readonly number: number
  readonly hash: Hex
  /** Seconds since the epoch. */
  readonly timestamp: number
  readonly baseFee: bigint
  readonly mined: readonly Mined[]
  readonly transactions: readonly Transaction[]
  readonly outside: readonly Outside[]
  readonly touched: readonly History<unknown>[]
}

/** A value by block: what a reorganisation undoes is cut off. */
class History<T> {
  readonly #values: { readonly block: number; readonly value: T }[] = []

  at(block: number): T | undefined {
    return this.#values.findLast((each) => each.block <= block)?.value
  }

  set(block: number, value: T): void {
    this.#values.push({ block, value })
  }

  undo(above: number): void {
    while ((this.#values.at(-1)?.block ?? -1) > above) this.#values.pop()
  }
}

/** Gas that was paid for what moved nothing. */
export interface Loss {
  readonly at: number
  readonly wei: bigint
}

type Revert = { readonly kind: 'reverted'; readonly reason: string }
type Called = { readonly kind: 'done'; readonly result: Hex } | Revert

/** A chain with one token (EIP-3009) and Multicall3; its users are accounts that pay gas, and payers who only sign. */
export class SimulatedChain {
  readonly token: string
  readonly #chainId: number
  readonly #blocks: Block[] = []
  readonly #pool = new Map<string, Transaction>()
  readonly #outside: Outside[] = []
  readonly #used = new Map<string, History<'used' | 'canceled'>>()
  readonly #balances = new Map<string, History<bigint>>()
  readonly #nonces = new Map<string, History<number>>()
  readonly #coins = new Map<string, bigint>()
  /** Calldata fields of what payers have signed, by signature. */
  readonly #signed = new Map<string, string>()
  #salt = 0
  #baseFee = 10_000_000n

  constructor(token: string, chainId: number, time: number) {
    this.token = token.toLowerCase()
    this.#chainId = chainId
    this.mine(time)
  }

  get head(): Block {
    const head = this.#blocks.at(-1)
    if (head === undefined) throw new Error('there is a first block')
    return head
  }

  get chainId(): number {
    return this.#chainId
  }

  get poolSize(): number {
    return this.#pool.size
  }

  block(number: number): Block | undefined {
    return this.#blocks[number]
  }

  setBaseFee(wei: bigint): void {
    this.#baseFee = wei
  }

  fund(account: string, wei: bigint): void {
    this.#coins.set(account.toLowerCase(), wei)
  }

  give(payer: string, amount: bigint): void {
    keyed(this.#balances, payer.toLowerCase()).set(this.head.number, amount)
  }

  coin(account: string): bigint {
    return this.#coins.get(account.toLowerCase()) ?? 0n
  }

  /** A payer has signed a transfer: calldata without its function, fields first. */
  know(fields: string, signature: string): void {
    this.#signed.set(signature.toLowerCase(), fields.toLowerCase())
  }

  happen(outside: Outside): void {
    this.#outside.push(outside)
  }

  nonce(account: string, block: number): number {
    return this.#nonces.get(account.toLowerCase())?.at(block) ?? 0
  }

  /** The next nonce, with the pool. */
  pending(account: string): number {
    let next = this.nonce(account, this.head.number)
    const nonces = new Set(this.#of(account).map(({ nonce }) => nonce))
    while (nonces.has(next)) next += 1
    return next
  }

  balance(payer: string, block: number = this.head.number): bigint {
    return this.#balances.get(payer.toLowerCase())?.at(block) ?? 0n
  }

  state(payer: string, nonce: string, block: number = this.head.number): 'used' | 'canceled' | undefined {
    return this.#used.get(`${payer}:${nonce}`.toLowerCase())?.at(block)
  }

  find(hash: string): { readonly block: Block; readonly mined: Mined } | undefined {
    for (let number = this.head.number; number >= 0 && number > this.head.number - 2_000; number -= 1) {
      const block = this.#blocks[number]
      const mined = block?.mined.find((each) => each.hash === hash)
      if (block !== undefined && mined !== undefined) return { block, mined }
    }
    return undefined
  }

  knows(hash: string): boolean {
    return this.#pool.has(hash) || this.find(hash) !== undefined
  }

  /** Undefined when the pool takes it; otherwise what geth says. */
  send(raw: string): string | undefined {
    const transaction = decode(raw)
    const { hash, from, nonce, gas, most, tip } = transaction
    if (this.#pool.has(hash)) return 'already known'
    if (nonce < this.nonce(from, this.head.number)) return 'nonce too low'
    if (gas * most > this.coin(from)) return 'insufficient funds for gas * price + value'
    const other = this.#of(from).find((each) => each.nonce === nonce)
    if (other !== undefined) {
      if (most * 10n < other.most * 11n || tip * 10n < other.tip * 11n)
        return 'replacement transaction underpriced'
      this.#pool.delete(other.hash)
    }
    this.#pool.set(hash, transaction)
    return undefined
  }

  forgetPool(): void {
    this.#pool.clear()
  }

  mine(time: number): Block {
    const number = this.#blocks.length
    const timestamp = Math.max(Math.floor(time / 1000), (this.#blocks.at(-1)?.timestamp ?? 0) + 1)
    this.#salt += 1
    const hash: Hex = `0x${keccak256(`${number} ${this.#salt} ${timestamp}`)}`
    const baseFee = this.#baseFee
    const [mined, transactions]: [Mined[], Transaction[]] = [[], []]
    const outside = this.#outside.splice(0)
    const block = {
      number,
      hash,
      timestamp,
      baseFee,
      mined,
      transactions,
      outside,
      touched: new Array<History<unknown>>(),
    }
    this.#blocks.push(block)
    for (const each of outside) mined.push(this.#step(each, block))
    const ready = [...this.#pool.values()].toSorted((a, b) => a.nonce - b.nonce)
    for (const transaction of ready) {
      if (transactions.length >= ROOM) break
      if (transaction.nonce !== this.nonce(transaction.from, number) || transaction.most < baseFee) continue
      this.#pool.delete(transaction.hash)
      transactions.push(transaction)
      mined.push(this.#execute(transaction, block))
    }
    for (const [key, { from, nonce }] of this.#pool)
      if (nonce < this.nonce(from, number)) this.#pool.delete(key)
    return block
  }

  /** The newest blocks are replaced by others. What they contained goes back to the pool, or is forgotten. */
  reorganize(depth: number, pool: 'kept' | 'lost', time: number): void {
    const undone = this.#blocks.splice(Math.max(1, this.#blocks.length - depth))
    const above = this.head.number
    for (const { touched } of undone) for (const history of touched) history.undo(above)
    for (const { transactions, outside } of undone) {
      this.#outside.push(...outside)
      if (pool === 'kept') for (const each of transactions) this.#pool.set(each.hash, each)
    }
    if (pool === 'lost') this.#pool.clear()
    for (const [place] of undone.entries()) this.mine(place === 0 ? 0 : time)
  }

  /** Gas that our accounts have paid for nothing. */
  losses(): readonly Loss[] {
    return this.#blocks.flatMap(({ mined, timestamp, transactions }) =>
      mined.flatMap((each) => {
        const sent = transactions.find(({ hash }) => hash === each.hash)
        if (sent === undefined || sent.data === '') return []
        const calls = sent.to === MULTICALL3.toLowerCase() ? callsOf(sent.data).length : 1
        const moved = each.logs.filter(({ topics }) => topics[0] === TRANSFER).length
        const wei = (each.gasUsed * each.price * BigInt(calls - moved)) / BigInt(calls)
        return wei === 0n ? [] : [{ at: timestamp * 1000, wei }]
      }),
    )
  }

  /** What a call would do in the next block. */
  call(to: string, data: string, view: number): Called {
    const code = data.slice(2, 10)
    const args = data.slice(10)
    if (to.toLowerCase() === MULTICALL3.toLowerCase() && code === AGGREGATE) {
      const spent = new Map<string, bigint>()
      const taken = new Set<string>()
      const flags = callsOf(data.slice(2)).map((call) => {
        const moved = this.#check(call, view, this.head.timestamp + 1)
        if ('kind' in moved) return false
        const before = spent.get(moved.from) ?? 0n
        const key = `${moved.from}:${moved.nonce}`
        if (taken.has(key) || this.balance(moved.from, view) - before < moved.value) return false
        taken.add(key)
        spent.set(moved.from, before + moved.value)
        return true
      })
      return { kind: 'done', result: encodeResults(flags) }
    }
    if (to.toLowerCase() !== this.token) return { kind: 'done', result: '0x' }
    switch (code) {
      case STATE: {
        const state = this.state(`0x${args.slice(24, 64)}`, `0x${args.slice(64, 128)}`, view)
        return { kind: 'done', result: `0x${word(state === undefined ? 0n : 1n)}` }
      }
      case BALANCE:
        return { kind: 'done', result: `0x${word(this.balance(`0x${args.slice(24, 64)}`, view))}` }
      default: {
        const moved = this.#check(data.slice(2), view, this.head.timestamp + 1)
        return 'kind' in moved ? moved : { kind: 'done', result: '0x' }
      }
    }
  }

  logs(
    topics: readonly (readonly string[] | null)[],
    from: number,
    to: number,
  ): { log: Log; block: Block; hash: Hex }[] {
    const found: { log: Log; block: Block; hash: Hex }[] = []
    for (let number = Math.max(0, from); number <= to; number += 1) {
      const block = this.#blocks[number]
      for (const { logs, hash } of block?.mined ?? [])
        for (const log of logs)
          if (
            block !== undefined &&
            topics.every((any, place) => any === null || any.includes(log.topics[place] ?? ''))
          )
            found.push({ log, block, hash })
    }
    return found
  }

  #of(account: string): Transaction[] {
    return [...this.#pool.values()].filter(({ from }) => from === account.toLowerCase())
  }

  #change<T>(histories: Map<string, History<T>>, key: string, { number, touched }: Touched, value: T): void {
    const history = keyed(histories, key)
    history.set(number, value)
    touched.push(history)
  }

  #step(outside: Outside, block: Touched): Mined {
    const { from } = outside
    const hash: Hex = `0x${keccak256(`outside ${block.number} ${block.touched.length} ${this.#salt}`)}`
    const logs: Log[] = []
    if (outside.kind === 'spend') {
      const balance = this.balance(from, block.number)
      const left = balance < outside.leave ? balance : outside.leave
      this.#change(this.#balances, from.toLowerCase(), block, left)
    } else if (this.state(from, outside.nonce, block.number) === undefined) {
      this.#change(this.#used, `${from}:${outside.nonce}`.toLowerCase(), block, 'canceled')
      logs.push({ topics: [AUTHORIZATION_CANCELED, topic(from), hexOf(outside.nonce)], data: '0x' })
    }
    return { hash, from, succeeded: true, gasUsed: 0n, price: 0n, logs }
  }

  #execute({ hash, from, nonce, to, data, gas, most, tip }: Transaction, block: Touched & Block): Mined {
    this.#change(this.#nonces, from, block, nonce + 1)
    const price = most < block.baseFee + tip ? most : block.baseFee + tip
    const logs: Log[] = []
    let succeeded = true
    let gasUsed = GAS.filler
    if (to === MULTICALL3.toLowerCase()) {
      const calls = callsOf(data)
      gasUsed = GAS.batch
      for (const call of calls) {
        logs.push(...this.#carryOut(call, block))
        gasUsed += GAS.member
      }
    } else if (data !== '') {
      logs.push(...this.#carryOut(data, block))
      succeeded = logs.length > 0
      gasUsed = succeeded ? GAS.transfer : GAS.revert
    }
    if (gasUsed > gas) throw new Error('a transaction of ours has too little gas')
    this.#coins.set(from, this.coin(from) - gasUsed * price)
    return { hash, from, succeeded, gasUsed, price, logs }
  }

  #carryOut(data: string, block: Touched & Block): readonly Log[] {
    const moved = this.#check(data, block.number, block.timestamp)
    if ('kind' in moved) return []
    const { from, to, value, nonce } = moved
    this.#change(this.#used, `${from}:${nonce}`, block, 'used')
    this.#change(this.#balances, from, block, this.balance(from, block.number) - value)
    this.#change(this.#balances, to, block, this.balance(to, block.number) + value)
    return [
      { topics: [AUTHORIZATION_USED, topic(from), hexOf(nonce)], data: '0x' },
      { topics: [TRANSFER, topic(from), topic(to)], data: `0x${word(value)}` },
    ]
  }

  #check(data: string, view: number, timestamp: number): Transfer | Revert {
    const revert = (reason: string): Revert => ({ kind: 'reverted', reason })
    const words = (data.slice(8).match(/.{64}/g) ?? []).map((each) => each.toLowerCase())
    const [from = '', to = '', value = '', after = '', before = '', nonce = '', v = '', r = '', s = ''] =
      words
    if (data.slice(0, 8) !== TRANSFER_BY_KEY) return revert('unknown function')
    const signature = `0x${r}${s}${v.slice(-2)}`
    if (timestamp <= Number(`0x${after}`)) return revert('FiatTokenV2: authorization is not yet valid')
    if (timestamp >= Number(`0x${before}`)) return revert('FiatTokenV2: authorization is expired')
    const payer = `0x${from.slice(24)}`
    if (this.state(payer, `0x${nonce}`, view) !== undefined)
      return revert('FiatTokenV2: authorization is used or canceled')
    if (this.#signed.get(signature) !== [from, to, value, after, before, nonce].join(''))
      return revert('FiatTokenV2: invalid signature')
    if (this.balance(payer, view) < BigInt(`0x${value}`))
      return revert('ERC20: transfer amount exceeds balance')
    return { from: payer, to: `0x${to.slice(24)}`, value: BigInt(`0x${value}`), nonce: `0x${nonce}` }
  }
}

type Touched = Pick<Block, 'number'> & { readonly touched: History<unknown>[] }

interface Transfer {
  readonly from: string
  readonly to: string
  readonly value: bigint
  readonly nonce: string
}

function keyed<T>(histories: Map<string, History<T>>, key: string): History<T> {
  const known = histories.get(key)
  if (known !== undefined) return known
  const fresh = new History<T>()
  histories.set(key, fresh)
  return fresh
}

function topic(address: string): Hex {
  return `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
}

function hexOf(text: string): Hex {
  return `0x${text.slice(2).toLowerCase()}`
}

/** Revert data of a reason. */
export function errorData(reason: string): Hex {
  const text = Buffer.from(reason).toString('hex')
  return `0x${ERROR}${word(32n)}${word(BigInt(reason.length))}${text.padEnd(Math.ceil(text.length / 64) * 64, '0')}`
}

/** The calldata of each call in `aggregate3`. */
function callsOf(data: string): readonly string[] {
  const body = data.slice(8)
  const at = (byte: number): number => Number.parseInt(body.slice(byte * 2, byte * 2 + 64), 16)
  const list = at(0)
  return Array.from({ length: at(list) }, (_, place) => {
    const tuple = list + 32 + at(list + 32 + place * 32)
    const bytes = tuple + at(tuple + 64)
    return body.slice((bytes + 32) * 2, (bytes + 32 + at(bytes)) * 2)
  })
}

/** `(bool success, bytes returnData)[]` without data. */
function encodeResults(flags: readonly boolean[]): Hex {
  const offsets = flags.map((_, place) => word(BigInt(flags.length * 32 + place * 96)))
  const tuples = flags.map((flag) => word(flag ? 1n : 0n) + word(64n) + word(0n))
  return `0x${word(32n)}${word(BigInt(flags.length))}${offsets.join('')}${tuples.join('')}`
}

/** An EIP-1559 transaction. */
function decode(raw: string): Transaction {
  const fields = fromRlp(`0x${raw.slice(4)}`, 'hex')
  const texts = Array.isArray(fields) ? fields.map((each) => (typeof each === 'string' ? each : '0x')) : []
  const [, nonce = '', tip = '', most = '', gas = '', to = '', , data = '', , parity = '', r = '', s = ''] =
    texts
  const hash = keccak256(Buffer.from(raw.slice(2), 'hex'))
  const from = recoverSigner(Buffer.from(unsignedHash(raw, texts), 'hex'), {
    r: `0x${r.slice(2).padStart(64, '0')}`,
    s: `0x${s.slice(2).padStart(64, '0')}`,
    v: numberOf(parity) === 0 ? 27 : 28,
  })
  if (from === undefined) throw new Error('the transaction is not signed')
  return {
    hash: `0x${hash}`,
    from: from.toLowerCase(),
    nonce: Number(numberOf(nonce)),
    tip: BigInt(numberOf(tip)),
    most: BigInt(numberOf(most)),
    gas: BigInt(numberOf(gas)),
    to: to.toLowerCase(),
    data: data.slice(2).toLowerCase(),
  }
}

function numberOf(hex: string): number {
  return hex.length <= 2 ? 0 : Number(BigInt(hex))
}

/** Hash of what is signed: the list without the signature, which is its end. */
function unsignedHash(raw: string, texts: readonly string[]): string {
  const signature = texts.slice(-3).reduce((bytes, text) => bytes + rlpSize(text), 0)
  const bytes = Buffer.from(raw.slice(4), 'hex')
  const head = (bytes[0] ?? 0) >= 0xf8 ? 1 + (bytes[0] ?? 0) - 0xf7 : 1
  const body = bytes.subarray(head, bytes.length - signature)
  const length = body.length
  const prefix =
    length < 56
      ? Buffer.from([0xc0 + length])
      : Buffer.from([
          0xf7 + sizeOf(length),
          ...Buffer.from(length.toString(16).padStart(2 * sizeOf(length), '0'), 'hex'),
        ])
  return keccak256(Buffer.concat([Buffer.from([2]), prefix, body]))
}

function sizeOf(length: number): number {
  return Math.ceil(length.toString(16).length / 2)
}

function rlpSize(text: string): number {
  const bytes = (text.length - 2) / 2
  return bytes === 1 && Number.parseInt(text.slice(2), 16) < 0x80 ? 1 : 1 + bytes
}
