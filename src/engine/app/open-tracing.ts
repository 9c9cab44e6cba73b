import type { Span as ApiSpan, SpanOptions } from '@opentelemetry/api'
import type { Span, Tracing } from '../base/tracing.ts'

/** Where version 1 of `@opentelemetry/api` keeps what an SDK has registered. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** Undefined unless an SDK was registered before: without one, the package is not even looked for. */
export async function openTracing(version: string): Promise<Tracing | undefined> {
  const registered: unknown = Reflect.get(globalThis, REGISTERED)
  if (typeof registered !== 'object' || registered === null || !('trace' in registered)) return undefined
  const { context, propagation, SpanKind, SpanStatusCode, trace } = await import('@opentelemetry/api')
  const tracer = trace.getTracer('ratecard', version)

  const spanOf = (span: ApiSpan): Span => ({
    rename: (name) => void span.updateName(name),
    set: (attributes) => void span.setAttributes(attributes),
    fail: (reason) => void span.setStatus({ code: SpanStatusCode.ERROR, message: reason }),
  })
  /** The message of an error may contain arguments: its name has to do. */
  const run = <T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T> =>
    tracer.startActiveSpan(name, options, async (span) => {
      try {
        return await work(spanOf(span))
      } catch (fault) {
        span.setStatus({ code: SpanStatusCode.ERROR, message: fault instanceof Error ? fault.name : 'error' })
        throw fault
      } finally {
        span.end()
      }
    })

  return {
    span: (name, attributes, work) => run(name, { attributes }, work),
    serve: (headers, name, work) =>
      context.with(propagation.extract(context.active(), headers), () =>
        run(name, { kind: SpanKind.SERVER }, work),
      ),
    call: (name, attributes, send) =>
      run(name, { kind: SpanKind.CLIENT, attributes }, (span) => {
        const headers: Record<string, string> = {}
        propagation.inject(context.active(), headers)
        return send(headers, span)
      }),
  }
}
