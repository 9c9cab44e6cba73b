import type { IncomingMessage, ServerResponse } from 'node:http'
import { privateKeyToAccount, type PrivateKeyAccount } from '../vendor/viem-accounts.ts'
import { SANDBOX_WALLET } from '../engine/documents/payment-page.ts'
import { BodyReader, discardBody } from '../engine/http/body-reader.ts'
import { isJsonObject, type Json, type JsonObject } from '../engine/base/json.ts'
import { APPROVAL_TYPES, PERMIT_TYPES } from '../engine/base/permit-types.ts'
import { TRANSFER_TYPES } from '../engine/base/transfer-types.ts'
import { openSvmAccount, type SvmAccount } from '../engine/base/svm-signature.ts'
import { readTransaction, writeTransaction } from '../engine/chains/svm/transaction.ts'
import { readTransfer } from '../engine/x402/exact-svm/transfer.ts'
import { isPlace, type SandboxState } from './state.ts'

/** The members of a Koa context that are used. */
interface Exchange {
  readonly method: string
  readonly path: string
  readonly req: IncomingMessage
  readonly res: ServerResponse
  body: unknown
}

/** Bytes of a call. */
const LONGEST = 10_000

/**
 * A wallet for people who have none: answers the calls of EIP-1193 that a payment needs as `{result}` or `{error}`, and
 * those of the Wallet Standard on Solana by their names there. It signs with the payers of the sandbox, whose money is
 * worth nothing.
 */
export function serveWallet({ evm, svm }: Pick<SandboxState, 'evm' | 'svm'>, fetcher: typeof fetch) {
  const { chainId, rpcUrl } = evm
  const account = privateKeyToAccount(evm.payerKey)
  const svmAccount = svm && openSvmAccount(svm.payerKey)
  const bodies = new BodyReader()
  return async (ctx: Exchange, next: () => Promise<unknown>): Promise<unknown> => {
    if (ctx.path !== SANDBOX_WALLET || ctx.method !== 'POST') return next()
    try {
      const call = await readCall(bodies, ctx)
      ctx.body = isRead(call)
        ? await readChain(fetcher, rpcUrl, call['params'])
        : { result: answerSvm(svmAccount, call) ?? (await answer(account, chainId, call)) }
    } catch {
      ctx.body = { error: { code: -32602, message: 'The sandbox wallet only signs payments' } }
    }
    return undefined
  }
}

async function readCall(bodies: BodyReader, { req, res }: Exchange): Promise<unknown> {
  const read = await bodies.read(req, res, LONGEST, 'json')
  if (Buffer.isBuffer(read)) return JSON.parse(read.toString())
  discardBody(req, res)
  throw new RangeError(`the call was not read: ${read}`)
}

async function answer(account: PrivateKeyAccount, chainId: number, call: unknown): Promise<Json> {
  if (!isJsonObject(call)) throw new TypeError('no call')
  const { method, params } = call
  if (method === 'eth_requestAccounts') return [account.address]
  if (method === 'eth_chainId') return `0x${chainId.toString(16)}`
  const [, data] = Array.isArray(params) ? params : []
  if (method !== 'eth_signTypedData_v4' || typeof data !== 'string') throw new TypeError('no such method')
  return signTransfer(account, JSON.parse(data))
}

/** Undefined for a call of another kind of network. */
function answerSvm(account: SvmAccount | undefined, call: unknown): Json | undefined {
  const { method, params } = isJsonObject(call) ? call : {}
  if (account === undefined) return undefined
  if (method === 'standard:connect') return [account.address]
  if (method !== 'solana:signTransaction') return undefined
  const [text] = Array.isArray(params) ? params : []
  return signSvmTransfer(account, Buffer.from(typeof text === 'string' ? text : '', 'base64'))
}

/** The transaction with the signature of its payer, in base64; throws when it is no payment of this account. */
function signSvmTransfer({ address, sign }: SvmAccount, bytes: Uint8Array): string {
  const read = readTransaction(bytes)
  if (read.kind !== 'transaction') throw new TypeError('no transaction')
  const { transaction } = read
  const layout = readTransfer(transaction)
  if (layout.kind !== 'transfer' || layout.transfer.payer !== address) throw new TypeError('no payment')
  const [ofFeePayer] = transaction.signatures
  if (ofFeePayer === undefined) throw new TypeError('no fee payer')
  const signatures = [ofFeePayer, sign(transaction.message)]
  return Buffer.from(writeTransaction({ ...transaction, signatures })).toString('base64')
}

/** What a wallet asks its node: balances, and what contracts may move. */
function isRead(call: unknown): call is JsonObject {
  return isJsonObject(call) && call['method'] === 'eth_call'
}

async function readChain(
  fetcher: typeof fetch,
  rpcUrl: string,
  params: Json | undefined,
): Promise<JsonObject> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_call', params })
  const headers = { 'content-type': 'application/json' }
  const response: unknown = await (await fetcher(rpcUrl, { method: 'POST', headers, body })).json()
  if (!isJsonObject(response)) throw new TypeError('no answer')
  const { result = null, error } = response
  return error === undefined ? { result } : { error }
}

/** What payments are made of: transfers (EIP-3009), permits (Permit2) and their approvals (EIP-2612). */
const TYPES = new Map<
  Json | undefined,
  Readonly<Record<string, readonly { readonly name: string; readonly type: string }[]>>
>([
  ['TransferWithAuthorization', TRANSFER_TYPES],
  ['PermitWitnessTransferFrom', PERMIT_TYPES],
  ['Permit', APPROVAL_TYPES],
])

function signTransfer(account: PrivateKeyAccount, data: unknown): Promise<string> {
  const { domain, message, primaryType } = isJsonObject(data) ? data : {}
  const types = TYPES.get(primaryType)
  if (!isJsonObject(domain) || !isJsonObject(message) || types === undefined)
    throw new TypeError('no payment')
  if (typeof primaryType !== 'string') throw new TypeError('no type')
  const { name, version, chainId, verifyingContract } = domain
  if (!isPlace(verifyingContract) || typeof name !== 'string') throw new TypeError('no domain')
  return account.signTypedData({
    domain: {
      name,
      ...(typeof version === 'string' && { version }),
      chainId: Number(chainId),
      verifyingContract,
    },
    types,
    primaryType,
    message,
  })
}
