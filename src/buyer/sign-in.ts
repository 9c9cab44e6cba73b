import { privateKeyToAccount } from '../vendor/viem-accounts.ts'
import { isJsonObject, type JsonObject } from '../engine/base/json.ts'
import { signInText, type SignInMessage } from '../engine/base/sign-in-message.ts'
import { decodeJson, type Reply } from './protocols/paying-protocol.ts'

/** Header and extension of x402 by which a wallet signs in for what is free. */
const SIGN_IN = 'sign-in-with-x'

type Demand = Omit<SignInMessage, 'address'>

/** What a 402 without offers asks to be signed; undefined when it asks for nothing. */
export function readSignIn({ headers }: Extract<Reply, { readonly kind: 'http' }>): JsonObject | undefined {
  const required = decodeJson(headers.get('payment-required') ?? '')
  if (!isJsonObject(required) || !isJsonObject(required['extensions'])) return undefined
  const extension = required['extensions'][SIGN_IN]
  const isFree = Array.isArray(required['accepts']) && required['accepts'].length === 0
  return isFree && isJsonObject(extension) ? extension : undefined
}

export type SignedIn =
  | { readonly kind: 'signed'; readonly address: string; readonly headers: Readonly<Record<string, string>> }
  /** Nothing was signed; the sentence says why. */
  | { readonly kind: 'unsigned'; readonly reason: string }

/** Signs the message of a service in for one address of it, and for no other service. */
export async function signIn(extension: JsonObject, url: URL, key: `0x${string}`): Promise<SignedIn> {
  const demand = demandOf(extension)
  if (demand === undefined) return refuse('what it asks to be signed cannot be read')
  const { origin, pathname, host } = url
  if (demand.domain !== host || !URL.canParse(demand.uri))
    return refuse('it asks to sign in at another service')
  const uri = new URL(demand.uri)
  if (uri.origin !== origin || uri.pathname !== pathname)
    return refuse('it asks to sign in at another address')
  const account = privateKeyToAccount(key)
  const message = { ...demand, address: account.address }
  const signature = await account.signMessage({ message: signInText(message) })
  const proof = JSON.stringify({ ...message, type: 'eip191', signature })
  return {
    kind: 'signed',
    address: account.address,
    headers: { [SIGN_IN]: Buffer.from(proof).toString('base64') },
  }
}

function refuse(reason: string): SignedIn {
  return { kind: 'unsigned', reason }
}

/** A line break in a field would let it pass for other fields. Other members than these are not signed. */
function demandOf({ info, supportedChains }: JsonObject): Demand | undefined {
  if (!isJsonObject(info) || !Array.isArray(supportedChains)) return undefined
  const chainId = supportedChains
    .filter(isJsonObject)
    .find(
      ({ type, chainId: id }) => type === 'eip191' && typeof id === 'string' && /^eip155:\d+$/.test(id),
    )?.['chainId']
  const line = (name: string): string | undefined => {
    const value = info[name]
    return typeof value === 'string' && /^\P{Cc}*$/u.test(value) ? value : undefined
  }
  const [domain, uri, nonce, issuedAt] = ['domain', 'uri', 'nonce', 'issuedAt'].map(line)
  if (domain === undefined || uri === undefined || nonce === undefined || issuedAt === undefined)
    return undefined
  if (typeof chainId !== 'string' || info['version'] !== '1') return undefined
  const [statement, expirationTime] = [line('statement'), line('expirationTime')]
  return {
    domain,
    uri,
    version: '1',
    chainId,
    nonce,
    issuedAt,
    ...(statement !== undefined && { statement }),
    ...(expirationTime !== undefined && { expirationTime }),
  }
}
