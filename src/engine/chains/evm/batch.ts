import type { Address } from '../../address.ts'
import { CommitAbandonedError, JointCommit } from '../../ledger/lease.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { allocate, type NonceState } from './account.ts'
import { word, type Chain, type Sender } from './chain.ts'
import type { Clock } from '../../runtime.ts'
import type {
  Payer,
  Ready,
  SendResult,
  Signed,
  SignerBusy,
  Submission,
  TransactionCall,
  Waiting,
} from './transaction.ts'

/** Multicall3, at the same address on every network of the table: https://github.com/mds1/multicall3. */
export const MULTICALL3: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'
/** Most calls of a batch: few enough to be signed quickly and to fit into every block. */
export const MOST_CALLS = 32
/** `aggregate3((address target, bool allowFailure, bytes callData)[])` */
const AGGREGATE = '82ad56cb'

/**
 * Gas of a batch of token transfers by signature. A transfer in a batch of 32 uses 39,200 (66,100 alone); the first
 * to a payee and a cold token cost more. The reserve is small on purpose: it is what a payer could burn whose
 * account gets code between the simulation and the block.
 */
const GAS_BATCH = 60_000n
const GAS_MEMBER = 70_000n
/** Most a member without code uses that moves nothing, with its part of the batch. */
const GAS_REVERTED = 50_000n
/** Most payers without a settled payment that share a transaction. */
const MOST_NEW = 8

function gasOfBatch(members: number): bigint {
  return GAS_BATCH + GAS_MEMBER * BigInt(members)
}

type Call = Pick<TransactionCall, 'to' | 'data'>

