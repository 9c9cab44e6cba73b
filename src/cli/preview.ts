import {
  createRevision,
  loadCatalog,
  type Catalog,
  type HandlerMap,
  type Ledger,
  type Revision,
} from '../engine/index.ts'
import { openTills, protocolsOf } from './assemble.ts'
import type { Call } from './command.ts'

/** What a server with this catalog and environment would serve, without a server: for commands that only look. */
export function previewRevision(
  { env, shop, known }: Call,
  file: string,
): { catalog: Catalog; revision: Revision } {
  const { catalog } = loadCatalog(file, known)
  const baseUrl = env.baseUrl ?? `http://localhost:${env.port}`
  const handlers: HandlerMap = shop.handlers(undefined)
  const payTo = env.payTo ?? catalog.payments.payTo
  const tills = openTills({
    payTo: payTo ?? '',
    rpcUrls: env.rpcUrls,
    signerKeys: env.settlerKeys,
    ledger: NO_LEDGER,
    owner: 'preview',
  })
  const revision = createRevision({
    catalog,
    handlers,
    protocols: payTo === undefined ? [] : protocolsOf(catalog, tills, baseUrl),
    baseUrl,
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
  insert: async () => false,
  replace: async () => false,
  remove: async () => false,
  entries: async function* () {},
  lease: async () => undefined,
  release: async () => undefined,
  close: async () => undefined,
}
