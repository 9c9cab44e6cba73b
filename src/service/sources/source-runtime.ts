/** What a reply must offer; the `Response` of every fetch does. */
export interface Reply {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: ReplyBody | null
}

export interface ReplyBody extends AsyncIterable<Uint8Array> {
  cancel(): Promise<void>
}

export interface FetchOptions {
  /** GET unless given. */
  readonly method?: 'POST'
  readonly body?: string
  readonly signal: AbortSignal
  readonly headers: Record<string, string>
  /** A source that redirects has moved or wants a log-in: neither is an answer. */
  readonly redirect: 'manual'
}

/** Everything a source client takes from outside itself. */
export interface Runtime {
  readonly fetch: (url: URL, options: FetchOptions) => Promise<Reply>
  readonly now: () => Date
  /** Resolves after `ms` milliseconds; rejects when the signal is aborted before. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** A number from 0 up to 1, for jitter only. */
  readonly random: () => number
}
