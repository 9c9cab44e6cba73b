import { readFileSync } from 'node:fs'
import { Reader } from '../../env/reader.ts'
import { SETTINGS } from '../../settings.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Serving } from '../service-definition.ts'
import type { Prepared } from './host.ts'
import { OptionError, publicAddress } from './options.ts'
import type { RatecardOptions } from './ratecard-options.ts'
import { StoresOfService } from './service-stores.ts'

/** What the option `service` adds to the other options. */
export interface EmbeddedService {
  readonly options: Partial<RatecardOptions>
  /** Opens its stores. */
  readonly prepare: (catalog: Catalog) => Promise<Prepared>
  readonly close: () => Promise<void>
}

/** Opens the service of these options as `ratecard serve` does. Rejects with `OptionError`. */
export async function openService(
  options: RatecardOptions,
  payments: Serving['payments'],
): Promise<EmbeddedService> {
  const { service, secrets = {}, dataDir = SETTINGS.dataDir.default } = options
  if (service === undefined) return { options: {}, prepare: async () => ({}), close: async () => undefined }
  const reader = new Reader(typeof secrets === 'function' ? secrets : (name) => secrets[name])
  const mcpUrls = { ...reader.mcpUrls(service.mcpUrls ?? {}), ...options.mcpUrls }
  const settings = service.env?.(reader)
  if (reader.problems.length > 0) throw new OptionError(reader.problems)
  const context = { settings, baseUrl: publicAddress(options), dataDir, version: ownVersion() }
  const stores = new StoresOfService()
  const handlers = { ...(await service.handlers({ ...context, stores: stores.get })), ...options.handlers }
  return {
    options: { mcpUrls, handlers },
    prepare: async (catalog) => {
      await stores.open(service, context, catalog, { dataDir, payments, sources: 'live', replaces: false })
      return { options: { handlers: stores.serve(handlers) } }
    },
    close: () => stores.close(),
  }
}

function ownVersion(): string {
  const { version }: { readonly version: string } = JSON.parse(
    readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
  )
  return version
}
