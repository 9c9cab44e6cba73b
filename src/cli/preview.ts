import type { Catalog } from '../engine/catalog/catalog.ts'
import { loadCatalog } from '../engine/catalog/load-catalog.ts'
import { openNetworks, protocolsOf, type AllNetworks } from '../engine/app/all-networks.ts'
import type { PaymentConfig } from '../engine/app/options.ts'
import { documentNames } from '../engine/documents/all.ts'
import { createRevision, type Revision, type RevisionSettings } from '../engine/http/revision.ts'
import type { Ledger } from '../engine/ledger/ledger.ts'
import type { Protocol } from '../engine/payment/protocol.ts'
import { systemRuntime } from '../engine/base/runtime.ts'
import { openReceiptSigner } from '../engine/receipts/receipt-signer.ts'
import type { Env } from '../env.ts'
import type { Call } from './command.ts'
import { handlersFor } from './load-handlers.ts'
import { VARIABLES } from '../engine/app/option-names.ts'
import { baseUrlOf, paymentConfig } from './payment-config.ts'

/** What a server with this catalog and environment would serve, without a server: for commands that only look. */
export async function previewRevision(
  call: Call,
  file: string,
): Promise<{ readonly catalog: Catalog; readonly revision: Revision }> {
  const { env } = call
  const handlers = await handlersFor(call, file)
  const { catalog } = loadCatalog(file, { documents: documentNames, handlers: Object.keys(handlers) })
  const baseUrl = baseUrlOf(env)
  const payTo = env.payTo ?? catalog.payments.payTo
  const payToSolana = env.payToSolana ?? catalog.payments.payToSolana
  const payments =
    payTo === undefined && payToSolana === undefined
      ? { ...catalog.payments, x402: undefined }
      : catalog.payments
  const config = {
    ...paymentConfig(env, catalog),
    payTo: payTo ?? '',
    payToSolana: payToSolana ?? '',
  }
  const protocols = previewProtocols({ ...catalog, payments }, config, baseUrl)
  const { mcpUrls, secret, receiptKeys } = env
  const receipts = openReceiptSigner(receiptKeys, baseUrl)
  return { catalog, revision: revise({ catalog, handlers, protocols, baseUrl, mcpUrls, secret, receipts }) }
}

/** The ways in which a catalog could be paid with this configuration. */
export function previewProtocols(
  catalog: Catalog,
  config: PaymentConfig,
  baseUrl: string,
): readonly Protocol[] {
  return protocolsOf(catalog, previewNetworks(config, baseUrl), baseUrl, systemRuntime)
}

/** Networks that nothing is ever paid into. */
export function previewNetworks(config: PaymentConfig, baseUrl: string): AllNetworks {
  const silent = (): void => undefined
  const deps = { names: VARIABLES, ledger: NO_LEDGER, owner: 'preview', runtime: systemRuntime }
  return openNetworks({ ...deps, config, baseUrl, log: silent, report: silent })
}

/** Everything that is derived from a catalog, without a server. */
export function revise({
  secret,
  ...preview
}: Omit<RevisionSettings, 'sandbox' | 'proxy'> & Pick<Env, 'secret'>): Revision {
  const proxy = { fetcher: fetch, secret, report: (): void => undefined }
  return createRevision({ ...preview, sandbox: false, proxy })
}

/** Nothing is paid in a preview. */
const NO_LEDGER: Ledger = {
  name: 'none',
  answers: {
    write: () => Promise.reject(new Error('nothing is paid in a preview')),
    read: async () => undefined,
    delete: async () => undefined,
    sweep: async () => 0,
  },
  now: () => 0,
  check: async () => undefined,
  states: {
    get: async (name) => ({ name, text: '', version: 0 }),
    list: async function* () {},
  },
  get: async () => undefined,
  find: async () => undefined,
  insert: async () => undefined,
  commit: async () => false,
  replace: async () => false,
  replaceSoon: async () => false,
  remove: async () => false,
  records: async function* () {},
  search: async () => [],
  totals: { read: async function* () {}, rebuild: async () => 0 },
  counts: { add: async () => undefined, read: async () => [] },
  due: async () => [],
  undelivered: async () => [],
  addExpiring: async () => 1,
  addWithinLimit: async () => undefined,
  listExpiring: async () => [],
  lease: async () => undefined,
  release: async () => undefined,
  reopen: async () => undefined,
  close: async () => undefined,
}
