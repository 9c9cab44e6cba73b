import { isJsonObject, parseJson } from '../../engine/base/json.ts'
import { writeTransferMessage } from '../../engine/base/svm-transfer-message.ts'
import { svmRpcVariable } from '../../engine/base/networks.ts'
import { tokenAccountOf } from '../../engine/base/token-account.ts'
import { decodeBase58 } from '../../engine/base/base58.ts'
import type { SvmSigner } from './paying-protocol.ts'
import type { SvmTerms } from './svm-terms.ts'
import type { SignedTerms } from './x402-terms.ts'

const ANSWERED_WITHIN_MS = 10_000

/**
 * Scheme `exact` on Solana: a transfer of the price between the associated token accounts of buyer and seller, which the
 * seller’s fee payer signs after us and sends.
 */
export async function signSvmTransfer(
  terms: SvmTerms,
  { key, rpcUrl, random }: SvmSigner,
): Promise<SignedTerms> {
  const { network, amount, payTo, feePayer, memo, recentBlockhash } = terms
  const { token, title } = network
  const payer = key.address
  if (feePayer === payer)
    return unsigned('the seller names the account that buys as the one that pays the fee')
  if (payTo === payer) return unsigned('the seller is the account that buys')
  const source = tokenAccountOf(payer, token.address)
  const destination = tokenAccountOf(payTo, token.address)
  if (source === undefined || destination === undefined) return unsigned('an account has no token account')
  // The seller has named its block when it made the offer, which may be a while ago.
  const blockhash = (await latestBlockhash(rpcUrl(network) ?? network.rpcUrl)) ?? recentBlockhash
  if (blockhash === undefined) {
    return unsigned(`a node of ${title} must name a block, and none answers: set ${svmRpcVariable(network)}`)
  }
  const message = writeTransferMessage({
    feePayer,
    owner: payer,
    source,
    destination,
    mint: token.address,
    decimals: token.decimals,
    amount,
    // Two purchases of the same price in one block would otherwise be one transaction.
    memo: memo ?? Buffer.from(random(16)).toString('hex'),
    blockhash,
  })
  const noSignature = new Uint8Array(64)
  const transaction = Buffer.concat([Uint8Array.of(2), noSignature, key.sign(message), message])
  return { kind: 'signed', payer, payload: { transaction: transaction.toString('base64') } }
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
