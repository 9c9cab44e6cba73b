import { getBase58Encoder } from '@solana/kit'
import { isSvmAddress } from '../../engine/base/base58.ts'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import type { Bank, Landed, Outcome } from './bank.ts'
import { type Commitment, slotOf } from './blocks.ts'
import { type Faults, isFault } from './faults.ts'
import { invalidParams, RpcError } from './rpc-error.ts'
import { readMint, readTokenAccount } from './tokens.ts'
import { sentenceOf, type TransactionError } from './transaction-error.ts'
import { isSigned, readTransaction, type SentTransaction } from './transaction.ts'
import { accountView, amountView, landedView } from './views.ts'

export interface MethodContext {
  readonly bank: Bank
  readonly faults: Faults
  /** Names this chain, since its genesis hash is that of the network it stands in for. */
  readonly identity: string
  readonly genesisHash: string
  /** When blocks are made. */
  readonly blocks: 'with each transaction' | 'by time'
}

/** The answer, or a promise of it; throws `RpcError`. */
type Method = (context: MethodContext, params: readonly Json[]) => Json | Promise<Json>

const VERSION = '2.3.0'
const LARGEST_WIRE = 1_232
const NODE_BEHIND = -32016

const SANDBOX_METHODS: Readonly<Record<string, Method>> = {
  sandbox_identity: ({ identity }) => identity,
  sandbox_setLamports: ({ bank }, [at, amount]) => {
    bank.setLamports(text(at), BigInt(text(amount)))
    return null
  },
  sandbox_giveTokens: ({ bank }, [owner, amount]) => {
    bank.giveTokens(text(owner), BigInt(text(amount)))
    return null
  },
  sandbox_advance: ({ bank }, [blocks]) => {
    for (let made = 0; made < Number(blocks ?? 1); made += 1) bank.advance()
    return Number(bank.blocks.height)
  },
  sandbox_setFault: ({ faults }, [fault]) => {
    if (!isFault(fault)) throw invalidParams('unknown fault')
    faults.set(fault)
    return null
  },
  sandbox_clearFaults: ({ faults }) => {
    faults.clear()
    return null
  },
}

