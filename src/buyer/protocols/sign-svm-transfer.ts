import { isJsonObject, parseJson } from '../../engine/base/json.ts'
import { COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM, TOKEN_PROGRAM } from '../../engine/base/svm-programs.ts'
import { tokenAccountOf } from '../../engine/base/token-account.ts'
import { decodeBase58 } from '../../engine/base/base58.ts'
import type { SvmSigner } from './paying-protocol.ts'
import { writeMessage } from './svm-message.ts'
import type { SvmTerms } from './svm-terms.ts'
import type { SignedTerms } from './x402-terms.ts'

/** What a transfer with a memo takes, as the official client asks for it. */
const COMPUTE_UNITS = 20_000
/** Micro-lamports for each unit: the least that is more than nothing. */
const UNIT_PRICE = 1n

const ANSWERED_WITHIN_MS = 10_000

/**
 * Scheme `exact` on Solana: a transfer of the price between the associated token accounts of buyer and seller, which the
 * seller’s fee payer signs after us and sends.
 */
export async function signSvmTransfer(
  terms: SvmTerms,
  { key, rpcUrl, random }: SvmSigner,
): Promise<SignedTerms> {
  const { network, amount, payTo, feePayer, memo } = terms
  const { token, title, nickname } = network
  const payer = key.address
  if (feePayer === payer)
    return unsigned('the seller names the account that buys as the one that pays the fee')
  if (payTo === payer) return unsigned('the seller is the account that buys')
  const source = tokenAccountOf(payer, token.address)
  const destination = tokenAccountOf(payTo, token.address)
  if (source === undefined || destination === undefined) return unsigned('an account has no token account')
  const blockhash = await latestBlockhash(rpcUrl(network) ?? network.rpcUrl)
  if (blockhash === undefined) {
    const variable = `RPC_URL_${nickname.toUpperCase().replace('-', '_')}`
    return unsigned(`a node of ${title} must name a block, and none answers: set ${variable}`)
  }
  const message = writeMessage({
    accounts: [
      { address: feePayer, signs: true, writable: true },
      { address: payer, signs: true, writable: false },
      { address: source, signs: false, writable: true },
      { address: destination, signs: false, writable: true },
      ...[token.address, COMPUTE_BUDGET_PROGRAM, TOKEN_PROGRAM, MEMO_PROGRAM].map((address) => ({
        address,
        signs: false,
        writable: false,
      })),
    ],
    blockhash,
    instructions: [
      { program: COMPUTE_BUDGET_PROGRAM, accounts: [], data: unitLimit(COMPUTE_UNITS) },
      { program: COMPUTE_BUDGET_PROGRAM, accounts: [], data: unitPrice(UNIT_PRICE) },
      {
        program: TOKEN_PROGRAM,
        accounts: [source, token.address, destination, payer],
        data: transferChecked(amount, token.decimals),
      },
      // Two purchases of the same price in one block would otherwise be one transaction.
      {
        program: MEMO_PROGRAM,
        accounts: [],
        data: Buffer.from(memo ?? Buffer.from(random(16)).toString('hex')),
      },
    ],
  })
  const noSignature = new Uint8Array(64)
  const transaction = Buffer.concat([Uint8Array.of(2), noSignature, key.sign(message), message])
  return { kind: 'signed', payer, payload: { transaction: transaction.toString('base64') } }
}

function unitLimit(units: number): Uint8Array {
  const data = Buffer.alloc(5)
  data.writeUInt8(2)
  data.writeUInt32LE(units, 1)
  return data
}

function unitPrice(price: bigint): Uint8Array {
  const data = Buffer.alloc(9)
  data.writeUInt8(3)
  data.writeBigUInt64LE(price, 1)
  return data
}

function transferChecked(amount: bigint, decimals: number): Uint8Array {
  const data = Buffer.alloc(10)
  data.writeUInt8(12)
  data.writeBigUInt64LE(amount, 1)
  data.writeUInt8(decimals, 9)
  return data
}

/** Undefined when the node does not answer, or not with a hash. */
async function latestBlockhash(rpcUrl: string): Promise<string | undefined> {
  try {
    const response = await fetch(rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'getLatestBlockhash',
        params: [{ commitment: 'confirmed' }],
      }),
      signal: AbortSignal.timeout(ANSWERED_WITHIN_MS),
    })
    const reply = parseJson(await response.text())
    const result = isJsonObject(reply) ? reply['result'] : undefined
    const value = isJsonObject(result) ? result['value'] : undefined
    const blockhash = isJsonObject(value) ? value['blockhash'] : undefined
    return typeof blockhash === 'string' && decodeBase58(blockhash, 32) !== undefined ? blockhash : undefined
  } catch {
    return undefined
  }
}

function unsigned(reason: string): SignedTerms {
  return { kind: 'unsigned', reason }
}