/** Calldata of one transaction with these calls; one that fails does not revert the others. */
function encodeBatch(calls: readonly Call[]): `0x${string}` {
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

/** How long a check may delay other requests, and how long it may take by itself. */
export const CHECK_IN_BATCH_MS = 400
export const CHECK_ALONE_MS = 5_000
/** How long to wait before asking again for a contract that is missing, or after a node that did not answer. */
const LOOK_MS = 600_000
/** How long calls are sent one by one after a batch that failed for no fault of its members. */
const PAUSE_MS = 600_000

/** The batch contract of one chain. */
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

interface Simulation<T> {
  readonly call: Call
  readonly sender: Omit<Sender, 'gas'>
  /** Simulates the call by itself, with a reason when it fails. */
  readonly alone: () => Promise<T>
  readonly resolve: (outcome: T | 'passed' | Promise<T>) => void
}

/**
 * Groups simulations of calls: the first is sent at once, and those that arrive before its answer are sent together.
 * A call that fails in a group is simulated by itself.
 */
export class SimulationQueue<T> {
  readonly #multicall: Multicall
  readonly #sleep: Clock['sleep']
  #waiting: Simulation<T>[] = []
  #isBusy = false

  constructor(multicall: Multicall, { sleep }: Pick<Clock, 'sleep'>) {
    this.#multicall = multicall
    this.#sleep = sleep
  }

  simulate(simulation: Omit<Simulation<T>, 'resolve'>): Promise<T | 'passed'> {
    return new Promise((resolve) => {
      this.#waiting.push({ ...simulation, resolve })
      if (!this.#isBusy) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, MOST_CALLS)
      const passed = await this.#simulate(group)
      const rest = group.filter((_, place) => passed[place] !== true)
      const outcomes = rest.map(({ alone, resolve }) => {
        const outcome = alone()
        resolve(outcome)
        return outcome
      })
      for (const [place, { resolve }] of group.entries()) if (passed[place] === true) resolve('passed')
      await Promise.race([Promise.allSettled(outcomes), this.#sleep(CHECK_IN_BATCH_MS)])
    }
    this.#isBusy = false
  }

  async #simulate(group: readonly Simulation<T>[]): Promise<readonly boolean[]> {
    const [first, ...others] = group
    if (first === undefined || others.length === 0 || !this.#multicall.isAvailable) return []
    const calls = group.map(({ call }) => call)
    return (await this.#multicall.simulate(calls, first.sender, CHECK_IN_BATCH_MS)) ?? []
  }
}

/** A transaction with one request. */
export function single(request: Ready): Submission {
  return { members: [request], call: request.request, price: request.price }
}

/** One transaction for several requests; a single request is sent alone. */
export function batchOf(members: readonly Ready[]): readonly Submission[] {
  const [first, ...others] = members
  if (first === undefined) return []
  if (others.length === 0) return [single(first)]
  const requests = members.map(({ request }) => request)
  const call = {
    to: MULTICALL3,
    data: encodeBatch(requests),
    gas: gasOfBatch(members.length),
    maxFeePerGas: requests.reduce(
      (least, { maxFeePerGas }) => (maxFeePerGas < least ? maxFeePerGas : least),
      first.request.maxFeePerGas,
    ),
    // Requests that expire earlier fail by themselves in a later block.
    expires: Math.max(...requests.map(({ expires }) => expires)),
  }
  return [{ members, call, price: first.price }]
}

/**
 * Divides requests into transactions: they share one if their simulation in one call succeeds and their payers'
 * accounts have no code, which could use up the gas of all. Each other request is sent alone, with its own gas
 * limit.
 */
export async function group(
  ready: readonly Ready[],
  multicall: Multicall,
  from: Ready['request']['to'],
): Promise<{ readonly together: readonly Ready[]; readonly alone: readonly Ready[] }> {
  const candidates = ready.filter(({ request }) => request.payer !== undefined)
  const [first] = candidates
  if (first === undefined || candidates.length === 1 || !multicall.isAvailable)
    return { together: [], alone: ready }
  const requests = candidates.map(({ request }) => request)
  const payers = requests.flatMap(({ payer }) => payer?.address ?? [])
  const [passed, withCode] = await Promise.all([
    multicall.simulate(requests, { from, ...first.price }, CHECK_IN_BATCH_MS),
    multicall.withCode(payers, CHECK_IN_BATCH_MS),
  ])
  if (passed === undefined || withCode === undefined) return { together: [], alone: ready }
  const together = candidates.filter(
    ({ request: { payer } }, place) =>
      passed[place] === true && payer !== undefined && !withCode.has(payer.address),
  )
  if (together.length < 2) return { together: [], alone: ready }
  const shared = new Set(together)
  return { together, alone: ready.filter((each) => !shared.has(each)) }
}

/** Requests that share a transaction: new payers few, since one of them can burn the gas of all. */
export function batchesOf(together: readonly Ready[]): readonly (readonly Ready[])[] {
  const of = (standing: Payer['standing']): readonly Ready[] =>
    together.filter(({ request }) => request.payer?.standing === standing)
  const fresh = of('new')
  const few = Array.from({ length: Math.ceil(fresh.length / MOST_NEW) }, (_, place) =>
    fresh.slice(place * MOST_NEW, (place + 1) * MOST_NEW),
  )
  return [of('known'), ...few].filter(({ length }) => length > 0)
}

/**
 * Gas that one request of a transaction with so many can lose. A new payer may put code on the account between the
 * simulation and the block, and burn its part of the limit; an account that has settled before is counted as one that
 * reverts.
 */
export function gasAtRisk({ request }: Ready, members: number): bigint {
  if (members === 1) return request.gas
  return request.payer?.standing === 'known' ? GAS_REVERTED : gasOfBatch(members) / BigInt(members)
}

/** Margin after the last expiry of the batch's payments, longer than any request waits for them. */
const KEPT_MS = 60_000
const LONGEST_MS = 3_600_000

/** Stores the bytes of a batch once for all its payments, since they may have to be sent again. */
async function keepBatch(ledger: Ledger, { call, transaction: { hash, raw } }: Signed): Promise<void> {
  const now = ledger.now()
  await ledger.addExpiring(nameOf(hash), raw, Math.min(call.expires, now + LONGEST_MS) + KEPT_MS)
}

/** Resolves to whether the batch will not be sent again. */
export async function forgetBatch(ledger: Ledger, { members, transaction }: Signed): Promise<boolean> {
  if (members.length === 1) return true
  const { hash, raw } = transaction
  return ledger.addExpiring(nameOf(hash), raw, 0).then(
    () => true,
    () => false,
  )
}

/** The signed bytes of a batch; undefined after its payments have ended. */
export async function findBatch(ledger: Ledger, hash: string): Promise<string | undefined> {
  const [raw] = await ledger.listExpiring(nameOf(hash), ledger.now())
  return raw
}

function nameOf(hash: string): string {
  return `batch:${hash}`
}

/**
 * Signs and records each transaction before it is sent. A transaction that cannot be recorded would leave a gap in
 * the nonces, so later ones are signed again.
 */
export async function persist(
  ledger: Ledger,
  submissions: readonly Submission[],
  nonces: NonceState,
  sign: (submission: Submission, nonce: number) => Signed,
): Promise<readonly Signed[]> {
  const recorded: Signed[] = []
  let rest = submissions
  while (rest.length > 0) {
    const free = allocate(nonces, recorded.length + rest.length).slice(recorded.length)
    const signed = rest.flatMap((each, place) => {
      const nonce = free[place]
      return nonce === undefined ? [] : [sign(each, nonce)]
    })
    const written = await Promise.all(signed.map((each) => record(ledger, each)))
    const gap = written.findIndex((outcome) => outcome !== 'recorded')
    const end = gap === -1 ? rest.length : gap
    const left = written[gap] ?? 'recorded'
    recorded.push(...signed.slice(0, end))
    rest = [...(left === 'recorded' ? [] : left), ...rest.slice(end + 1)]
  }
  return recorded
}

/** Rejects requests whose record fails; resolves to the remaining ones, which must be signed again. */
async function record(ledger: Ledger, signed: Signed): Promise<'recorded' | readonly Submission[]> {
  const { members, transaction } = signed
  const { raw: _raw, ...named } = transaction
  const joint = members.length === 1 ? undefined : new JointCommit(ledger, members.length)
  const dispatch = joint === undefined ? transaction : { ...named, members: members.length }
  try {
    if (joint !== undefined) await keepBatch(ledger, signed)
  } catch (fault) {
    for (const { reject } of members) reject(fault)
    return []
  }
  const written = await Promise.allSettled(
    members.map(async ({ request: { journal } }) => {
      try {
        await journal.record(dispatch, joint)
      } catch (fault) {
        joint?.abandon()
        throw fault
      }
    }),
  )
  const faults = written.map((each) => (each.status === 'rejected' ? [each.reason] : []))
  if (faults.every((fault) => fault.length === 0)) return 'recorded'
  const left = members.filter(({ reject }, place) => {
    const [fault] = faults[place] ?? []
    if (fault === undefined || fault instanceof CommitAbandonedError) return true
    reject(fault)
    return false
  })
  // When no member is at fault, each is sent alone to find the cause.
  return left.length < members.length ? batchOf(left) : left.map(single)
}

/** Resolves every request with the same result. */
export function answer(waiting: readonly Waiting[], result: SendResult | SignerBusy): readonly [] {
  for (const { resolve } of waiting) resolve(result)
  return []
}
