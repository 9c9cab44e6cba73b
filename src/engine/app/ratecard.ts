import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import type Koa from 'koa'
import { ResourceStack } from '../base/resource-stack.ts'
import type { Issue } from '../catalog/issue.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { SETTINGS } from '../../settings.ts'
import { errorsOf, type Reload } from './catalog-reload.ts'
import { CatalogSource } from './catalog-source.ts'
import { composeService, type ComposedService } from './compose-service.ts'
import type { Host, Prepared } from './host.ts'
import { openCache, openLedger } from './open-stores.ts'
import { OptionError, publicAddress, readPayments } from './options.ts'
import type { RatecardOptions } from './ratecard-options.ts'

/** A catalog that is being served. */
export interface Ratecard {
  /** The Koa application; middleware added with `koa.use` answers paths that the catalog does not have. */
  readonly koa: Koa
  /** A listener for `node:http`, Express and similar: mount it at the root of its host or at `basePath`, before body parsers. */
  callback(): RequestListener
  /** Reads the catalog again and serves it from the next request on; requests in flight finish on the old one. */
  reload(): Promise<Reload>
  /**
   * From now on `/health` answers 503, and every answer closes its connection: proxies send their requests elsewhere. To be
   * called some seconds before the HTTP server is closed.
   */
  drain(): void
  /**
   * Finishes the purchases in flight, stops background work and closes the stores. Stop the HTTP server first; requests
   * that come later are answered 503, and nothing is charged for them.
   */
  close(): Promise<void>
}

/** A service, with what its host shows of it. */
export interface OpenRatecard extends Ratecard, Pick<ComposedService, 'service' | 'networks' | 'payments'> {
  readonly ledger: Ledger
  /** The file of a ledger on this machine. */
  readonly ledgerFile: string | undefined
  /** The kinds of the stores and their addresses, for people. */
  readonly titles: { readonly ledger: string; readonly cache: string }
  /** Of the catalog file as it was read last. */
  readonly warnings: () => readonly Issue[]
}

/** Like `createRatecard`, for a host. */
export async function openRatecard(declared: RatecardOptions, host: Host): Promise<OpenRatecard> {
  const { names } = host
  readPayments(declared, names)
  const { catalog: place, handlers: known = {}, logger = console } = declared
  const log = (line: string): void => logger.warn(line)
  const report = (fault: unknown): void => logger.error(fault)
  const source = new CatalogSource({
    place,
    baseUrl: publicAddress(declared),
    kept: host.kept,
    log,
    noteFiles: host.read ?? (() => undefined),
  })
  const { catalog: first, fault } = await source.readAtStart({
    handlers: Object.keys(known),
    served: host.served,
  })
  const { adapt = (catalog) => catalog, ...prepared }: Prepared = (await host.prepare?.(first)) ?? {}
  const options = { ...declared, ...prepared.options }
  const payments = readPayments(options, names)
  const { dataDir = SETTINGS.dataDir.default, ledgerUnsafe = false, ledgerReplicas } = options
  const stores = new ResourceStack(report)
  try {
    const cache = await openCache(options.cache, names.cache, log)
    if ('fault' in cache) throw new OptionError([cache.fault])
    stores.defer(() => cache.store.close())
    const directory = prepared.ledgerDirectory ?? join(dataDir, 'ledger')
    const { ledger, title } = await openLedger({
      directory,
      redisUrl: options.ledger,
      ledgerUnsafe,
      ...(ledgerReplicas === undefined ? {} : { ledgerReplicas }),
    })
    stores.defer(() => ledger.close())
    const ledgerFile = options.ledger === undefined ? join(directory, 'data.mdb') : undefined
    const app = await composeService({
      options,
      payments,
      catalog: adapt(first),
      read: async (reader, loaded) => adapt(await source.read(reader, loaded)),
      host,
      ledgerFile,
      ledger,
      cache: cache.store,
      log,
      report,
    })
    stores.defer(() => app.close())
    const keep = (): void => {
      try {
        source.keep(app.service.revision().catalog)
      } catch (cause) {
        log(`this revision is not kept for a restart: ${String(cause)}`)
      }
    }
    if (fault === undefined) keep()
    else {
      app.service.refuse(errorsOf(fault))
      report(fault)
      log(`serving revision ${first.revision}, which was served before`)
    }
    return {
      ...app,
      ledger,
      ledgerFile,
      titles: { ledger: title, cache: cache.title },
      warnings: () => source.warnings,
      koa: app.service.koa,
      drain: () => app.service.drain(),
      callback: () => app.service.koa.callback(),
      reload: async () => {
        const result = await app.reload()
        if (result.kind === 'reloaded') keep()
        return result
      },
      close: () => stores.close(),
    }
  } catch (fault) {
    await stores.close()
    throw fault
  }
}
