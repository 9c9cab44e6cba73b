import type { Address } from '../../base/address.ts'
import type { Clock } from '../../base/poll.ts'
import { word } from './abi.ts'
import type { Chain, Sender } from './chain.ts'
import type { TransactionCall } from './transaction.ts'

/** Multicall3, at the same address on every network of the table: https://github.com/mds1/multicall3. */
export const MULTICALL3: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'

/** Most calls of a batch: 48 kB of calldata, where nodes take 128. */
export const MOST_CALLS = 100
/** Most gas of one transaction on Ethereum and the networks that follow it (EIP-7825). */
const MOST_GAS = 2n ** 24n

/** `aggregate3((address target, bool allowFailure, bytes callData)[])` */
const AGGREGATE = '82ad56cb'

/**
 * Gas of a batch of token transfers by signature. A transfer in a batch of 32 uses 39,200 (66,100 alone); the first
 * to a payee and a cold token cost more. The reserve is small on purpose: it is what a payer could burn whose
 * account gets code between the simulation and the block.
 */
const GAS_BATCH = 60_000n

const GAS_MEMBER = 70_000n

export function gasOfBatch(members: number): bigint {
  return GAS_BATCH + GAS_MEMBER * BigInt(members)
}

/** Calls whose gas one transaction may use: half of a block at most, since others want a place in it too. */
export function mostCalls(blockGas: bigint = 2n * MOST_GAS): number {
  const gas = blockGas / 2n < MOST_GAS ? blockGas / 2n : MOST_GAS
  return Math.max(1, Math.min(MOST_CALLS, Number((gas - GAS_BATCH) / GAS_MEMBER)))
}

export type Call = Pick<TransactionCall, 'to' | 'data'>

/** Calldata of one transaction with these calls; one that fails does not revert the others. */
export function encodeBatch(calls: readonly Call[]): `0x${string}` {
  const tuples = calls.map(({ to, data }) => {
    const digits = data.slice(2)
    const bytes = word(BigInt(digits.length / 2)) + digits.padEnd(Math.ceil(digits.length / 64) * 64, '0')
    return word(to) + word(1n) + word(96n) + bytes
  })
  let offset = calls.length * 32
  const offsets = tuples.map((tuple) => {
    const start = word(BigInt(offset))
    offset += tuple.length / 2
    return start
  })
  return `0x${AGGREGATE}${word(32n)}${word(BigInt(calls.length))}${offsets.join('')}${tuples.join('')}`
}

/** Which calls have succeeded, from `(bool success, bytes returnData)[]`; undefined when it cannot be decoded. */
function decodeBatch(result: `0x${string}`, calls: number): readonly boolean[] | undefined {
  const at = (byte: number): number => Number.parseInt(result.slice(2 + byte * 2, 2 + byte * 2 + 64), 16)
  const list = at(0) + 32
  if (at(at(0)) !== calls) return undefined
  const flags = Array.from({ length: calls }, (_, place) => at(list + at(list + place * 32)))
  return flags.every((flag) => flag === 0 || flag === 1) ? flags.map((flag) => flag === 1) : undefined
}

/**
 * Init code that returns the size of the code of every address that follows it, a word each:
 * CODECOPY of the words to memory, then from the last to the first MSTORE(i, EXTCODESIZE(MLOAD(i))), and RETURN.
 */
const CODE_SIZES = '601f380380601f600039805b8015601d576020900380513b8152600b565bf3'

/** How long a check of one request may delay the others. */
export const CHECK_IN_BATCH_MS = 400
/** How much longer a check of several may take, for each of them. */
const CHECK_MEMBER_MS = 10

/** How long a check of so many requests may delay the others, in milliseconds. */
export function checkTime(requests: number): number {
  return CHECK_IN_BATCH_MS + CHECK_MEMBER_MS * requests
}

/** How long a check may take that delays no other. */
export const CHECK_ALONE_MS = 5_000

/** How long to wait before asking again for a contract that is missing, or after a node that did not answer. */
const LOOK_MS = 600_000

/** How long calls are sent one by one after a batch that failed although its members were right. */
const PAUSE_MS = 600_000

/** The batch contract of one chain. `timeout` is in milliseconds. */
export class Multicall {
  readonly #chain: Chain
  readonly #now: () => number
  #lookedAt = -Infinity
  #found = false
  #pausedUntil = 0

  constructor(chain: Chain, { now }: Pick<Clock, 'now'>) {
    this.#chain = chain
    this.#now = now
  }

  /** Whether the contract exists, as far as known; a missing answer is fetched in the background. */
  get isAvailable(): boolean {
    if (!this.#found && this.#now() - this.#lookedAt >= LOOK_MS) void this.look()
    return this.#found && this.#now() >= this.#pausedUntil
  }

  async look(): Promise<void> {
    this.#lookedAt = this.#now()
    const found = await this.withCode([MULTICALL3], CHECK_ALONE_MS)
    this.#found = found?.has(MULTICALL3) === true
  }

  pause(): void {
    this.#pausedUntil = this.#now() + PAUSE_MS
  }

  /** Which calls would succeed in one transaction, in this order; undefined when the node does not answer. */
  async simulate(
    calls: readonly Call[],
    sender: Omit<Sender, 'gas'>,
    timeout: number,
  ): Promise<readonly boolean[] | undefined> {
    const limits = { ...sender, gas: gasOfBatch(calls.length) }
    const answer = await this.#chain.callTogether(MULTICALL3, encodeBatch(calls), limits, timeout)
    return answer.kind === 'result' ? decodeBatch(answer.result, calls.length) : undefined
  }

  /** The accounts with code, including delegations by EIP-7702; undefined when the node does not answer. */
  async withCode(accounts: readonly Address[], timeout: number): Promise<ReadonlySet<Address> | undefined> {
    const answer = await this.#chain.run(`0x${CODE_SIZES}${accounts.map(word).join('')}`, timeout)
    if (answer.kind !== 'result' || answer.result.length !== 2 + accounts.length * 64) return undefined
    const { result } = answer
    return new Set(
      accounts.filter((_, place) => !/^0*$/.test(result.slice(2 + place * 64, 2 + place * 64 + 64))),
    )
  }
}