export const METHODS: Readonly<Record<string, Method>> = {
  ...SANDBOX_METHODS,
  getHealth: () => 'ok',
  getVersion: () => ({ 'solana-core': VERSION, 'feature-set': 0 }),
  getGenesisHash: ({ genesisHash }) => genesisHash,
  getSlot: ({ bank }, [options]) => Number(slotOf(bank.blocks.newest(commitmentIn(options)))),
  getBlockHeight: ({ bank }, [options]) => Number(bank.blocks.newest(commitmentIn(options))),
  getLatestBlockhash: ({ bank }, [options]) => {
    const height = bank.blocks.newest(commitmentIn(options))
    return withContext(bank, options, {
      blockhash: bank.blocks.hashAt(height),
      lastValidBlockHeight: Number(bank.blocks.lastValidHeight(height)),
    })
  },
  isBlockhashValid: ({ bank }, [hash, options]) =>
    withContext(bank, options, bank.blocks.isValid(text(hash))),
  getMinimumBalanceForRentExemption: ({ bank }, [bytes]) => Number(bank.rent(BigInt(Number(bytes)))),
  getBalance: ({ bank }, [at, options]) =>
    withContext(bank, options, Number(bank.account(address(at))?.lamports ?? 0n)),
  getAccountInfo: ({ bank }, [at, options]) =>
    withContext(bank, options, accountIn(bank, at, encodingIn(options, 'base58'))),
  getMultipleAccounts: ({ bank }, [list, options]) => {
    if (!Array.isArray(list)) throw invalidParams('expected a list of addresses.')
    const encoding = encodingIn(options, 'base64')
    return withContext(
      bank,
      options,
      list.map((at: Json) => accountIn(bank, at, encoding)),
    )
  },
  getTokenAccountBalance: ({ bank }, [at, options]) => {
    const account = bank.account(address(at))
    const held = account && readTokenAccount(account)
    if (held === undefined) throw invalidParams(account ? 'not a Token account' : 'could not find account')
    return withContext(bank, options, amountView(held.amount, decimalsIn(bank, held.mint)))
  },
  getSignatureStatuses: ({ bank }, [signatures]) => {
    if (!Array.isArray(signatures)) throw invalidParams('expected a list of signatures.')
    const statuses = signatures.map((each: Json) => statusOf(bank, bank.landed(text(each))))
    return withContext(bank, undefined, statuses)
  },
  getSignaturesForAddress: ({ bank }, [at, options]) => signaturesOf(bank, address(at), optionsIn(options)),
  getTransaction: ({ bank }, [signature, options]) => {
    const landed = bank.landed(text(signature))
    if (landed === undefined) return null
    const { maxSupportedTransactionVersion, encoding = 'json' } =
      typeof options === 'string' ? { encoding: options } : optionsIn(options)
    if (landed.sent.message.version === 0 && maxSupportedTransactionVersion === undefined)
      throw new RpcError(
        -32015,
        'Transaction version (0) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": 0',
      )
    return landedView(landed, encoding, (mint) => decimalsIn(bank, mint))
  },
  simulateTransaction: ({ bank }, [wire, options]) => {
    const { encoding, sigVerify = false, replaceRecentBlockhash = false, accounts } = optionsIn(options)
    const sent = transactionIn(wire, encoding)
    if (sigVerify === true && replaceRecentBlockhash === true)
      throw invalidParams('sigVerify may not be used with replaceRecentBlockhash')
    if (sigVerify === true && !isSigned(sent)) throw unsigned()
    const refusal = replaceRecentBlockhash === true ? undefined : bank.refusal(sent)
    const height = bank.blocks.height
    const replacement = {
      blockhash: bank.blocks.hashAt(height),
      lastValidBlockHeight: Number(bank.blocks.lastValidHeight(height)),
    }
    const outcome = refusal === undefined ? bank.simulate(sent) : refused(refusal)
    return withContext(bank, options, {
      ...simulationView(outcome),
      accounts: accounts === undefined ? null : accountsAfter(bank, outcome, accounts),
      ...(replaceRecentBlockhash === true && { replacementBlockhash: replacement }),
    })
  },
  sendTransaction: ({ bank, blocks }, [wire, options]) => {
    const { encoding = 'base58', skipPreflight = false } = optionsIn(options)
    const sent = transactionIn(wire, encoding)
    if (sent.signature === undefined) throw unsigned()
    if (skipPreflight !== true) preflight(bank, sent)
    bank.take(sent)
    if (blocks === 'with each transaction') bank.advance()
    return sent.signature
  },
}

/** The answer to a transaction that the node only pretends to take. */
export function pretendToSend([wire, options]: readonly Json[]): Json {
  return transactionIn(wire, optionsIn(options)['encoding'] ?? 'base58').signature ?? ''
}

function preflight(bank: Bank, sent: SentTransaction): void {
  if (!isSigned(sent)) throw unsigned()
  const refusal = bank.refusal(sent)
  const outcome = refusal === undefined ? bank.simulate(sent) : refused(refusal)
  if (outcome.error === undefined) return
  throw new RpcError(-32002, `Transaction simulation failed: ${sentenceOf(outcome.error)}`, {
    ...simulationView(outcome),
    accounts: null,
  })
}

function refused(error: TransactionError): Outcome {
  return { error, logs: [], units: 0n, accounts: new Map() }
}

function unsigned(): RpcError {
  return new RpcError(-32003, 'Transaction signature verification failure')
}

function simulationView({ error, logs, units }: Outcome): JsonObject {
  return {
    err: error ?? null,
    innerInstructions: null,
    logs,
    replacementBlockhash: null,
    returnData: null,
    unitsConsumed: Number(units),
  }
}

