import type { Address } from '../base/address.ts'
import { word } from '../chains/evm/abi.ts'
import type { Chain } from '../chains/evm/chain.ts'
import { isRevert } from '../chains/evm/json-rpc.ts'

/** Tempo’s precompile for the sequences of an account, and its `getNonce(address,uint256)`. */
const NONCE_MANAGER = '0x4e4F4E4345000000000000000000000000000000'
const GET_NONCE = '0x89535803'
/** Tempo’s precompile for fees, and its `userTokens(address)`. */
const FEE_MANAGER = '0xfeEC000000000000000000000000000000000000'
const USER_TOKENS = '0xed498fa8'
/** Tempo’s precompile for access keys, and its `getKey`, `getRemainingLimit…(address,address,address)`. */
const ACCOUNT_KEYCHAIN = '0xaAAAaaAA00000000000000000000000000000000'
const GET_KEY = '0xbc298553'
const REMAINING_LIMIT = '0xa7f72cab'
/** The selector before the hardfork T3. */
const OLDER_REMAINING_LIMIT = '0x63b4290d'
const BALANCE_OF = '0x70a08231'

const UNLIMITED = 2n ** 256n - 1n

/** The next nonce of a sequence: 0 names the account’s own. Undefined when the node does not say. */
export async function nextNonce(chain: Chain, payer: Address, nonceKey: bigint): Promise<bigint | undefined> {
  if (nonceKey !== 0n) return read(chain, NONCE_MANAGER, `${GET_NONCE}${word(payer)}${word(nonceKey)}`)
  const answer = await chain.nextNonce(payer)
  return answer.kind === 'result' ? answer.result : undefined
}

/** What an account holds of a token, in atomic units; undefined when the node does not say. */
export function balanceOf(chain: Chain, payer: Address, token: Address): Promise<bigint | undefined> {
  return read(chain, token, `${BALANCE_OF}${word(payer)}`)
}

/** The token an account pays fees in when its transaction names none; `fallback` when the account has named none. */
export async function feeTokenOf(
  chain: Chain,
  payer: Address,
  fallback: Address,
): Promise<Address | undefined> {
  const token = await read(chain, FEE_MANAGER, `${USER_TOKENS}${word(payer)}`)
  if (token === undefined) return undefined
  return token === 0n ? fallback : `0x${token.toString(16).padStart(40, '0')}`
}

/** What an access key may still spend of a token, fees included; undefined when the node does not say. */
export async function spendingLimit(
  chain: Chain,
  {
    payer,
    accessKey,
    token,
  }: { readonly payer: Address; readonly accessKey: Address; readonly token: Address },
): Promise<bigint | undefined> {
  const names = `${word(payer)}${word(accessKey)}`
  const [key, remaining] = await Promise.all([
    chain.read(ACCOUNT_KEYCHAIN, `${GET_KEY}${names}`),
    chain.read(ACCOUNT_KEYCHAIN, `${REMAINING_LIMIT}${names}${word(token)}`),
  ])
  if (key.kind !== 'result') return undefined
  // Type, id, expiry, whether limits are enforced, whether it is revoked.
  if (wordAt(key.result, 3) === 0n) return UNLIMITED
  if (isRevert(remaining))
    return read(chain, ACCOUNT_KEYCHAIN, `${OLDER_REMAINING_LIMIT}${names}${word(token)}`)
  return remaining.kind === 'result' ? wordAt(remaining.result, 0) : undefined
}

async function read(chain: Chain, to: Address, data: `0x${string}`): Promise<bigint | undefined> {
  const answer = await chain.read(to, data)
  return answer.kind === 'result' ? wordAt(answer.result, 0) : undefined
}

function wordAt(hex: string, place: number): bigint | undefined {
  const digits = hex.slice(2 + 64 * place, 2 + 64 * (place + 1))
  return digits.length === 64 ? BigInt(`0x${digits}`) : undefined
}
