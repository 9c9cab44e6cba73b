import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject } from '../engine/index.ts'
import type { Env } from '../env.ts'

/** A key that pays, and where it comes from. */
export interface Wallet {
  readonly key: `0x${string}`
  readonly kind: 'sandbox' | 'environment'
}

interface SandboxFile {
  readonly baseUrl: string
  readonly payerKey: `0x${string}`
}

/** Base URL of the sandbox that runs here, if one has left its file. */
export function sandboxUrl(dataDir: string): string | undefined {
  return readSandbox(dataDir)?.baseUrl
}

/** The sandbox's wallet pays at its own sandbox and nowhere else; anywhere else it is PAYER_PRIVATE_KEY. */
export function findWallet(
  url: URL,
  { dataDir, payerKey }: Pick<Env, 'dataDir' | 'payerKey'>,
): Wallet | undefined {
  const sandbox = readSandbox(dataDir)
  if (sandbox !== undefined && new URL(sandbox.baseUrl).origin === url.origin) {
    return { key: sandbox.payerKey, kind: 'sandbox' }
  }
  return payerKey === undefined ? undefined : { key: payerKey, kind: 'environment' }
}

function readSandbox(dataDir: string): SandboxFile | undefined {
  const value = readJson(join(dataDir, 'sandbox.json'))
  if (!isJsonObject(value) || typeof value['baseUrl'] !== 'string' || !isJsonObject(value['evm']))
    return undefined
  const { payerKey } = value['evm']
  if (typeof payerKey !== 'string' || !/^0x[0-9a-f]{64}$/i.test(payerKey)) return undefined
  return { baseUrl: value['baseUrl'], payerKey: `0x${payerKey.slice(2)}` }
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}
