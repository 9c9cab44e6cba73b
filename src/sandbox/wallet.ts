import { privateKeyToAccount, type PrivateKeyAccount } from '../vendor/viem-accounts.ts'
import { SANDBOX_WALLET } from '../engine/documents/payment-page.ts'
import { isJsonObject, type Json } from '../engine/base/json.ts'
import { TRANSFER_TYPES } from '../engine/base/transfer-types.ts'
import { isPlace, isWord, type SandboxState } from './state.ts'

/** The members of a Koa context that are used. */
interface Exchange {
  readonly method: string
  readonly path: string
  readonly req: AsyncIterable<Uint8Array>
  body: unknown
}

const LONGEST = 10_000

/**
 * A wallet for people who have none: answers the calls of EIP-1193 that a payment needs as `{result}` or `{error}`, and
 * signs with the payer of the sandbox, whose money is worth nothing.
 */
export function serveWallet({ payerKey, chainId }: SandboxState['evm']) {
  const account = privateKeyToAccount(payerKey)
  return async (ctx: Exchange, next: () => Promise<unknown>): Promise<unknown> => {
    if (ctx.path !== SANDBOX_WALLET || ctx.method !== 'POST') return next()
    try {
      ctx.body = { result: await answer(account, chainId, await readCall(ctx.req)) }
    } catch {
      ctx.body = { error: { code: -32602, message: 'The sandbox wallet only signs payments' } }
    }
    return undefined
  }
}

async function readCall(request: AsyncIterable<Uint8Array>): Promise<unknown> {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of request) {
    size += piece.length
    if (size > LONGEST) throw new RangeError('the call is too long')
    pieces.push(piece)
  }
  return JSON.parse(Buffer.concat(pieces).toString())
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

function signTransfer(account: PrivateKeyAccount, data: unknown): Promise<string> {
  const { domain, message } = isJsonObject(data) ? data : {}
  if (!isJsonObject(domain) || !isJsonObject(message)) throw new TypeError('no typed data')
  const { name, version, chainId, verifyingContract } = domain
  const { from, to, value, validAfter, validBefore, nonce } = message
  if (!isPlace(verifyingContract) || !isPlace(from) || !isPlace(to) || !isWord(nonce))
    throw new TypeError('no transfer')
  if (typeof name !== 'string' || typeof version !== 'string') throw new TypeError('no domain')
  const numbers = [value, validAfter, validBefore].map((each) =>
    typeof each === 'string' ? BigInt(each) : 0n,
  )
  const [amount = 0n, after = 0n, before = 0n] = numbers
  return account.signTypedData({
    domain: { name, version, chainId: Number(chainId), verifyingContract },
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      from,
      to,
      value: amount,
      validAfter: after,
      validBefore: before,
      nonce,
    },
  })
}
