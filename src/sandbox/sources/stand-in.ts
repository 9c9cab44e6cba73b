/** A request as a stand-in sees it: the path below its prefix, and the query. */
export interface StandInRequest {
  readonly path: string
  readonly query: URLSearchParams
}
export interface StandInResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** One outside source, answered from this process; undefined when it has no such address. */
export type StandIn = (request: StandInRequest) => StandInResponse | undefined

export function json(body: object): StandInResponse {
  return {
    status: 200,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(body),
  }
}
