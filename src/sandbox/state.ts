import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { Address, Hex } from '../vendor/viem.ts'
import { isAddress } from '../engine/base/address.ts'
import type { NodeRecord } from './node-connection.ts'
import { isSvmAddress } from '../engine/base/base58.ts'
import { openSvmAccount } from '../engine/base/svm-signature.ts'
import type { EvmChainRecord } from './evm/chain.ts'
import type { SvmChainRecord } from './svm/chain.ts'
import type { TempoChainRecord } from './tempo/chain.ts'

/** What a sandbox remembers: where its chains run and the keys that own money on them. */
export interface SandboxState {
  readonly evm: EvmChainRecord & {
    readonly payerKey: Hex
    readonly signerKey: Hex
    readonly payTo: Address
  }
  readonly tempo: TempoChainRecord & {
    readonly payerKey: Hex
    /** Its key is not stored: it is not needed. */
    readonly recipient: Address
    /** Signs the challenges. */
    readonly secretKey: Hex
  }
  /** Absent when the sandbox has no Solana. Keys are 64 bytes in base58, as wallets write them. */
  readonly svm?: SvmChainRecord & {
    readonly payerKey: string
    readonly feePayerKey: string
    /** Its key is not stored: it is not needed. */
    readonly payTo: string
    /** Refunds are sent from its account, which has money. */
    readonly refundKey: string
  }
  /**
   * Key of the account that refunds are sent from, with money on the other two chains. The account of the signer is for
   * transactions of the server alone.
   */
  readonly refundKey: Hex
}

/** The state in a file, or undefined when the file is absent or was not written whole by this version. */
export function readState(file: string): SandboxState | undefined {
  const found = readJson(file)
  if (!isRecord(found)) return undefined
  const evm = readEvm(found['evm'])
  const tempo = readTempo(found['tempo'])
  const { refundKey } = found
  if (evm === undefined || tempo === undefined || !isWord(refundKey)) return undefined
  const svm = readSvm(found['svm'])
  return { evm, tempo, ...(svm && { svm }), refundKey }
}

function readSvm(found: unknown): SandboxState['svm'] {
  if (!isRecord(found)) return undefined
  const { rpcUrl, pid, mint, identity, payerKey, feePayerKey, payTo, refundKey } = found
  if (typeof rpcUrl !== 'string' || !isCount(pid) || typeof identity !== 'string') return undefined
  if (!isKeyPair(payerKey) || !isKeyPair(feePayerKey) || !isKeyPair(refundKey)) return undefined
  if (!isSvmPlace(mint) || !isSvmPlace(payTo)) return undefined
  return { rpcUrl, pid, mint, identity, payerKey, feePayerKey, payTo, refundKey }
}

function readEvm(found: unknown): SandboxState['evm'] | undefined {
  if (!isRecord(found)) return undefined
  const node = readNode(found)
  const { asset, payerKey, signerKey, payTo } = found
  if (!isWord(payerKey) || !isWord(signerKey) || !isPlace(asset) || !isPlace(payTo)) return undefined
  return node && { ...node, asset, payerKey, signerKey, payTo }
}

function readTempo(found: unknown): SandboxState['tempo'] | undefined {
  if (!isRecord(found)) return undefined
  const node = readNode(found)
  const { currency, payerKey, recipient, secretKey } = found
  if (!isWord(payerKey) || !isWord(secretKey) || !isPlace(currency) || !isPlace(recipient)) return undefined
  return node && { ...node, currency, payerKey, recipient, secretKey }
}

function readNode({ rpcUrl, pid, chainId, genesis }: Record<string, unknown>): NodeRecord | undefined {
  if (typeof rpcUrl !== 'string' || !isCount(pid) || !isCount(chainId) || !isWord(genesis)) return undefined
  return { rpcUrl, pid, chainId, genesis }
}

/** Writes JSON that holds keys: whole or not at all, readable by its owner only. */
export function writeSecret(file: string, value: object): void {
  const draft = `${file}.draft`
  rmSync(draft, { force: true })
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  renameSync(draft, file)
}

/** The JSON in a file, or undefined when there is none. */
export function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value is 32 bytes in hex: a key, a secret or a hash. */
export function isWord(value: unknown): value is Hex {
  return typeof value === 'string' && /^0x[0-9a-fA-F]{64}$/.test(value)
}

/** Whether a value is an address, in whatever case. */
export function isPlace(value: unknown): value is Address {
  return typeof value === 'string' && isAddress(value)
}

/** Whether a value is an address of Solana. */
export function isSvmPlace(value: unknown): value is string {
  return typeof value === 'string' && isSvmAddress(value)
}

/** Whether a value is the key pair of an account of Solana. */
export function isKeyPair(value: unknown): value is string {
  return typeof value === 'string' && openSvmAccount(value) !== undefined
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
}
