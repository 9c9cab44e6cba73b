import type { IncomingHttpHeaders } from 'node:http'

/** A request as a stand-in sees it: the path below its prefix, the query, and what was posted. */
export interface StandInRequest {
  readonly path: string
  readonly query: URLSearchParams
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}
export interface StandInResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** One outside source, answered from this process; undefined when it has no such address. */
export type StandIn = (request: StandInRequest) => StandInResponse | undefined

export function json(body: object, status = 200): StandInResponse {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(body),
  }
}
