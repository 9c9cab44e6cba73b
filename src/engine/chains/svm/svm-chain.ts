import { encodeBase58 } from '../../base/base58.ts'
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts'
import { type Deadline, type RpcTransport, systemRuntime } from '../../base/runtime.ts'
import { createRpc, type Rpc, type RpcAnswer } from '../evm/json-rpc.ts'

/** What became of a transaction in a block that most of the stake has voted for. */
export type SvmStatus =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed' }
  /** In a block that is not confirmed. */
  | { readonly kind: 'processed' }
  | { readonly kind: 'none' }

/** What a simulation has shown. `error`: as the node writes it. */
export type SvmSimulation = { readonly kind: 'passed' } | { readonly kind: 'failed'; readonly error: Json }

/** How sure a block is: `confirmed` by votes, `finalized` when nothing can undo it. */
type Commitment = 'confirmed' | 'finalized'

/** A transaction that a search has found. */
export interface FoundTransaction {
  readonly signature: string
  readonly succeeded: boolean
  /** Seconds since the epoch; undefined when the node does not know. */
  readonly time: number | undefined
}

/** A transaction in a confirmed block. */
export interface LandedTransaction {
  readonly bytes: Uint8Array
  readonly slot: bigint
  readonly succeeded: boolean
  readonly changes: readonly TokenChange[]
}

/** What a transaction has added to the tokens of an owner, or taken from them. */
export interface TokenChange {
  readonly owner: string
  readonly mint: string
  /** Atomic units. */
  readonly amount: bigint
}

/** One Solana network, as a node shows it over JSON-RPC. */
export class SvmChain {
  readonly #rpc: Rpc

  constructor(url: string, caller: RpcTransport, deadline: Deadline = systemRuntime.deadline) {
    this.#rpc = createRpc(url, caller, deadline)
  }

  genesisHash(): Promise<RpcAnswer<string>> {
    return this.#rpc.ask('getGenesisHash', [], asText)
  }

  /** `ok`, unless the node is behind the others. */
  health(): Promise<RpcAnswer<string>> {
    return this.#rpc.ask('getHealth', [], asText)
  }

  /** Lamports. */
  balance(address: string): Promise<RpcAnswer<bigint>> {
    return this.#rpc.ask('getBalance', [address, CONFIRMED], inContext(asCount))
  }

  /** Owner, mint and balance of a token account; null when there is none at this address. */
  tokenAccount(address: string): Promise<RpcAnswer<TokenAccount | null>> {
    return this.#rpc.ask(
      'getAccountInfo',
      [address, { ...CONFIRMED, encoding: 'base64' }],
      inContext(asTokenAccount),
    )
  }

  /** The last height at which a block can contain a transaction with the newest blockhash. */
  async lastValidHeight(): Promise<RpcAnswer<bigint>> {
    const answer = await this.latestBlockhash()
    return answer.kind === 'result' ? { kind: 'result', result: answer.result.lastHeight } : answer
  }

  latestBlockhash(): Promise<RpcAnswer<Lifetime>> {
    return this.#rpc.ask('getLatestBlockhash', [CONFIRMED], inContext(asLifetime))
  }

  height(commitment: Commitment): Promise<RpcAnswer<bigint>> {
    return this.#rpc.ask('getBlockHeight', [{ commitment }], asCount)
  }

  /** Whether a block can still contain a transaction with this hash. */
  isValid(blockhash: string, commitment: Commitment): Promise<RpcAnswer<boolean>> {
    return this.#rpc.ask(
      'isBlockhashValid',
      [blockhash, { commitment }],
      inContext((value) => (typeof value === 'boolean' ? value : undefined)),
    )
  }

  /** Runs a transaction in base64 without its signatures, and with its own blockhash. */
  simulate(transaction: string, timeout: number): Promise<RpcAnswer<SvmSimulation>> {
    return this.#rpc.askAlone(
      'simulateTransaction',
      [transaction, { ...CONFIRMED, encoding: 'base64', sigVerify: false }],
      inContext(asSimulation),
      timeout,
    )
  }

  /** Resolves to the signature. The node simulates it first, and sends nothing when that fails. */
  send(transaction: string): Promise<RpcAnswer<string>> {
    return this.#rpc.askAlone(
      'sendTransaction',
      [transaction, { encoding: 'base64', preflightCommitment: 'confirmed', maxRetries: 0 }],
      asText,
    )
  }

  status(signature: string): Promise<RpcAnswer<SvmStatus>> {
    return this.#rpc.ask(
      'getSignatureStatuses',
      [[signature], { searchTransactionHistory: true }],
      inContext((value) => (Array.isArray(value) ? asStatus(value[0]) : undefined)),
    )
  }

  /** The newest transactions that name an account, newest first; `before`: those older than this one. */
  transactionsOf(address: string, before?: string): Promise<RpcAnswer<readonly FoundTransaction[]>> {
    return this.#rpc.ask(
      'getSignaturesForAddress',
      [address, { ...CONFIRMED, limit: SEARCHED_AT_ONCE, ...(before === undefined ? {} : { before }) }],
      asFound,
    )
  }

  /** Null when the node does not know it. */
  transaction(signature: string): Promise<RpcAnswer<LandedTransaction | null>> {
    return this.#rpc.ask(
      'getTransaction',
      [signature, { ...CONFIRMED, encoding: 'base64', maxSupportedTransactionVersion: 0 }],
      asLanded,
    )
  }
}

