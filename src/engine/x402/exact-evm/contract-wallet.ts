import type { Address } from '../../base/address.ts'
import type { Refusal } from '../../base/errors.ts'
import { bytes, selector, word } from '../../chains/evm/abi.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import { isRevert } from '../../chains/evm/json-rpc.ts'
import { NODE_UNREACHABLE } from './node-unreachable.ts'

const IS_VALID_SIGNATURE = selector('isValidSignature(bytes32,bytes)')

/** Whether a contract wallet accepts a signature (ERC-1271); an address without code accepts none. */
export async function verifyErc1271(
  chain: Chain,
  wallet: Address,
  digest: Uint8Array,
  signature: `0x${string}`,
): Promise<Refusal | undefined> {
  const head = Buffer.from(digest).toString('hex') + word(64n)
  const answer = await chain.call(wallet, `0x${IS_VALID_SIGNATURE}${head}${bytes(signature)}`)
  if (answer.kind === 'result' && VALID.test(answer.result.slice(0, 66))) return undefined
  if (answer.kind !== 'result' && !isRevert(answer)) return NODE_UNREACHABLE
  const isWallet = answer.kind !== 'result' || answer.result !== '0x'
  return { code: 'invalid_exact_evm_signature', detail: isWallet ? WRONG_WALLET : WRONG_KEY }
}

/** The one answer that means yes, in a word of 32 bytes. */
const VALID = /^0x1626ba7e0{56}$/i
const WRONG_KEY = 'the signature is not the one of authorization.from for this token and chain'
const WRONG_WALLET = 'the paying contract does not accept this signature'
