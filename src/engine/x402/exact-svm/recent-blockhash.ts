import type { CorrectedOffer } from '../../base/errors.ts'
import type { SvmNetwork } from '../../base/networks.ts'
import type { SvmChain } from '../../chains/svm/svm-chain.ts'

interface RecentBlockhashSettings {
  readonly network: SvmNetwork
  readonly chain: SvmChain
  readonly now: () => number
}

/** When the next one is asked for. A hash is valid for a minute, of which its age is lost to the payment that uses it. */
const FRESH_MS = 10_000
/** An older one is not named: clients ask a node of theirs. */
const NAMED_MS = 20_000

/**
 * The hash of a recent block, for offers: a client that is told one signs without a node (scheme_exact_svm,
 * `extra.recentBlockhash`). It is asked for when offers are, and no offer waits for it.
 */
export class RecentBlockhash {
  readonly #settings: RecentBlockhashSettings
  #known: { readonly offer: CorrectedOffer; readonly at: number } | undefined
  #askedAt = -Infinity

  constructor(settings: RecentBlockhashSettings) {
    this.#settings = settings
  }

  /** The same object until another hash takes its place. */
  current(): CorrectedOffer | undefined {
    const now = this.#settings.now()
    if (now - this.#askedAt >= FRESH_MS) void this.refresh()
    return this.#known !== undefined && now - this.#known.at < NAMED_MS ? this.#known.offer : undefined
  }

  /** Never rejects. */
  async refresh(): Promise<void> {
    const { network, chain, now } = this.#settings
    const at = now()
    this.#askedAt = at
    const answer = await chain.latestBlockhash()
    if (answer.kind !== 'result') return
    const { blockhash, lastHeight } = answer.result
    const extra = { recentBlockhash: blockhash, lastValidBlockHeight: lastHeight.toString() }
    this.#known = { offer: { scheme: 'exact', network: network.id, extra }, at }
  }
}