/** How long a block can contain a transaction. */
interface Lifetime {
  readonly blockhash: string
  readonly lastHeight: bigint
}

export interface TokenAccount {
  readonly mint: string
  readonly owner: string
  /** Atomic units. */
  readonly amount: bigint
}

export const SEARCHED_AT_ONCE = 100

const CONFIRMED = { commitment: 'confirmed' } as const

function asText(result: unknown): string | undefined {
  return typeof result === 'string' ? result : undefined
}

function asCount(result: unknown): bigint | undefined {
  return typeof result === 'number' && Number.isSafeInteger(result) && result >= 0
    ? BigInt(result)
    : undefined
}

/** The value of an answer that names the slot it is of. */
function inContext<T>(read: (value: unknown) => T | undefined): (result: unknown) => T | undefined {
  return (result) => (isJsonObject(result) ? read(result['value']) : undefined)
}

function asSimulation(value: unknown): SvmSimulation | undefined {
  if (!isJsonObject(value)) return undefined
  const { err } = value
  return err === null || err === undefined ? { kind: 'passed' } : { kind: 'failed', error: err }
}

function asStatus(value: unknown): SvmStatus | undefined {
  if (value === null) return { kind: 'none' }
  if (!isJsonObject(value)) return undefined
  const { err, confirmationStatus } = value
  if (confirmationStatus !== 'confirmed' && confirmationStatus !== 'finalized') return { kind: 'processed' }
  return err === null || err === undefined ? { kind: 'succeeded' } : { kind: 'failed' }
}

function asFound(result: unknown): readonly FoundTransaction[] | undefined {
  if (!Array.isArray(result)) return undefined
  return result.filter(isJsonObject).flatMap(({ signature, err, blockTime }): FoundTransaction[] =>
    typeof signature === 'string'
      ? [
          {
            signature,
            succeeded: err === null || err === undefined,
            time: typeof blockTime === 'number' ? blockTime : undefined,
          },
        ]
      : [],
  )
}

function asLifetime(value: unknown): Lifetime | undefined {
  const { blockhash, lastValidBlockHeight } = isJsonObject(value) ? value : {}
  const lastHeight = asCount(lastValidBlockHeight)
  return typeof blockhash !== 'string' || lastHeight === undefined ? undefined : { blockhash, lastHeight }
}

function asLanded(result: unknown): LandedTransaction | null | undefined {
  if (result === null) return null
  const { transaction, slot: place, meta } = isJsonObject(result) ? result : {}
  const slot = asCount(place)
  if (!Array.isArray(transaction) || typeof transaction[0] !== 'string') return undefined
  if (slot === undefined || !isJsonObject(meta)) return undefined
  const { err, preTokenBalances, postTokenBalances } = meta
  return {
    bytes: Buffer.from(transaction[0], 'base64'),
    slot,
    succeeded: err === null || err === undefined,
    changes: [...asChanges(preTokenBalances, -1n), ...asChanges(postTokenBalances, 1n)],
  }
}

function asChanges(balances: unknown, sign: bigint): TokenChange[] {
  if (!Array.isArray(balances)) return []
  return balances.filter(isJsonObject).flatMap(({ owner, mint, uiTokenAmount }) => {
    const { amount } = isJsonObject(uiTokenAmount) ? uiTokenAmount : {}
    if (typeof owner !== 'string' || typeof mint !== 'string' || typeof amount !== 'string') return []
    return /^\d+$/.test(amount) ? [{ owner, mint, amount: sign * BigInt(amount) }] : []
  })
}

/** Layout of SPL Token: mint, owner, amount. */
function asTokenAccount(value: unknown): TokenAccount | null | undefined {
  if (value === null) return null
  const bytes = isJsonObject(value) ? dataOf(value) : undefined
  if (bytes === undefined) return undefined
  if (bytes.length < 72) return null
  return {
    mint: encodeBase58(bytes.subarray(0, 32)),
    owner: encodeBase58(bytes.subarray(32, 64)),
    amount: bytes.readBigUInt64LE(64),
  }
}

function dataOf({ data }: JsonObject): Buffer | undefined {
  return Array.isArray(data) && typeof data[0] === 'string' ? Buffer.from(data[0], 'base64') : undefined
}
