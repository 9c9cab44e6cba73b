import { keccak256 } from 'js-sha3'
import { fromRlp, type Hex } from '../../src/vendor/viem.ts'
import { recoverSigner } from '../../src/engine/chains/evm/signature.ts'
import { MULTICALL3 } from '../../src/engine/chains/evm/multicall.ts'
import { TRANSFER } from '../../src/engine/chains/evm/transfer-log.ts'
import {
  balanceName,
  callsOf,
  Contracts,
  Draft,
  type Called,
  type Log,
  type PayersAct,
  type State,
} from './contracts.ts'

export const BLOCK_MS = 2_000
const GAS_REVERT = 34_000n
const GAS_FILLER = 21_000n
/** Most transactions in a block. */
const ROOM = 20

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

export interface Block {
  readonly number: number
  readonly hash: Hex
  /** Seconds since the epoch. */
  readonly timestamp: number
  readonly baseFee: bigint
  readonly mined: readonly Mined[]
  readonly transactions: readonly Transaction[]
  readonly outside: readonly PayersAct[]
  readonly touched: readonly History[]
}

/** A value by block: what a reorganisation undoes is cut off. */
class History {
  readonly #values: { readonly block: number; readonly value: bigint }[] = []

  at(block: number): bigint | undefined {
    return this.#values.findLast((each) => each.block <= block)?.value
  }

