import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  documentNames,
  isJsonObject,
  type Json,
  type Ledger,
  loadCatalog,
  openLedger,
} from '../../engine/internal.ts'
import type { Call } from '../command.ts'

function dataDirOf({ flags, env }: Call): string {
  return flags.text('data-dir') ?? env.dataDir
}

/**
 * Opens the ledger that a server of this environment keeps, beside that server if it runs.
 * Throws when there is none: a new one would answer a mistyped directory with "no payments".
 */
export async function openBooks(call: Call): Promise<Ledger> {
  const { flags, env } = call
  const directory = dataDirOf(call)
  const sandbox = join(directory, 'sandbox', 'ledger')
  if (flags.given('sandbox')) {
    if (!isLedger(sandbox)) throw new Error(`there is no ledger of a sandbox in ${sandbox}`)
    return (await openLedger({ directory: sandbox })).ledger
  }
  const own = join(directory, 'ledger')
  if (env.redisUrl === undefined && !isLedger(own)) {
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
  readonly payTo: string | undefined
}

/** Those of the environment and the catalog, or those of the sandbox in this data directory. Throws `CatalogError`. */
export function chainsOf(call: Call): Chains {
  const { flags, env, terminal } = call
  if (flags.given('sandbox')) return sandboxChains(join(dataDirOf(call), 'sandbox.json'))
  const { rpcUrls, payTo } = env
  const file = flags.text('catalog')
  if (payTo !== undefined) return { rpcUrls, payTo }
  if (file === undefined && !existsSync(env.catalog)) {
    terminal.err(
      `PAY_TO is not set and there is no ${env.catalog}: only payees the ledger knows are looked at`,
    )
    return { rpcUrls, payTo }
  }
  const { catalog } = loadCatalog(file ?? env.catalog, { documents: documentNames, handlers: undefined })
  return { rpcUrls, payTo: catalog.payments.payTo }
}

function sandboxChains(file: string): Chains {
  const found = readJson(file)
  const chains = isJsonObject(found) ? Object.values(found).filter(isJsonObject) : []
  const urls = chains.flatMap(({ chainId, rpcUrl }): [number, string][] =>
    typeof chainId === 'number' && typeof rpcUrl === 'string' ? [[chainId, rpcUrl]] : [],
  )
  const payTo = chains.map((chain) => chain['payTo']).find((each) => typeof each === 'string')
  return { rpcUrls: Object.fromEntries(urls), payTo }
}

function readJson(file: string): Json {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    throw new Error(`there is no sandbox here: ${file} cannot be read`)
  }
}