function accountsAfter(bank: Bank, outcome: Outcome, wanted: Json): Json {
  const { addresses, encoding = 'base64' } = optionsIn(wanted)
  if (!Array.isArray(addresses)) throw invalidParams('expected a list of addresses.')
  if (outcome.error !== undefined) return addresses.map(() => null)
  return addresses.map((at: Json) => {
    const account = outcome.accounts.get(address(at)) ?? bank.account(address(at))
    return account === undefined ? null : accountView(account, encoding, (mint) => decimalsIn(bank, mint))
  })
}

function accountIn(bank: Bank, at: Json | undefined, encoding: Json): Json {
  const account = bank.account(address(at))
  return account === undefined ? null : accountView(account, encoding, (mint) => decimalsIn(bank, mint))
}

function decimalsIn(bank: Bank, mint: string): number {
  const account = bank.account(mint)
  return (account && readMint(account))?.decimals ?? 0
}

function statusOf(bank: Bank, landed: Landed | undefined): Json {
  if (landed === undefined) return null
  const { height, error = null } = landed
  const confirmationStatus = bank.blocks.commitmentOf(height)
  return {
    confirmationStatus,
    confirmations: confirmationStatus === 'finalized' ? null : Number(bank.blocks.height - height),
    err: error,
    slot: Number(slotOf(height)),
    status: error === null ? { Ok: null } : { Err: error },
  }
}

function signaturesOf(bank: Bank, at: string, { before, until, limit = 1_000 }: JsonObject): Json {
  const all = bank.landedOf(at)
  const indexOf = (signature: Json) => all.findIndex((landed) => landed.signature === signature)
  const from = before === undefined ? 0 : indexOf(before) + 1
  const to = until === undefined ? -1 : indexOf(until)
  return all
    .slice(from, to === -1 ? all.length : to)
    .slice(0, Number(limit))
    .map((landed) => ({
      blockTime: landed.time,
      confirmationStatus: bank.blocks.commitmentOf(landed.height),
      err: landed.error ?? null,
      memo: null,
      signature: landed.signature,
      slot: Number(slotOf(landed.height)),
    }))
}

function withContext(bank: Bank, options: Json | undefined, value: Json): JsonObject {
  const slot = Number(bank.blocks.slot)
  const least = isJsonObject(options) ? options['minContextSlot'] : undefined
  if (typeof least === 'number' && least > slot)
    throw new RpcError(NODE_BEHIND, 'Minimum context slot has not been reached', { contextSlot: slot })
  return { context: { apiVersion: VERSION, slot }, value }
}

function transactionIn(wire: Json | undefined, encoding: Json = 'base58'): SentTransaction {
  if (encoding !== 'base64' && encoding !== 'base58')
    throw invalidParams(
      `unsupported encoding: ${JSON.stringify(encoding)}. Supported encodings: base58, base64`,
    )
  try {
    const bytes =
      encoding === 'base64' ? Buffer.from(text(wire), 'base64') : getBase58Encoder().encode(text(wire))
    if (bytes.length > LARGEST_WIRE) throw new RangeError('too large')
    return readTransaction(Uint8Array.from(bytes))
  } catch {
    throw invalidParams('failed to deserialize solana_transaction::versioned::VersionedTransaction')
  }
}

function optionsIn(options: Json | undefined): JsonObject {
  return isJsonObject(options) ? options : {}
}

function encodingIn(options: Json | undefined, usual: string): Json {
  return optionsIn(options)['encoding'] ?? usual
}

/** Nodes take `finalized` where nothing is said. */
function commitmentIn(options: Json | undefined): Commitment {
  const { commitment } = optionsIn(options)
  return commitment === 'processed' || commitment === 'confirmed' ? commitment : 'finalized'
}

function text(value: Json | undefined): string {
  if (typeof value !== 'string') throw invalidParams('expected a string.')
  return value
}

function address(value: Json | undefined): string {
  const found = text(value)
  if (!isSvmAddress(found)) throw invalidParams('WrongSize')
  return found
}
