import { randomBytes } from 'node:crypto'
import { payerKeys } from '../engine/app/payer-keys.ts'
import { readerOfKept, type KeptRevisions } from '../engine/app/kept-revisions.ts'
import type { OpenRatecard } from '../engine/app/ratecard.ts'
import { systemRuntime } from '../engine/base/runtime.ts'
import type { Catalog } from '../engine/catalog/catalog.ts'
import { compileText } from '../engine/catalog/load-catalog.ts'
import { documentNames } from '../engine/documents/all.ts'
import { networkHealth } from '../engine/app/all-networks.ts'
import { refundPayment, type RefundKeys } from '../engine/refunds/refund.ts'
import { UsageStore } from '../engine/usage/usage-store.ts'
import type { CatalogReport, ConsoleSources } from '../console/sources.ts'
import { listChannelBalances } from '../engine/x402/batch-settlement-evm/channel-balances.ts'
import { recent } from './metric-readings.ts'
import { compare } from './plan/difference.ts'
import { catalogSnapshot } from './plan/snapshot.ts'

interface SourceSettings {
  readonly app: OpenRatecard
  readonly file: string
  readonly baseUrl: string
  readonly sandbox: boolean
  readonly version: string
  readonly kept: KeptRevisions | undefined
  /** The catalog that this process served before; undefined: none. */
  readonly before: () => Catalog | undefined
  readonly ownPayers: () => ReadonlySet<string>
  readonly refundKeys: RefundKeys
}

/** What the console reads of a service that is being served. */
export function consoleSources(settings: SourceSettings): ConsoleSources {
  const { app, refundKeys, baseUrl, sandbox, version, ownPayers } = settings
  const { ledger, ledgerFile, networks, service, titles, payments } = app
  const { now } = ledger
  return {
    ledger,
    service,
    usage: new UsageStore({ ledger, owner: 'console', now }),
    networks: () => networkHealth(networks),
    listings: () => networks.x402.listings(),
    channels: recent(now, () => listChannelBalances(ledger)),
    now,
    sandbox,
    baseUrl,
    version,
    titles,
    ledgerFile,
    ownPayers,
    payerKeys,
    catalogReport: remembered(() => reportOf(settings), app),
    refund:
      refundKeys.evm === undefined && refundKeys.svm === undefined
        ? undefined
        : (record) =>
            refundPayment(
              {
                ...systemRuntime,
                ledger,
                now,
                rpcUrls: payments.rpcUrls,
                svmRpcUrls: payments.svmRpcUrls ?? {},
                owner: `refund-${randomBytes(6).toString('hex')}`,
                keys: refundKeys,
              },
              record,
            ),
  }
}

/** Worked out once for each revision: a large catalog takes a moment. */
function remembered(work: () => CatalogReport, { service, warnings }: OpenRatecard): () => CatalogReport {
  let last: { readonly of: readonly unknown[]; readonly report: CatalogReport } | undefined
  return () => {
    const of = [service.revision().catalog, service.refused(), warnings()]
    if (last === undefined || of.some((each, place) => each !== last?.of[place]))
      last = { of, report: work() }
    return last.report
  }
}

const KNOWN = { documents: documentNames, handlers: undefined }

function reportOf({ app, file, baseUrl, kept, before }: SourceSettings): CatalogReport {
  const served = app.service.revision().catalog
  const earlier = before() ?? keptBefore(kept, served)
  return {
    file,
    warnings: app.warnings().map(({ message, position }) => ({ message, line: position.line })),
    difference:
      earlier === undefined
        ? undefined
        : {
            before: earlier.revision,
            ...compare(catalogSnapshot(earlier, baseUrl), catalogSnapshot(served, baseUrl)),
          },
  }
}

/** The revision that was served before this one, over restarts. */
function keptBefore(kept: KeptRevisions | undefined, { revision }: Catalog): Catalog | undefined {
  const earlier = kept?.list().find((each) => each.revision !== revision)
  const found = earlier === undefined ? undefined : kept?.find(earlier.revision)
  if (found === undefined) return undefined
  try {
    return compileText(found.file, found.text, { ...KNOWN, read: readerOfKept(found) }).catalog
  } catch {
    // An earlier version of the program has kept it.
    return undefined
  }
}
