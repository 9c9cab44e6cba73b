import type { CorrectedOffer, ErrorCode } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'

/** The standing part of a protocol’s 402. */
export interface Challenge {
  /**
   * Makes headers and body members, each time with another token. `error`: why a payment was refused, else that one is
   * required.
   */
  issue(request: ChallengeRequest): IssuedChallenge
  /** The same for a tool call. */
  demand(request: ChallengeRequest): ToolDemand
  /** What documents say about this offer: without anything random, concrete example path. */
  readonly published: JsonObject
  /** Size in bytes of the largest header of this challenge. */
  readonly headerBytes: number
}

export interface ChallengeRequest {
  /** Absolute URL of the concrete path, no query. */
  readonly resource: string
  /** Digest of operation and arguments, to which a payment can be bound. */
  readonly scope: string
  /** RFC 9530 digest of the request’s body, if all of it was read. */
  readonly contentDigest?: string | undefined
  readonly error: ErrorCode
  /** Takes the place of the scheme’s usual offer on its network. */
  readonly reoffer?: CorrectedOffer | undefined
}

export interface IssuedChallenge {
  readonly headers: Readonly<Record<string, string>>
  /** Members of the body object as JSON text without the braces. */
  readonly members: string
}

/** The 402 of a tool call in one protocol. */
export interface ToolDemand {
  /** Members of the result's structured content, and of its text. */
  readonly content: JsonObject
  readonly meta: JsonObject
  /** What clients get in place of all that, if they say that they know this extension of MCP. */
  readonly extension?: { readonly name: string; readonly result: JsonObject }
}
