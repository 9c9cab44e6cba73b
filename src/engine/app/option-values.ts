import type { CdpCredentials } from '../x402/facilitators/cdp-token.ts'

/** A facilitator, as the x402 specification defines one. */
export interface FacilitatorOptions {
  readonly url: string
  /** Sent as a bearer token. */
  readonly token?: string | undefined
  /** API key of the Coinbase Developer Platform, which signs a token for each request instead of `token`. */
  readonly cdp?: CdpCredentials | undefined
}

/** Credentials by name. */
export type Secrets = Readonly<Record<string, string | undefined>> | ((name: string) => string | undefined)

/** `console` is one, and so is a pino logger. */
export interface Logger {
  warn(message: string): void
  error(fault: unknown): void
}

/** Sources of time, randomness and HTTP. */
export interface RuntimeOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Uint8Array
  /** Resolves after so many milliseconds. */
  readonly sleep: (ms: number) => Promise<void>
  /** Sends requests to nodes, facilitators and upstreams. */
  readonly fetch: typeof fetch
}
