import type { Network } from '../../networks.ts'
import { isRevert, type Chain, type RpcAnswer } from '../../chains/evm/rpc.ts'
import { domainSeparator } from './signature.ts'

export type TokenCheck =
  | { readonly kind: 'agrees' }
  /** Buyers would sign for another token than the one that stands here: nothing could ever be settled. */
  | { readonly kind: 'differs'; readonly detail: string }
  | { readonly kind: 'unreachable' }

/** Selectors of FiatTokenV2_2; spelt out, for this is asked before anything heavy is loaded. */
const DOMAIN_SEPARATOR = '0x3644e515'
/** ERC-5267, of tokens that do not tell the separator itself. */
const EIP712_DOMAIN = '0x84b0196e'
const NAME = '0x06fdde03'
const VERSION = '0x54fd4d50'

/** Whether the token of a network signs under the EIP-712 domain that our offers name. Never rejects. */
export async function checkToken(chain: Chain, network: Network): Promise<TokenCheck> {
  const answer = await chain.call(network.token.address, DOMAIN_SEPARATOR)
  if (answer.kind !== 'result' && !isRevert(answer)) return { kind: 'unreachable' }
  const expected = `0x${Buffer.from(domainSeparator(network)).toString('hex')}`
  if (answer.kind === 'result' && answer.result.toLowerCase() === expected) return { kind: 'agrees' }
  if (answer.kind !== 'result' || answer.result === '0x') {
    const described = await chain.call(network.token.address, EIP712_DOMAIN)
    if (described.kind === 'result' && describes(described.result, network)) return { kind: 'agrees' }
  }
  const detail = await explain(chain, network)
  return detail === undefined ? { kind: 'unreachable' } : { kind: 'differs', detail }
}

/** Name, version, chain and contract: the fields that buyers sign under, and no others (bits 0 to 3). */
const FIELDS = 0x0f

/** Whether the answer of `eip712Domain()` names the domain of the network’s token. */
function describes(answer: string, { chainId, token }: Network): boolean {
  const bytes = Buffer.from(answer.slice(2), 'hex')
  const word = (at: number): bigint =>
    at + 32 > bytes.length ? 0n : BigInt(`0x${bytes.subarray(at, at + 32).toString('hex')}`)
  const text = (place: number): string => {
    const at = Number(word(place * 32))
    return bytes.subarray(at + 32, at + 32 + Number(word(at))).toString('utf8')
  }
  return (
    bytes[0] === FIELDS &&
    text(1) === token.name &&
    text(2) === token.version &&
    word(3 * 32) === BigInt(chainId) &&
    word(4 * 32) === BigInt(token.address)
  )
}

/** Most likely first: the endpoint of another chain, another token, another name. */
async function explain(chain: Chain, { chainId, title, token }: Network): Promise<string | undefined> {
  const [id, name, version] = await Promise.all([
    chain.chainId(),
    chain.call(token.address, NAME),
    chain.call(token.address, VERSION),
  ])
  if (id.kind !== 'result') return undefined
  if (id.result !== BigInt(chainId))
    return `RPC_URL_${chainId} leads to chain ${id.result} and not to ${title}`
  const [itsName, itsVersion] = [textOf(name), textOf(version)]
  if (itsName === undefined || itsVersion === undefined)
    return `no token with EIP-3009 answers at ${token.address}`
  if (itsName === token.name && itsVersion === token.version)
    return `the token at ${token.address} signs under another domain than its name and version say`
  return `the token at ${token.address} is ${quote(itsName)} version ${quote(itsVersion)}, and offers say ${quote(token.name)} version ${quote(token.version)}`
}

/** A string as the ABI encodes it: where it begins, its length, its bytes. */
function textOf(answer: RpcAnswer<`0x${string}`>): string | undefined {
  if (answer.kind !== 'result') return undefined
  const bytes = Buffer.from(answer.result.slice(2), 'hex')
  if (bytes.length < 64) return undefined
  const length = Number(BigInt(`0x${bytes.subarray(32, 64).toString('hex')}`))
  return length > bytes.length - 64 ? undefined : bytes.subarray(64, 64 + length).toString('utf8')
}

/** A stranger’s words, for a terminal. */
function quote(words: string): string {
  return JSON.stringify(words.slice(0, 40))
}
