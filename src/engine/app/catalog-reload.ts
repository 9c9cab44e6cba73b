import { type CatalogReader, type LoadedHandlers, readInThread } from './catalog-thread.ts'
import { routeKey, type Catalog } from '../catalog/catalog.ts'
import { CatalogError } from '../catalog/issue.ts'
import type { HandlerMap } from '../handler.ts'
import type { Renderer, Service } from '../http/service.ts'

/** What became of a reload: a catalog that cannot be served changes nothing. */
export type Reload =
  | { readonly kind: 'reloaded'; readonly before: string; readonly revision: string }
  | {
      readonly kind: 'refused'
      /** The revision that is still served. */
      readonly revision: string
      /** For the operator: every issue with its position. */
      readonly reason: string
    }

interface ReloadSettings {
  readonly service: Service
  readonly handlers: HandlerMap
  /** The catalog as it is now. Rejects with `CatalogError`. */
  readonly read: (reader: CatalogReader, loaded: LoadedHandlers) => Promise<Catalog>
  readonly render: Renderer
  /** Why this process cannot take payments for a catalog; empty when it can. */
  readonly inspectSettings: (catalog: Catalog) => readonly string[]
}

/** Replaces the served catalog, one change after the other: the last one read is served. */
export class CatalogReload {
  readonly #settings: ReloadSettings
  #handlers: HandlerMap
  #changing: Promise<unknown> = Promise.resolve()

  constructor(settings: ReloadSettings) {
    this.#settings = settings
    this.#handlers = settings.handlers
  }

  /** Reads the catalog again and serves it with these handlers. */
  reload(handlers: HandlerMap): Promise<Reload> {
    return this.#change(async () => {
      const { service, read, render, inspectSettings } = this.#settings
      const { catalog: before } = service.revision()
      const loaded = { handlers: Object.keys(handlers), served: namesOf(before) }
      const result = await revise(service, async () => {
        const revised = await read(readInThread, loaded)
        const faults = inspectSettings(revised)
        return faults.length > 0 ? faults : (await service.swap(revised, handlers, render)).catalog
      })
      if (typeof result === 'string') return { kind: 'refused', revision: before.revision, reason: result }
      this.#handlers = handlers
      return { kind: 'reloaded', before: before.revision, revision: result.revision }
    })
  }

  /** Renders the documents of the served catalog again, for the networks that are offered now. */
  async renderAgain(): Promise<void> {
    const { service, render } = this.#settings
    await this.#change(() => service.swap(service.revision().catalog, this.#handlers, render))
  }

  #change<T>(work: () => Promise<T>): Promise<T> {
    const changed = this.#changing.then(work)
    this.#changing = changed.catch(() => undefined)
    return changed
  }
}

/** Builds the new revision while the old one serves; a catalog that cannot be served changes nothing: resolves to why. */
async function revise(
  service: Service,
  serve: () => Promise<Catalog | readonly string[]>,
): Promise<Catalog | string> {
  try {
    const served = await serve()
    if ('revision' in served) return served
    service.refuse([{ code: 'not_servable_here' }])
    return served.join('\n')
  } catch (fault) {
    if (fault instanceof CatalogError) {
      service.refuse(errorsOf(fault))
      return fault.message
    }
    service.refuse([{ code: 'unexpected' }])
    return `unexpected: ${fault instanceof Error ? (fault.stack ?? fault.message) : String(fault)}`
  }
}

/** Positions only: the message of an issue could quote a secret, such as a misplaced key. */
export function errorsOf({ issues }: CatalogError): { code: string; line: number; column: number }[] {
  return issues
    .filter(({ severity }) => severity === 'error')
    .map(({ code, position: { line, column } }) => ({ code, line, column }))
}

/** What has its handler, by the names of the catalog. */
export function namesOf({ routes, operations }: Catalog): string[] {
  return [
    ...routes.flatMap((route) => (route.operation.planned ? [] : [routeKey(route)])),
    ...operations.flatMap(({ tool, planned }) => (tool === undefined || planned ? [] : [tool.name])),
  ]
}
