import type { Catalog } from '../catalog/catalog.ts'
import { Failure } from '../base/errors.ts'
import type { HandlerMap } from '../handler.ts'
import type { ServiceContext, ServiceDefinition, ServiceStores, Serving } from '../service-definition.ts'

/** The stores of a service. Its handlers are known before they open, and ask for them when they run. */
export class StoresOfService {
  #opened: ServiceStores | undefined

  /** Handed to the handlers. */
  readonly get = (): ServiceStores => {
    if (this.#opened === undefined)
      throw new Error('the stores of the service are not open: it has none, or nothing is served')
    return this.#opened
  }

  /** Opens what the operations of a catalog need. */
  async open(
    service: ServiceDefinition<unknown>,
    context: ServiceContext<unknown>,
    { operations }: Catalog,
    serving: Omit<Serving, 'handlers'>,
  ): Promise<void> {
    const handlers = operations.filter(({ planned }) => !planned).map(({ handler }) => handler)
    this.#opened = await service.stores?.(context, { ...serving, handlers })
  }

  /** What is open, for the operator. */
  get lines(): readonly string[] {
    return this.#opened?.lines ?? []
  }

  /** The handlers with those replaced whose store another process holds: they answer 503 `not_configured`. */
  serve(handlers: HandlerMap): HandlerMap {
    const unavailable = Object.entries(this.#opened?.unavailable ?? {}).map(([name, reason]) => [
      name,
      { run: () => Promise.reject(new Failure('not_configured', reason)), configured: false },
    ])
    return { ...handlers, ...Object.fromEntries(unavailable) }
  }

  async close(): Promise<void> {
    const opened = this.#opened
    this.#opened = undefined
    await opened?.close()
  }
}
