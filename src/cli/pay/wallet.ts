import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject, isLoopback, type JsonObject } from '../../engine/internal.ts'
import type { Env } from '../../env.ts'
import type { ProtocolName } from './protocol.ts'

type Key = `0x${string}`

/** Keys that pay, and where they come from. */
export interface Wallet {
  readonly kind: 'sandbox' | 'environment'
  readonly keys: Readonly<Record<ProtocolName, Key>>
  /** Endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
}

interface SandboxFile {
  readonly baseUrl: string
  readonly keys: Wallet['keys']
  readonly rpcUrls: Wallet['rpcUrls']
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

/** A sandbox listens on this machine only, whichever of its names is used. */
function isSandbox(sandbox: URL, { protocol, port, href }: URL): boolean {
  return isLoopback(href) && protocol === sandbox.protocol && port === sandbox.port
}

function readSandbox(dataDir: string): SandboxFile | undefined {
  const value = readJson(join(dataDir, 'sandbox.json'))
  if (!isJsonObject(value) || typeof value['baseUrl'] !== 'string') return undefined
  const { baseUrl, evm, tempo } = value
  const x402 = isJsonObject(evm) ? keyIn(evm) : undefined
  const mpp = isJsonObject(tempo) ? keyIn(tempo) : undefined
  if (x402 === undefined || mpp === undefined || !isJsonObject(tempo)) return undefined
  const { chainId, rpcUrl } = tempo
  if (typeof chainId !== 'number' || typeof rpcUrl !== 'string') return undefined
  return { baseUrl, keys: { x402, mpp }, rpcUrls: { [chainId]: rpcUrl } }
}

function keyIn({ payerKey }: JsonObject): Key | undefined {
  return typeof payerKey === 'string' && /^0x[0-9a-f]{64}$/i.test(payerKey)
    ? `0x${payerKey.slice(2)}`
    : undefined
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}
