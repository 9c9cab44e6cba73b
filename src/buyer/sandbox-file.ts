import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject, type JsonObject, parseJson } from '../engine/base/json.ts'
import { openSvmAccount, type SvmAccount } from '../engine/base/svm-signature.ts'

type Key = `0x${string}`

/** What the sandbox of a data directory has written for clients. */
export interface SandboxFile {
  readonly baseUrl: string
  /** Who is paid by x402. */
  readonly payTo: string | undefined
  readonly keys: { readonly x402: Key; readonly mpp: Key }
  /** Endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** Undefined where the sandbox has no Solana. */
  readonly svm: SandboxSvm | undefined
}

interface SandboxSvm {
  readonly key: SvmAccount
  /** CAIP-2. */
  readonly network: string
  readonly rpcUrl: string
  /** Who is paid there. */
  readonly payTo: string | undefined
}

/** Undefined where no sandbox has written one. */
export function readSandbox(dataDir: string): SandboxFile | undefined {
  const { baseUrl, evm: onEvm, tempo: onTempo, svm: onSvm } = objectIn(join(dataDir, 'sandbox.json'))
  const [evm, tempo] = [objectOf(onEvm), objectOf(onTempo)]
  const [x402, mpp] = [keyOf(evm), keyOf(tempo)]
  if (typeof baseUrl !== 'string' || x402 === undefined || mpp === undefined) return undefined
  const rpcUrls = [evm, tempo].flatMap(({ chainId, rpcUrl }): [number, string][] =>
    typeof chainId === 'number' && typeof rpcUrl === 'string' ? [[chainId, rpcUrl]] : [],
  )
  const { payTo } = evm
  return {
    baseUrl,
    payTo: typeof payTo === 'string' ? payTo : undefined,
    keys: { x402, mpp },
    rpcUrls: Object.fromEntries(rpcUrls),
    svm: svmOf(objectOf(onSvm)),
  }
}

/** Base URL of the sandbox that runs here, if one has left its file. */
export function sandboxUrl(dataDir: string): string | undefined {
  return readSandbox(dataDir)?.baseUrl
}

function objectIn(file: string): JsonObject {
  try {
    return objectOf(parseJson(readFileSync(file, 'utf8')))
  } catch {
    return {}
  }
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

function svmOf({ payerKey, network, rpcUrl, payTo }: JsonObject): SandboxFile['svm'] {
  const key = typeof payerKey === 'string' ? openSvmAccount(payerKey) : undefined
  if (key === undefined || typeof network !== 'string' || typeof rpcUrl !== 'string') return undefined
  return { key, network, rpcUrl, payTo: typeof payTo === 'string' ? payTo : undefined }
}

function keyOf({ payerKey }: JsonObject): Key | undefined {
  return typeof payerKey === 'string' && /^0x[0-9a-f]{64}$/i.test(payerKey)
    ? `0x${payerKey.slice(2)}`
    : undefined
}
