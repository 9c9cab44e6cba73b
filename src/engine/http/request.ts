import type { IncomingHttpHeaders } from 'node:http'
import type { Entry } from '../ledger/entry.ts'
import type { Tally } from '../tally/tally.ts'
import type { RawParameters } from '../catalog/validator.ts'
import type { Reply } from './reply.ts'
import type { Revision, ServedRoute } from './revision.ts'

/** One request to one route, free of the web framework. */
export interface RouteRequest {
  readonly served: ServedRoute
  /** Of this route. */
  readonly tally: Tally
  readonly revision: Revision
  readonly headers: IncomingHttpHeaders
  readonly method: string
  readonly parameters: RawParameters
  /** Who asks; undefined for this machine itself. */
  readonly client: () => string | undefined
  /** Absolute URL of the concrete path. */
  readonly resource: string
  /** Aborted when the client has gone away before its answer: to be asked for before anything is waited for. */
  readonly watch: () => AbortSignal
}

export interface Answered {
  readonly reply: Reply
  /** Set when the reply is the paid answer: its arrival is recorded. */
  readonly delivered?: Entry
}