  set(block: number, value: bigint): void {
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

/** A chain; its users are accounts that pay gas, and payers who sign, or act without paying for it. */
export class SimulatedChain {
  readonly contracts: Contracts
  readonly #chainId: number
  readonly #blocks: Block[] = []
  readonly #pool = new Map<string, Transaction>()
  readonly #acts: PayersAct[] = []
  readonly #values = new Map<string, History>()
  readonly #coins = new Map<string, bigint>()
  /** Accounts whose gas is not ours. */
  readonly #others = new Set<string>()
  #salt = 0
  #baseFee = 10_000_000n

  constructor(token: string, chainId: number, time: number) {
    this.contracts = new Contracts(token, chainId)
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

  /** Transactions in the pool of accounts that have one in a block since a time, in milliseconds since the epoch. */
  waitingOfUsed(since: number): number {
    const recent = this.#blocks.filter(({ timestamp }) => timestamp * 1000 >= since)
    const used = new Set(recent.flatMap(({ transactions }) => transactions.map(({ from }) => from)))
    return [...this.#pool.values()].filter(({ from }) => used.has(from)).length
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
    this.set(balanceName(payer), amount)
  }

  /** Changes what contracts keep, from now on and for ever. */
  set(name: string, value: bigint): void {
    keyed(this.#values, name).set(this.head.number, value)
  }

  /** What contracts keep under a name. */
  get(name: string, block: number = this.head.number): bigint {
    return this.#values.get(name)?.at(block) ?? 0n
  }

  coin(account: string): bigint {
    return this.#coins.get(account.toLowerCase()) ?? 0n
  }

  happen(act: PayersAct): void {
    this.#acts.push(act)
  }

  nonce(account: string, block: number): number {
    return Number(this.get(accountName(account), block))
  }

  /** The next nonce, with the pool. */
  pending(account: string): number {
    let next = this.nonce(account, this.head.number)
    const nonces = new Set(this.#of(account).map(({ nonce }) => nonce))
    while (nonces.has(next)) next += 1
    return next
  }

  find(hash: string): { readonly block: Block; readonly mined: Mined } | undefined {
    for (let number = this.head.number; number >= 0 && number > this.head.number - 2_000; number -= 1) {
      const block = this.#blocks[number]
      const mined = block?.mined.find((each) => each.hash === hash)
      if (block !== undefined && mined !== undefined) return { block, mined }
    }
    return undefined
  }

  /** A transaction in the pool or in a block. */
  transaction(hash: string): Pick<Transaction, 'to' | 'data'> | undefined {
    const waiting = this.#pool.get(hash)
    return waiting ?? this.find(hash)?.block.transactions.find((each) => each.hash === hash)
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

  /** The pool takes a call of somebody else, who pays what it costs. */
  submit(account: string, to: string, data: Hex): Hex {
    const from = account.toLowerCase()
    const nonce = this.pending(from)
    this.#salt += 1
    const hash: Hex = `0x${keccak256(`${from} ${nonce} ${this.#salt}`)}`
    const most = this.#baseFee * 2n
    const call = { to: to.toLowerCase(), data: data.slice(2).toLowerCase() }
    this.#others.add(from)
    this.#pool.set(hash, { hash, from, nonce, tip: 1n, most, gas: 200_000n, ...call })
    return hash
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
    const outside = this.#acts.splice(0)
    const block = {
      number,
      hash,
      timestamp,
      baseFee,
      mined,
      transactions,
      outside,
      touched: new Array<History>(),
    }
    this.#blocks.push(block)
    for (const each of outside) mined.push(this.#act(each, block))
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
      this.#acts.push(...outside)
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
        if (sent === undefined || sent.data === '' || this.#others.has(sent.from)) return []
        const isBatch = sent.to === MULTICALL3.toLowerCase()
        const calls = isBatch ? callsOf(sent.data).length : 1
        const transfers = each.logs.filter(({ topics }) => topics[0] === TRANSFER).length
        const moved = isBatch ? transfers : each.succeeded ? 1 : 0
        const wei = (each.gasUsed * each.price * BigInt(calls - moved)) / BigInt(calls)
        return wei === 0n ? [] : [{ at: timestamp * 1000, wei }]
      }),
    )
  }

  /** What a call would do in the next block, and the gas it would use. */
  call(
    from: string,
    to: string,
    data: string,
    view: number,
  ): { readonly called: Called; readonly gas: bigint } {
    const state = new Draft({ get: (name) => this.get(name, view) })
    const timestamp = this.head.timestamp + 1
    const frame = { state, sender: from.toLowerCase(), timestamp, logs: new Array<Log>(), gas: 0n }
    const called = this.contracts.run(frame, to, data.slice(2))
    return { called, gas: frame.gas + GAS_FILLER }
  }

  logs(
    address: string,
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
            log.address === address.toLowerCase() &&
            topics.every((any, place) => any === null || any.includes(log.topics[place] ?? ''))
          )
            found.push({ log, block, hash })
    }
    return found
  }

  #of(account: string): Transaction[] {
    return [...this.#pool.values()].filter(({ from }) => from === account.toLowerCase())
  }

  /** What contracts keep, in a block that is being made. */
  #stateOf({ number, touched }: Touched): State {
    return {
      get: (name) => this.get(name, number),
      set: (name, value) => {
        const history = keyed(this.#values, name)
        history.set(number, value)
        touched.push(history)
      },
    }
  }

  #act(act: PayersAct, block: Touched & Block): Mined {
    const { from } = act
    const hash: Hex = `0x${keccak256(`outside ${block.number} ${block.touched.length} ${this.#salt}`)}`
    const logs: Log[] = []
    const frame = {
      state: this.#stateOf(block),
      sender: from.toLowerCase(),
      timestamp: block.timestamp,
      logs,
      gas: 0n,
    }
    this.contracts.act(frame, act)
    return { hash, from, succeeded: true, gasUsed: 0n, price: 0n, logs }
  }

  #execute({ hash, from, nonce, to, data, gas, most, tip }: Transaction, block: Touched & Block): Mined {
    const state = this.#stateOf(block)
    state.set(accountName(from), BigInt(nonce + 1))
    const price = most < block.baseFee + tip ? most : block.baseFee + tip
    const logs: Log[] = []
    const frame = { state, sender: from, timestamp: block.timestamp, logs, gas: 0n }
    const called = data === '' ? undefined : this.contracts.run(frame, to, data)
    const succeeded = called?.kind !== 'reverted'
    const gasUsed = called === undefined ? GAS_FILLER : succeeded ? frame.gas : GAS_REVERT
    if (gasUsed > gas) throw new Error('a transaction of ours has too little gas')
    this.#coins.set(from, this.coin(from) - gasUsed * price)
    return { hash, from, succeeded, gasUsed, price, logs }
  }
}

type Touched = Pick<Block, 'number'> & { readonly touched: History[] }

function accountName(account: string): string {
  return `account ${account}`.toLowerCase()
}

function keyed(histories: Map<string, History>, key: string): History {
  const known = histories.get(key)
  if (known !== undefined) return known
  const fresh = new History()
  histories.set(key, fresh)
  return fresh
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
