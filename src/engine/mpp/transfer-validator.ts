import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Address } from '../base/address.ts'
import type { Refusal } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'

/** What a transaction has to do to pay a challenge. */
export interface Demand {
  readonly chainId: number
  readonly currency: string
  readonly recipient: string
  /** Atomic units. */
  readonly amount: string
  readonly realm: string
  readonly challengeId: string
}

/** A transaction that would pay the demand, shown to be its payer’s. */
export interface SignedTransfer {
  /** In the encoding that nodes hash, whatever the client has sent. */
  readonly raw: `0x${string}`
  readonly hash: `0x${string}`
  readonly payer: Address
  /** Seconds since the epoch. */
  readonly validBefore: number
  /** Nonce of the payer’s account, for the key of its sequence. */
  readonly nonce: bigint
  readonly nonceKey: bigint
  readonly gas: bigint
  /** In 10⁻¹⁸ dollars. */
  readonly maxFeePerGas: bigint
  /** Undefined when the transaction leaves it to account and chain. */
  readonly feeToken: Address | undefined
  /** The key that signed for the payer, when it is not the payer’s own. */
  readonly accessKey: Address | undefined
  /** Calldata of the transfer when it is the only call: after a swap it cannot be simulated separately. */
  readonly call: `0x${string}` | undefined
  /** The transaction as a node can carry it out on trial (`eth_call`). Undefined: mppx judges it. */
  readonly trial: JsonObject | undefined
}

export type Question =
  | { readonly kind: 'read'; readonly transaction: `0x${string}`; readonly demand: Demand }
  /** `token`: the credential in base64url. */
  | { readonly kind: 'simulate'; readonly token: string }

export type Answer =
  | { readonly kind: 'transfer'; readonly transfer: SignedTransfer }
  /** The chain would carry it out now. */
  | { readonly kind: 'fit' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Could not be determined: chain or thread gave no answer. */
  | { readonly kind: 'unavailable' }

/** Everything a thread is started with. */
export interface ThreadSettings {
  readonly realm: string
  readonly secretKeys: readonly string[]
  readonly rpcUrls: Readonly<Record<number, string>>
}

/** Messages to and from the thread. */
export interface Asked {
  readonly id: number
  readonly question: Question
}

export interface Answered {
  readonly id: number
  readonly answer: Answer
}

interface ValidatorSettings extends ThreadSettings {
  /** Called when a thread has died. */
  readonly report: (fault: unknown) => void
}

/** More than a question can take while its thread is alive: the thread gives the chain less. */
const DEADLINE_MS = 20_000

/** `.ts` in the sources and `.js` in the build. */
const ENTRY = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)

/**
 * Reads and simulates unusual payments in a thread: the libraries are large, slow to load, and busy with elliptic curves.
 * The thread starts with the first of them; a dead or hanging one is replaced at the next.
 */
export class Validator {
  readonly #settings: ValidatorSettings
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  #worker: Worker | undefined
  #asked = 0

  constructor(settings: ValidatorSettings) {
    this.#settings = settings
  }

  ask(question: Question): Promise<Answer> {
    const worker = (this.#worker ??= this.#start())
    this.#asked += 1
    const id = this.#asked
    return new Promise((resolve) => {
      // Its end rejects the other pending requests.
      const timer = setTimeout(() => void worker.terminate(), DEADLINE_MS)
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer)
        this.#waiting.delete(id)
        resolve(answer)
      })
      const asked: Asked = { id, question }
      worker.postMessage(asked)
    })
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  #start(): Worker {
    const { report, ...settings } = this.#settings
    const worker = new Worker(ENTRY, {
      workerData: settings,
      resourceLimits: MEMORY,
      stdout: true,
      stderr: true,
    })
    // What libraries print may hold calldata or addresses of nodes: it is read, or the thread would block, and dropped.
    worker.stdout.resume()
    worker.stderr.resume()
    worker.unref()
    worker.on('message', ({ id, answer }: Answered) => this.#waiting.get(id)?.(answer))
    worker.on('error', report)
    worker.on('exit', () => {
      this.#worker = undefined
      for (const answer of this.#waiting.values()) answer(UNAVAILABLE)
    })
    return worker
  }
}

/** The thread holds much code and hardly any data: the usual young generation of Node.js would cost 40 MB. */
const MEMORY = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 }

const UNAVAILABLE: Answer = { kind: 'unavailable' }
