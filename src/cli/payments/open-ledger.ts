import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { loadCatalog } from '../../engine/catalog/load-catalog.ts'
import { openLedger } from '../../engine/app/open-stores.ts'
import { findSvmNetwork } from '../../engine/base/networks.ts'
import { documentNames } from '../../engine/documents/all.ts'
import type { Ledger } from '../../engine/ledger/ledger.ts'
import { readSandbox } from '../../buyer/sandbox-file.ts'
import type { Call } from '../command.ts'

export function dataDirOf({ flags, env }: Pick<Call, 'flags' | 'env'>): string {
  return flags.text('data-dir') ?? env.dataDir
}

/** Opens the ledger of a server in this environment, also while the server runs, and closes it afterwards. */
export async function withLedger<T>(
  call: Call,
  work: (ledger: Ledger) => Promise<T>,
  missing: 'refuse' | 'create' = 'refuse',
): Promise<T> {
  const ledger = await openStored(call, missing)
  try {
    return await work(ledger)
  } finally {
    await ledger.close()
  }
}

/** Refuses when there is none: a new one would answer a mistyped directory with "no payments". */
async function openStored(call: Call, missing: 'refuse' | 'create'): Promise<Ledger> {
  const { flags, env } = call
  const directory = dataDirOf(call)
  const sandbox = join(directory, 'sandbox', 'ledger')
  if (flags.given('sandbox')) {
    if (!isLedger(sandbox)) throw new Error(`there is no ledger of a sandbox in ${sandbox}`)
    return (await openLedger({ directory: sandbox })).ledger
  }
  const own = join(directory, 'ledger')
  if (env.redisUrl === undefined && !isLedger(own) && !(missing === 'create' && existsSync(directory))) {
    const hint = isLedger(sandbox) ? 'a sandbox has one: add --sandbox' : 'name the server’s with --data-dir'
    throw new Error(`there is no ledger in ${own}; ${hint}`)
  }
  return (await openLedger({ ...env, directory: own })).ledger
}

function isLedger(directory: string): boolean {
  return existsSync(join(directory, 'data.mdb'))
}

/** Where the chains are asked, and who is paid on them. */
interface Chains {
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** Those of Solana networks by CAIP-2 id. */
  readonly svmRpcUrls: Readonly<Record<string, string>>
  readonly payTo: string | undefined
  readonly payToSolana: string | undefined
  readonly mpp?: { readonly chain: number; readonly currency: string; readonly recipient: string } | undefined
}

/** Those of the environment and the catalog, or those of the sandbox in this data directory. Throws `CatalogError`. */
export function chainsOf(call: Call): Chains {
  const { flags, env, terminal } = call
  if (flags.given('sandbox')) return sandboxChains(dataDirOf(call))
  const { rpcUrls, payTo, payToSolana, mppRecipient: recipient } = env
  const svmRpcUrls = Object.fromEntries(
    Object.entries(env.svmRpcUrls).flatMap(([name, url]) => {
      const id = findSvmNetwork(name)?.id
      return id === undefined ? [] : [[id, url]]
    }),
  )
  const known = { rpcUrls, svmRpcUrls, payTo, payToSolana }
  const file = flags.text('catalog')
  const lacksSolana = payToSolana === undefined && Object.keys(svmRpcUrls).length > 0
  const lacksEvm = payTo === undefined && (payToSolana === undefined || Object.keys(rpcUrls).length > 0)
  if (!lacksSolana && !lacksEvm && recipient === undefined) return known
  if (file === undefined && !existsSync(env.catalog)) {
    const missing = lacksEvm
      ? 'PAY_TO is not set and there'
      : lacksSolana
        ? 'PAY_TO names no address of Solana and there'
        : 'with MPP_RECIPIENT, the catalog is needed and there'
    terminal.err(`${missing} is no ${env.catalog}: only payees of the ledger are checked`)
    return known
  }
  const { catalog } = loadCatalog(file ?? env.catalog, { documents: documentNames, handlers: undefined })
  const { mpp } = catalog.payments
  return {
    ...known,
    payTo: payTo ?? catalog.payments.payTo,
    payToSolana: payToSolana ?? catalog.payments.payToSolana,
    mpp: mpp === undefined || recipient === undefined ? undefined : { ...mpp, recipient },
  }
}

function sandboxChains(dataDir: string): Chains {
  const sandbox = readSandbox(dataDir)
  if (sandbox !== undefined) {
    const { rpcUrls, payTo, svm } = sandbox
    const svmRpcUrls = svm === undefined ? {} : { [svm.network]: svm.rpcUrl }
    return { rpcUrls, svmRpcUrls, payTo, payToSolana: svm?.payTo }
  }
  throw new Error(`there is no sandbox here: ${join(dataDir, 'sandbox.json')} cannot be read`)
}
