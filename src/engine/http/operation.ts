import type { Catalog, Operation } from '../catalog/catalog.ts'
import { PROXY } from '../catalog/check-context.ts'
import { Failure } from '../errors.ts'
import type { HandlerMap, UntypedHandler } from '../handler.ts'
import type { Readiness } from '../purchase/execution.ts'
import type { ServedOperation } from '../purchase/execution.ts'
import { createProxy, type ProxySettings } from './proxy.ts'

export interface OperationSettings {
  readonly catalog: Catalog
  readonly handlers: HandlerMap
  readonly proxy: ProxySettings
}

/** An operation with its handler, and whether that can be run. */
export function serveOperation(operation: Operation, settings: OperationSettings): ServedOperation {
  return { operation, ...handlerOf(operation, settings), readiness: readinessOf(operation, settings) }
}

type Made = Pick<ServedOperation, 'handler' | 'preview' | 'check' | 'store'>

function handlerOf(operation: Operation, { handlers, proxy }: OperationSettings): Made {
  const plain = { preview: undefined, check: undefined, store: undefined }
  if (operation.handler === PROXY && operation.upstream !== undefined)
    return { handler: createProxy(operation.upstream, proxy), ...plain }
  const found = Object.hasOwn(handlers, operation.handler) ? handlers[operation.handler] : undefined
  if (found === undefined) return { handler: unwritten, ...plain }
  if (typeof found === 'function') return { handler: found, ...plain }
  if ('prepare' in found) return { ...plain, handler: found.prepare, store: found }
  return { handler: found.run, preview: found.preview, check: found.check, store: undefined }
}

const unwritten: UntypedHandler = () =>
  Promise.reject(new Failure('not_implemented', 'this route is announced and not served yet'))

function readinessOf(operation: Operation, { catalog, handlers, proxy }: OperationSettings): Readiness {
  if (operation.planned) return 'planned'
  const handler = Object.hasOwn(handlers, operation.handler) ? handlers[operation.handler] : undefined
  if (operation.handler !== PROXY && handler === undefined) return 'planned'
  if (typeof handler === 'object' && handler.configured === false) return 'not_configured'
  const sources = operation.sources.flatMap((name) => catalog.sources[name]?.credentials ?? [])
  const own = operation.upstream?.credential?.env
  const needed = own === undefined ? sources : [...sources, own]
  return needed.every((name) => proxy.secret(name) !== undefined) ? 'ready' : 'not_configured'
}
