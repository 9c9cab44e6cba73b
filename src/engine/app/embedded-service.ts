import { readFileSync } from 'node:fs'
import { Reader } from '../../env/reader.ts'
import { SETTINGS } from '../../settings.ts'
import type { ServiceDefinition } from '../service-definition.ts'
import { OptionError, publicAddress } from './options.ts'
import { openRatecard, type Ratecard } from './ratecard.ts'
import type { RatecardOptions } from './ratecard-options.ts'
import { StoresOfService } from './service-stores.ts'
import { OPTIONS } from './setting-names.ts'

/** Serves a catalog with the handlers and stores of a service, as `ratecard serve` does. */
export async function embedService(
  options: RatecardOptions,
  service: ServiceDefinition<unknown>,
): Promise<Ratecard> {
  const { secrets = {}, dataDir = SETTINGS.dataDir.default } = options
  const reader = new Reader(typeof secrets === 'function' ? secrets : (name) => secrets[name])
  const mcpUrls = { ...reader.mcpUrls(service.mcpUrls ?? {}), ...options.mcpUrls }
  const context = {
    settings: service.env?.(reader),
    baseUrl: publicAddress(options),
    dataDir,
    version: ownVersion(),
  }
  if (reader.problems.length > 0) throw new OptionError(reader.problems)
  const stores = new StoresOfService()
  const handlers = {
    ...(await service.handlers({ ...context, stores: stores.get })),
    ...options.handlers,
  }
  try {
    const app = await openRatecard(
      { ...options, mcpUrls, handlers },
      {
        names: OPTIONS,
        prepare: async (catalog) => {
          const serving = { dataDir, payments: 'real', sources: 'live', replaces: false } as const
          await stores.open(service, context, catalog, serving)
          return { options: { handlers: stores.serve(handlers) } }
        },
      },
    )
    return {
      ...app,
      close: async () => {
        await app.close()
        await stores.close()
      },
    }
  } catch (fault) {
    await stores.close()
    throw fault
  }
}

function ownVersion(): string {
  const { version }: { readonly version: string } = JSON.parse(
    readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
  )
  return version
}
