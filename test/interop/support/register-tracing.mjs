// Registers the official SDK before the server starts, and writes what it has exported to SPANS_FILE when the server ends.

import { writeFileSync } from 'node:fs'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'

const exporter = new InMemorySpanExporter()
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register()

process.once('exit', () => {
  const spans = exporter.getFinishedSpans().map((span) => {
    const { name, kind, attributes, status, parentSpanContext } = span
    const { traceId, spanId } = span.spanContext()
    return { name, kind, attributes, status, traceId, spanId, parentId: parentSpanContext?.spanId }
  })
  if (spans.length > 0) writeFileSync(process.env['SPANS_FILE'] ?? '', JSON.stringify(spans))
})
