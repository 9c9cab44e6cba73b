import type { Address } from '../../base/address.ts'
import { checkGas, gasWarning, type GasCheck } from '../../chains/evm/gas-balance.ts'
import { Chain } from '../../chains/evm/chain.ts'
import { type RpcTransport } from '../../base/runtime.ts'
import type { Network } from '../../base/networks.ts'
import { decodeText } from '../../chains/evm/abi.ts'
import { domainSeparator } from '../../chains/evm/eip3009/digest.ts'
import { isRevert, type RpcAnswer } from '../../chains/evm/json-rpc.ts'

/** A network as its own node describes it. */
export interface NetworkCheck {
  readonly token: TokenCheck
  /** One entry per signer; empty when the node does not return the gas price. */
  readonly gas: readonly { readonly signer: Address; readonly check: GasCheck }[]
}

/** Asks a node for everything that settlement on its network depends on. Never rejects. */
export async function checkNetwork(
  network: Network,
  rpcUrl: string,
  signers: readonly Address[],
  caller: RpcTransport,
): Promise<NetworkCheck> {
  const chain = new Chain(rpcUrl, caller)
  const [token, fees] = await Promise.all([checkToken(chain, network), chain.fees()])
  if (fees.kind !== 'result') return { token, gas: [] }
  // A key may stand twice in an operator’s list.
  const gas = Array.from(new Set(signers), async (signer) => ({
    signer,
    check: await checkGas(chain, signer, fees.result),
  }))
  return { token, gas: await Promise.all(gas) }
}

/** What an operator should know of a network that settles here, one line each. */
export function warningsOf(network: Network, { token, gas }: NetworkCheck): string[] {
  const name = `x402: ${network.title} (${network.id})`
  return [
    ...(token.kind === 'differs' ? [`${name} cannot be offered: ${token.detail}`] : []),
    ...(token.kind === 'unreachable' ? [`${name}: the RPC endpoint does not answer`] : []),
    ...gas.flatMap(({ signer, check }) => gasWarning(network, signer, check) ?? []),
  ]
}

/** Which chain a node is of; undefined when it does not answer. */
export async function askChainId(rpcUrl: string, caller: RpcTransport): Promise<bigint | undefined> {
  const answer = await new Chain(rpcUrl, caller).chainId()
  return answer.kind === 'result' ? answer.result : undefined
}

type TokenCheck =
  | { readonly kind: 'agrees' }
  /** Buyers would sign for a token other than the one at this address: nothing could be settled. */
  | { readonly kind: 'differs'; readonly detail: string }
  | { readonly kind: 'unreachable' }

/** Selectors of FiatTokenV2_2. */
const DOMAIN_SEPARATOR = '0x3644e515'
/** ERC-5267, of tokens that do not tell the separator itself. */
const EIP712_DOMAIN = '0x84b0196e'
const NAME = '0x06fdde03'
const VERSION = '0x54fd4d50'

/** Whether the token of a network signs under the EIP-712 domain that our offers name. Never rejects. */
export async function checkToken(chain: Chain, network: Network): Promise<TokenCheck> {
  const answer = await chain.read(network.token.address, DOMAIN_SEPARATOR)
  if (answer.kind !== 'result' && !isRevert(answer)) return { kind: 'unreachable' }
  const expected = `0x${domainSeparator(network)}`
  if (answer.kind === 'result' && answer.result.toLowerCase() === expected) return { kind: 'agrees' }
  if (answer.kind !== 'result' || answer.result === '0x') {
    const described = await chain.read(network.token.address, EIP712_DOMAIN)
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

/** Why the domains differ, the most likely reason first: the endpoint of another chain, another token, another name. */
async function explain(chain: Chain, { chainId, title, token }: Network): Promise<string | undefined> {
  const [id, name, version] = await Promise.all([
    chain.chainId(),
    chain.read(token.address, NAME),
    chain.read(token.address, VERSION),
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

function textOf(answer: RpcAnswer<`0x${string}`>): string | undefined {
  return answer.kind === 'result' ? decodeText(answer.result.slice(2)) : undefined
}

/** A text of a contract, shortened and escaped for a terminal. */
function quote(words: string): string {
  return JSON.stringify(words.slice(0, 40))
}
