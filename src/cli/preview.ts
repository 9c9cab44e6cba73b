import { createRevision, loadCatalog, type Catalog, type Ledger, type Revision } from '../engine/index.ts'
import { openMpp, openTills, protocolsOf } from './assemble.ts'
import type { Call } from './command.ts'
import { handlersFor } from './handlers.ts'

/** What a server with this catalog and environment would serve, without a server: for commands that only look. */
export async function previewRevision(
  call: Call,
  file: string,
): Promise<{ readonly catalog: Catalog; readonly revision: Revision }> {
  const { env, known } = call
  const handlers = await handlersFor(call)
  const { catalog } = loadCatalog(file, { ...known, handlers: Object.keys(handlers) })
  const baseUrl = env.baseUrl ?? `http://localhost:${env.port}`
  const payTo = env.payTo ?? catalog.payments.payTo
  const tills = {
    x402: openTills({
      payTo: payTo ?? '',
      rpcUrls: env.rpcUrls,
      signerKeys: env.settlerKeys,
      facilitators: env.facilitators,
      ledger: NO_LEDGER,
      owner: 'preview',
      report: call.terminal.err,
    }),
    mpp: openMpp(env, baseUrl, () => undefined),
  }
  const payments = payTo === undefined ? { ...catalog.payments, x402: undefined } : catalog.payments
  const revision = createRevision({
    catalog,
    handlers,
    protocols: protocolsOf({ ...catalog, payments }, tills, baseUrl),
    baseUrl,
    mcpUrls: env.mcpUrls,
    sandbox: false,
    proxy: { fetcher: fetch, secret: env.secret },
    middleware: () => async () => undefined,
  })
  return { catalog, revision }
}

/** Nothing is paid in a preview. */
const NO_LEDGER: Ledger = {
  name: 'none',
  get: async () => undefined,
  find: async () => undefined,
  insert: async () => undefined,
  replace: async () => false,
  remove: async () => false,
  entries: async function* () {},
  due: async () => [],
  bought: async () => [],
  remember: async () => undefined,
  recall: async () => [],
  lease: async () => undefined,
  release: async () => undefined,
  close: async () => undefined,
}
