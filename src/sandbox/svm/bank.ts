import { createHash } from 'node:crypto'
import { address, type EncodedAccount, isAddress, lamports } from '@solana/kit'
import { FailedTransactionMetadata, LiteSVM, type TransactionMetadata } from 'litesvm'
import { tokenAccountOf } from '../../engine/base/token-account.ts'
import { Blocks } from './blocks.ts'
import { mintAccount, readMint, readTokenAccount, tokenAccount } from './tokens.ts'
import { errorOf, type TransactionError } from './transaction-error.ts'
import { feeOf, isSigned, type SentTransaction } from './transaction.ts'

/** What a transaction would do. */
export interface Outcome {
  readonly error: TransactionError | undefined
  readonly logs: readonly string[]
  readonly units: bigint
  /** As it leaves them, of a transaction that succeeds. */
  readonly accounts: ReadonlyMap<string, EncodedAccount>
}

/** A transaction in a block. */
export interface Landed {
  readonly sent: SentTransaction
  readonly signature: string
  readonly height: bigint
  /** Seconds since 1970. */
  readonly time: number
  readonly error: TransactionError | undefined
  readonly logs: readonly string[]
  readonly units: bigint
  readonly fee: bigint
  readonly before: Balances
  readonly after: Balances
}

/** Of the accounts of a transaction, in their order. */
interface Balances {
  readonly lamports: readonly bigint[]
  readonly tokens: readonly TokenBalance[]
}

export interface TokenBalance {
  readonly accountIndex: number
  readonly mint: string
  readonly owner: string
  readonly amount: bigint
}

interface BankOptions {
  /** Of the chain; its block hashes follow from it. */
  readonly seed: Uint8Array
  /** Of the token that money is made in. */
  readonly mint: string
  readonly now: () => number
}

const INITIALIZED_ACCOUNT = 1
const SYSTEM_PROGRAM = address('11111111111111111111111111111111')

/** The accounts and the blocks of a chain. */
export class Bank {
  readonly blocks: Blocks
  readonly mint: string
  readonly #now: () => number
  /** It keeps no blocks of its own: time, signatures and repetition are checked here. */
  readonly #machine = new LiteSVM().withBlockhashCheck(false).withSigverify(false).withTransactionHistory(0n)
  readonly #landed = new Map<string, Landed>()
  /** Messages that were executed, each with any signatures. */
  readonly #messages = new Set<string>()
  #waiting: SentTransaction[] = []

  constructor({ seed, mint, now }: BankOptions) {
    this.blocks = new Blocks(seed)
    this.mint = mint
    this.#now = now
    this.#machine.setAccount(mintAccount(mint, 0n))
    this.#tick()
  }

  account(at: string): EncodedAccount | undefined {
    const found = isAddress(at) ? this.#machine.getAccount(at) : undefined
    return found?.exists === true ? found : undefined
  }

  rent(bytes: bigint): bigint {
    return this.#machine.minimumBalanceForRentExemption(bytes)
  }

  landed(signature: string): Landed | undefined {
    return this.#landed.get(signature)
  }

  /** Newest first. */
  landedOf(account: string): Landed[] {
    return [...this.#landed.values()].filter(({ sent }) => sent.accounts.includes(account)).toReversed()
  }

  /** What a node checks before it takes a transaction; undefined when it may be executed. */
  refusal(sent: SentTransaction): TransactionError | undefined {
    if (!this.blocks.isValid(sent.blockhash)) return 'BlockhashNotFound'
    return this.#messages.has(nameOf(sent)) ? 'AlreadyProcessed' : undefined
  }

  /** What the transaction would do now, with any signatures. */
  simulate(sent: SentTransaction): Outcome {
    const result = this.#machine.simulateTransaction(sent.transaction)
    if (result instanceof FailedTransactionMetadata)
      return { error: errorOf(result), accounts: new Map(), ...traceOf(result.meta()) }
    const accounts = result.postAccounts().map((account) => [account.address, account] as const)
    return { error: undefined, accounts: new Map(accounts), ...traceOf(result.meta()) }
  }

  /** Takes a transaction for the next block. */
  take(sent: SentTransaction): void {
    this.#waiting.push(sent)
  }

  /** Makes a block of what was taken. */
  advance(): void {
    this.blocks.advance()
    this.#tick()
    const taken = this.#waiting
    this.#waiting = []
    for (const sent of taken) this.#execute(sent)
  }

  setLamports(at: string, amount: bigint): void {
    if (!isAddress(at)) throw new TypeError(`${at} is no address`)
    const { address: place = at, data = new Uint8Array(), ...rest } = this.account(at) ?? {}
    this.#machine.setAccount({
      programAddress: SYSTEM_PROGRAM,
      executable: false,
      space: 0n,
      ...rest,
      address: place,
      data,
      lamports: lamports(amount),
    })
  }

  /** Makes tokens for an owner, whose token account begins to exist. */
  giveTokens(owner: string, amount: bigint): void {
    const at = tokenAccountOf(owner, this.mint)
    if (at === undefined || !isAddress(at)) throw new TypeError(`${owner} is no address`)
    const found = this.account(at)
    const held = found === undefined ? undefined : readTokenAccount(found)
    const mint = this.account(this.mint)
    const supply = (mint === undefined ? undefined : readMint(mint))?.supply ?? 0n
    this.#machine.setAccount(mintAccount(this.mint, supply + amount))
    this.#machine.setAccount(
      tokenAccount(at, {
        mint: this.mint,
        owner,
        amount: (held?.amount ?? 0n) + amount,
        state: INITIALIZED_ACCOUNT,
      }),
    )
  }

  #execute(sent: SentTransaction): void {
    const { signature } = sent
    if (signature === undefined || !isSigned(sent) || this.refusal(sent) !== undefined) return
    const before = this.#balancesOf(sent)
    const result = this.#machine.sendTransaction(sent.transaction)
    const isFailed = result instanceof FailedTransactionMetadata
    const error = isFailed ? errorOf(result) : undefined
    // Without a fee, no block takes it.
    if (typeof error === 'string') return
    this.#messages.add(nameOf(sent))
    this.#landed.set(signature, {
      sent,
      signature,
      height: this.blocks.height,
      time: this.#seconds(),
      error,
      ...traceOf(isFailed ? result.meta() : result),
      fee: feeOf(sent),
      before,
      after: this.#balancesOf(sent),
    })
  }

  #balancesOf({ accounts }: SentTransaction): Balances {
    const found = accounts.map((at) => this.account(at))
    return {
      lamports: found.map((account) => account?.lamports ?? 0n),
      tokens: found.flatMap((account, accountIndex) => {
        const held = account && readTokenAccount(account)
        return held ? [{ accountIndex, mint: held.mint, owner: held.owner, amount: held.amount }] : []
      }),
    }
  }

  #tick(): void {
    const clock = this.#machine.getClock()
    clock.slot = this.blocks.slot
    clock.unixTimestamp = BigInt(this.#seconds())
    this.#machine.setClock(clock)
  }

  #seconds(): number {
    return Math.floor(this.#now() / 1000)
  }
}

function traceOf(meta: TransactionMetadata): Pick<Outcome, 'logs' | 'units'> {
  return { logs: meta.logs(), units: meta.computeUnitsConsumed() }
}

function nameOf({ transaction }: SentTransaction): string {
  return createHash('sha256').update(Uint8Array.from(transaction.messageBytes)).digest('base64')
}
