import { join } from 'node:path'
import { isJsonObject, isLoopback, type JsonObject } from '../../engine/internal.ts'
import type { Env } from '../../env.ts'
import { readJson } from '../../sandbox/state.ts'
import { at, textAt } from '../json-access.ts'
import type { ProtocolName } from './protocol.ts'

type Key = `0x${string}`

/** Keys that pay, and where they come from. */
export interface Wallet {
  readonly kind: 'sandbox' | 'environment'
  readonly keys: Readonly<Record<ProtocolName, Key>>
  /** Endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
}

interface SandboxFile extends Pick<Wallet, 'keys' | 'rpcUrls'> {
  readonly baseUrl: string
  /** Who is paid by x402. */
  readonly payTo: string | undefined
}

/** Base URL of the sandbox that runs here, if one has left its file. */
export function sandboxUrl(dataDir: string): string | undefined {
  return readSandbox(dataDir)?.baseUrl
}

/** The sandbox's wallet pays at its own sandbox and nowhere else; anywhere else it is PAYER_PRIVATE_KEY. */
export function findWallet(
  url: URL,
  { dataDir, payerKey, rpcUrls }: Pick<Env, 'dataDir' | 'payerKey' | 'rpcUrls'>,
): Wallet | undefined {
  const sandbox = readSandbox(dataDir)
  if (sandbox !== undefined && isSandbox(new URL(sandbox.baseUrl), url)) {
    return { kind: 'sandbox', keys: sandbox.keys, rpcUrls: sandbox.rpcUrls }
  }
  if (payerKey === undefined) return undefined
  return { kind: 'environment', keys: { x402: payerKey, mpp: payerKey }, rpcUrls }
}

/** Whether the URL is this machine's sandbox, under any of its names. */
function isSandbox(sandbox: URL, { protocol, port, href }: URL): boolean {
  return isLoopback(href) && protocol === sandbox.protocol && port === sandbox.port
}

/** What the sandbox of a data directory has written for clients; undefined where none has. */
export function readSandbox(dataDir: string): SandboxFile | undefined {
  const value = readJson(join(dataDir, 'sandbox.json'))
  const found = isJsonObject(value) ? value : undefined
  const baseUrl = textAt(found, 'baseUrl')
  const [x402, mpp] = [keyAt(found, 'evm'), keyAt(found, 'tempo')]
  if (baseUrl === undefined || x402 === undefined || mpp === undefined) return undefined
  const rpcUrls = ['evm', 'tempo'].flatMap((chain): [number, string][] => {
    const [id, url] = [at(found, chain, 'chainId'), textAt(found, chain, 'rpcUrl')]
    return typeof id === 'number' && url !== undefined ? [[id, url]] : []
  })
  const payTo = textAt(found, 'evm', 'payTo')
  return { baseUrl, payTo, keys: { x402, mpp }, rpcUrls: Object.fromEntries(rpcUrls) }
}

function keyAt(found: JsonObject | undefined, chain: string): Key | undefined {
  const key = textAt(found, chain, 'payerKey') ?? ''
  return /^0x[0-9a-f]{64}$/i.test(key) ? `0x${key.slice(2)}` : undefined
}
