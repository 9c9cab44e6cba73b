import { decodeBase58 } from '../../src/engine/base/base58.ts'
import { isJsonObject, type JsonObject } from '../../src/engine/base/json.ts'
import { answerCalls, type Batches, type Reply } from './json-rpc.ts'
import {
  FINAL_AFTER,
  LIFETIME,
  SOLANA,
  type Landed,
  type SimulatedSvmChain,
  type SvmRefusal,
} from './svm-chain.ts'

/** How many blocks old the newest one is that most of the stake has voted for. */
const CONFIRMED_AFTER = 2

/** JSON-RPC over a simulated Solana chain, as a node answers whose newest block is `lag` milliseconds old. */
export class SimulatedSvmNode {
  readonly #chain: SimulatedSvmChain
  lag = 0
  batches: Batches = 'taken'

  constructor(chain: SimulatedSvmChain) {
    this.#chain = chain
  }

  /** Answers a body as text. */
  answer(body: string): unknown {
    return answerCalls(body, this.batches, (method, params) => this.#reply(method, params))
  }

  get #view(): number {
    return this.#chain.now - this.lag
  }

  #reply(method: unknown, [first, second]: readonly unknown[]): Reply {
    const chain = this.#chain
    switch (method) {
      case 'getLatestBlockhash': {
        const height = this.#height('confirmed')
        return inContext({ blockhash: chain.hashAt(height), lastValidBlockHeight: height + LIFETIME })
      }
      case 'getBlockHeight':
        return { result: this.#height(isJsonObject(first) ? first['commitment'] : undefined) }
      case 'simulateTransaction':
        return inContext({ err: chain.refusal(bytesOf(first), this.#view) ?? null })
      case 'sendTransaction': {
        const refusal = chain.refusal(bytesOf(first), this.#view)
        return refusal === undefined ? { result: chain.send(bytesOf(first)) } : failed(refusal)
      }
      case 'getSignatureStatuses':
        return inContext(Array.isArray(first) ? first.map((each: unknown) => this.#status(each)) : [])
      case 'getSignaturesForAddress':
        return { result: this.#signatures(String(first), second) }
      case 'getTransaction': {
        const landed = this.#confirmed(String(first))
        return { result: landed === undefined ? null : this.#shown(landed) }
      }
      case 'getAccountInfo':
        return inContext(this.#account(String(first)))
      default:
        return { error: { code: -32601, message: 'the method is unknown' } }
    }
  }

  #height(commitment: unknown): number {
    return this.#chain.heightAt(this.#view) - (commitment === 'finalized' ? FINAL_AFTER : CONFIRMED_AFTER)
  }

  #status(signature: unknown): JsonObject | null {
    const landed = this.#chain.landed(String(signature))
    if (landed === undefined || landed.at > this.#view) return null
    const confirmationStatus = landed.confirmedAt <= this.#view ? 'confirmed' : 'processed'
    return { err: landed.succeeded ? null : 'failed', confirmationStatus }
  }

  #confirmed(signature: string): Landed | undefined {
    const landed = this.#chain.landed(signature)
    return landed !== undefined && landed.confirmedAt <= this.#view ? landed : undefined
  }

  #signatures(account: string, options: unknown): JsonObject[] {
    const all = this.#chain.of(account).filter(({ confirmedAt }) => confirmedAt <= this.#view)
    const before = isJsonObject(options) ? options['before'] : undefined
    const start = all.findIndex(({ signature }) => signature === before) + 1
    return all.slice(start, start + 100).map(({ signature, succeeded, at }) => ({
      signature,
      err: succeeded ? null : 'failed',
      blockTime: Math.floor(at / 1_000),
    }))
  }

  #shown({ bytes, at, succeeded }: Landed): JsonObject {
    return {
      slot: this.#chain.heightAt(at),
      transaction: [Buffer.from(bytes).toString('base64'), 'base64'],
      meta: { err: succeeded ? null : 'failed', preTokenBalances: [], postTokenBalances: [] },
    }
  }

  #account(address: string): JsonObject | null {
    const account = this.#chain.account(address)
    if (account === undefined) return null
    const data = Buffer.alloc(165)
    data.set(decodeBase58(SOLANA.token.address, 32) ?? [])
    data.set(decodeBase58(account.owner, 32) ?? [], 32)
    data.writeBigUInt64LE(account.amount, 64)
    return { data: [data.toString('base64'), 'base64'] }
  }
}

function inContext(value: unknown): Reply {
  return { result: { context: { slot: 0 }, value } }
}

function failed(refusal: SvmRefusal): Reply {
  const reason = typeof refusal === 'string' ? refusal : JSON.stringify(refusal)
  return { error: { code: -32002, message: `Transaction simulation failed: ${reason}` } }
}

function bytesOf(text: unknown): Uint8Array {
  return Buffer.from(String(text), 'base64')
}
