import { patiently } from '../evm/log-scanner.ts'
import { SEARCHED_AT_ONCE, type FoundTransaction, type SvmChain } from './svm-chain.ts'

interface Search {
  readonly chain: SvmChain
  readonly sleep: (ms: number) => Promise<void>
}

/** The transactions that name an account, newest first, back to a time. Throws `RpcUnavailableError`. */
export async function* transactionsSince(
  search: Search,
  account: string,
  since: number,
): AsyncGenerator<readonly FoundTransaction[]> {
  let before: string | undefined
  for (;;) {
    const start = before
    const page = await patiently(search, () => search.chain.transactionsOf(account, start))
    yield page.filter(({ time = Infinity }) => time * 1_000 >= since)
    const oldest = page.at(-1)
    if (oldest === undefined || page.length < SEARCHED_AT_ONCE) return
    if (oldest.time !== undefined && oldest.time * 1_000 < since) return
    before = oldest.signature
  }
}
