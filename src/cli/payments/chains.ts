import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject, loadCatalog, type Json } from '../../engine/index.ts'
import type { Call } from '../command.ts'
import { dataDirOf } from './books.ts'

/** Where the chains are asked, and who is paid on them. */
export interface Chains {
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly payTo: string | undefined
}

/** Those of the environment and the catalog, or those of the sandbox in this data directory. Throws `CatalogError`. */
export function chainsOf(call: Call): Chains {
  const { flags, env, known, terminal } = call
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
  const { catalog } = loadCatalog(file ?? env.catalog, { ...known, handlers: undefined })
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
