import type { IncomingHttpHeaders } from 'node:http'

/** What a span says: of callers neither arguments nor headers, addresses, signatures or keys. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** A part of the work on one request. */
export interface Span {
  readonly rename: (name: string) => void
  readonly set: (attributes: SpanAttributes) => void
  /** The work has failed; `reason` is a code. */
  readonly fail: (reason: string) => void
}

/** Shows the work on requests to whatever the program has registered for that. */
export interface Tracing {
  /** Runs work as a part of what is under way. An error that leaves it marks the span, and is thrown on. */
  readonly span: <T>(name: string, attributes: SpanAttributes, work: (span: Span) => Promise<T>) => Promise<T>
  /** Runs the work on a request, as a part of the trace that its headers name (W3C Trace Context). */
  readonly serve: <T>(
    headers: IncomingHttpHeaders,
    name: string,
    work: (span: Span) => Promise<T>,
  ) => Promise<T>
  /** Runs a request to another server; `send` gets the headers that name the trace. */
  readonly call: <T>(
    name: string,
    attributes: SpanAttributes,
    send: (headers: Readonly<Record<string, string>>, span: Span) => Promise<T>,
  ) => Promise<T>
}

/** Runs work in a span where somebody looks, and alone otherwise. */
export function inSpan<T>(
  tracing: Tracing | undefined,
  name: string,
  attributes: SpanAttributes,
  work: () => Promise<T>,
): Promise<T> {
  return tracing === undefined ? work() : tracing.span(name, attributes, work)
}
