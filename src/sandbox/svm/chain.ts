import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isJsonObject, type Json, parseJson } from '../../engine/base/json.ts'
import { adoptNode, type LocalNode, startNode } from '../local-node.ts'
import type { Fault } from './faults.ts'

/** USDC of Solana’s test network devnet: clients know it, so they pay here as they come. */
export const DEVNET_USDC = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU'
/** CAIP-2 of devnet. */
export const SVM_NETWORK = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'
/** Of devnet, since clients may compare it with what they expect. */
const DEVNET_GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG'

/** What a chain is started with. */
export interface SvmChainOptions {
  /** Milliseconds between blocks; without it each transaction is in a block at once, and no other block is made. */
  readonly blockMs?: number
}

/** What has to be remembered to find a running chain again. */
export interface SvmChainRecord {
  readonly rpcUrl: string
  readonly pid: number
  readonly mint: string
  /** No other chain has it. */
  readonly identity: string
}

/** A local Solana chain with a token whose money anybody can make. */
export interface SvmChain extends SvmChainRecord {
  /** Makes tokens, in atomic units (6 decimals), in the owner’s associated account. */
  giveTokens(owner: string, amount: bigint): Promise<void>
  setLamports(of: string, amount: bigint): Promise<void>
  /** Makes blocks; resolves to the height. */
  advance(blocks: number): Promise<number>
  setFault(fault: Fault): Promise<void>
  clearFaults(): Promise<void>
  /** One call of the node’s JSON-RPC; rejects with the message of its error. */
  call(method: string, params: readonly Json[]): Promise<Json>
  stop(): Promise<void>
}

/** Whether the packages that a Solana chain needs are installed. */
export function isSvmInstalled(): boolean {
  try {
    const { resolve } = createRequire(import.meta.url)
    resolve('litesvm')
    resolve('@solana/kit')
    return true
  } catch {
    return false
  }
}

/** Starts a chain; resolves when it can be paid on. */
export async function startSvmChain({ blockMs }: SvmChainOptions = {}): Promise<SvmChain> {
  const program = fileURLToPath(new URL(`./node${extname(import.meta.url)}`, import.meta.url))
  const pace = blockMs === undefined ? [] : [String(blockMs)]
  const node = await startNode({
    name: 'litesvm',
    file: process.execPath,
    args: [...process.execArgv, program, DEVNET_USDC, DEVNET_GENESIS, ...pace],
  })
  try {
    return chain(node, { mint: DEVNET_USDC, identity: await identityOf(node.rpcUrl) })
  } catch (error) {
    await node.stop()
    throw error
  }
}

/** Takes over a chain that was left running; undefined when it does not answer or is another chain. */
export async function adoptSvmChain(record: SvmChainRecord): Promise<SvmChain | undefined> {
  const { rpcUrl, pid, identity } = record
  const found = await identityOf(rpcUrl).catch(() => undefined)
  return found === identity ? chain(adoptNode(rpcUrl, pid), record) : undefined
}

async function identityOf(rpcUrl: string): Promise<string> {
  const identity = await callNode(rpcUrl, 'sandbox_identity', [])
  if (typeof identity !== 'string') throw new Error(`${rpcUrl} is no node of a sandbox`)
  return identity
}

function chain(node: LocalNode, { mint, identity }: Pick<SvmChainRecord, 'mint' | 'identity'>): SvmChain {
  const call = (method: string, params: readonly Json[]) => callNode(node.rpcUrl, method, params)
  return {
    rpcUrl: node.rpcUrl,
    pid: node.pid,
    mint,
    identity,
    call,
    async giveTokens(owner, amount) {
      await call('sandbox_giveTokens', [owner, String(amount)])
    },
    async setLamports(of, amount) {
      await call('sandbox_setLamports', [of, String(amount)])
    },
    async advance(blocks) {
      return Number(await call('sandbox_advance', [blocks]))
    },
    async setFault(fault) {
      await call('sandbox_setFault', [{ ...fault }])
    },
    async clearFaults() {
      await call('sandbox_clearFaults', [])
    },
    stop: () => node.stop(),
  }
}

async function callNode(rpcUrl: string, method: string, params: readonly Json[]): Promise<Json> {
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(5_000),
  })
  const reply = parseJson(await response.text())
  const { result, error } = isJsonObject(reply) ? reply : {}
  if (isJsonObject(error)) throw new Error(`${method}: ${JSON.stringify(error['message'])}`)
  if (result === undefined) throw new Error(`${method}: the node does not answer`)
  return result
}
