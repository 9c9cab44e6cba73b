import { FACILITATOR_SETTLE_MS } from '../../base/money-times.ts'
import { isTransactionHash } from '../../chains/evm/log-scanner.ts'
import { decodeBase58, isSvmAddress } from '../../base/base58.ts'
import { isAddress, toChecksum, type Address } from '../../base/address.ts'
import { isJsonObject, parseJson } from '../../base/json.ts'
import type { Network } from '../../base/networks.ts'
import { GAS_SPONSORING } from '../../base/permit2.ts'
import type { HttpResponse, Runtime } from '../../base/runtime.ts'
import { cdpToken, readCdpKey, type CdpCredentials } from './cdp-token.ts'
import type { PaymentPayload } from '../payload.ts'
import type { Requirements } from '../requirements.ts'
import { facilitatorRequestInV1, takesV1 } from '../v1.ts'
import type { ListingResponse } from '../../payment/listing-report.ts'
import { EXTENSION_RESPONSES, readListingResponse } from './listing-reports.ts'

/** A service that verifies and settles payments for others (x402 v2 core §7), over HTTP. */
export interface Facilitator {
  /** Without a slash at its end. */
  readonly url: string
  /** POST /verify: moves nothing. */
  verify(request: string): Promise<FacilitatorAnswer<VerifyResponse>>
  /** POST /settle: moves the money, once however often it is asked. */
  settle(request: string): Promise<FacilitatorAnswer<SettleResponse>>
  /** GET /supported. */
  supported(): Promise<FacilitatorAnswer<readonly SupportedKind[]>>
  /** Body of /verify and /settle, in a version that it has listed for the network. */
  bodyOf(request: FacilitatorRequest): string
}

/** A payment and the offer that it is for. */
export interface FacilitatorRequest {
  readonly payload: PaymentPayload<object>
  readonly requirements: Requirements
}

/** How to reach a facilitator. */
export interface FacilitatorAccess {
  readonly url: string
  /** Sent as a bearer token. */
  readonly token: string | undefined
  /** Signs a token for each request, instead of a fixed one. */
  readonly cdp?: CdpCredentials | undefined
}

/** The answer of a facilitator, or what is known of the request without one. */
export type FacilitatorAnswer<T> =
  | { readonly kind: 'answer'; readonly value: T }
  /** No connection came about: the facilitator has seen nothing of the request. */
  | { readonly kind: 'unreached' }
  /** A status that is given for tokens, rate limits and addresses, and no word on the payment. */
  | { readonly kind: 'declined'; readonly status: number }
  /** No readable answer: the request may have been executed or not. */
  | { readonly kind: 'lost' }

interface VerifyResponse {
  readonly isValid: boolean
  readonly invalidReason: string | undefined
}

export interface SettleResponse {
  readonly success: boolean
  /** Hash in hexadecimal, or on Solana the signature in base58; undefined when there is none. */
  readonly transaction: string | undefined
  readonly errorReason: string | undefined
  /** What it says it has moved, in atomic units. */
  readonly amount?: bigint
  /** What its registry makes of the operation that was paid for. */
  readonly listing: ListingResponse | undefined
}

export interface SupportedKind {
  readonly x402Version: number
  readonly scheme: string
  /** CAIP-2, or a namespace with an asterisk. */
  readonly network: string
  /** On Solana, the account that pays for the transactions. */
  readonly feePayer?: string
  /** Of scheme upto, who carries out what was signed. */
  readonly permits?: ListedAccounts
}

/** Accounts of a facilitator, one of which a buyer names in what it signs for scheme upto. */
export interface ListedAccounts {
  /** The one to offer. */
  readonly account: Address
  /** Every one, the offered one too. */
  readonly accounts: readonly Address[]
  /** Whether approvals that a payer has signed (EIP-2612) are sent along. */
  readonly approvals: 'sent along' | 'not sent'
}

const VERIFY_MS = 8_000
const SUPPORTED_MS = 5_000
/** A real answer is below 4 KB. */
const LARGEST_BYTES = 65_536

/** The connection has ended without an answer: a new one, or one that was kept and that the other end has closed. */
interface Cut {
  readonly kind: 'cut'
}

function lostIfCut<T>(answer: FacilitatorAnswer<T> | Cut): FacilitatorAnswer<T> {
  return answer.kind === 'cut' ? { kind: 'lost' } : answer
}

/**
 * Connections are kept for a few seconds. A settlement is sent once: the caller decides what is repeated. No result
 * contains URL, token or response text.
 */
export function createFacilitator(
  { url, token, cdp }: FacilitatorAccess,
  { http, now, random, deadline }: Pick<Runtime, 'http' | 'now' | 'random' | 'deadline'>,
): Facilitator {
  const key = cdp === undefined ? undefined : readCdpKey(cdp)
  const authorizationOf = (method: 'GET' | 'POST', path: string): { readonly authorization?: string } => {
    const bearer =
      key === undefined ? token : cdpToken(key, { method, url: `${url}/${path}`, now: now(), random })
    return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
  }
  const ask = async <T>(
    path: string,
    { body, milliseconds }: { readonly body?: string; readonly milliseconds: number },
    read: (body: unknown, response: HttpResponse) => T | undefined,
  ): Promise<FacilitatorAnswer<T> | Cut> => {
    const method = body === undefined ? 'GET' : 'POST'
    const sent = body === undefined ? {} : { 'content-type': 'application/json' }
    const signal = deadline(milliseconds)
    try {
      const response = await http(`${url}/${path}`, {
        method,
        headers: { accept: 'application/json', ...sent, ...authorizationOf(method, path) },
        body,
        signal,
      })
      const value = read(await bodyOf(response), response)
      if (value !== undefined) return { kind: 'answer', value }
      const { status } = response
      return isDeclining(status) ? { kind: 'declined', status } : { kind: 'lost' }
    } catch (fault) {
      if (wasNeverSent(fault)) return { kind: 'unreached' }
      return { kind: signal.aborted ? 'lost' : 'cut' }
    }
  }
  /** For requests that move nothing: the other end may close a kept connection just when it is used again. */
  const askAgain = async <T>(
    send: () => Promise<FacilitatorAnswer<T> | Cut>,
  ): Promise<FacilitatorAnswer<T>> => {
    const first = await send()
    return lostIfCut(first.kind === 'cut' ? await send() : first)
  }
  /** The kinds that the facilitator listed last. */
  let kinds: readonly SupportedKind[] = []
  return {
    url,
    verify: (body) => askAgain(() => ask('verify', { body, milliseconds: VERIFY_MS }, asVerifyResponse)),
    settle: async (body) =>
      lostIfCut(await ask('settle', { body, milliseconds: FACILITATOR_SETTLE_MS }, asSettleResponse)),
    supported: async () => {
      const answer = await askAgain(() => ask('supported', { milliseconds: SUPPORTED_MS }, asSupportedKinds))
      if (answer.kind === 'answer') kinds = answer.value
      return answer
    },
    bodyOf: ({ payload, requirements }) => {
      const { network } = requirements
      const isOld =
        !kinds.some((kind) => takes(kind, requirements)) && kinds.some((kind) => takesV1(kind, network))
      return JSON.stringify(
        isOld
          ? facilitatorRequestInV1(payload, requirements)
          : { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements },
      )
    },
  }
}

/**
 * Statuses that are usually given before anything has begun. They do not prove it: a gateway that repeats a request may
 * answer with them after the first attempt was carried out. 400 is not among them: some say it for every exception.
 */
const DECLINING: ReadonlySet<number> = new Set([401, 403, 404, 405, 413, 429])

function isDeclining(status: number): boolean {
  return DECLINING.has(status) || (status >= 300 && status < 400)
}

/** Facilitators say no under 4xx and 5xx as well as under 200: the body counts, not the status. */
async function bodyOf(response: HttpResponse): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body) {
    bytes += chunk.byteLength
    // Leaving the loop cancels the stream.
    if (bytes > LARGEST_BYTES) return undefined
    chunks.push(chunk)
  }
  return parseJson(Buffer.concat(chunks).toString('utf8'))
}

function asVerifyResponse(body: unknown): VerifyResponse | undefined {
  if (!isJsonObject(body) || typeof body['isValid'] !== 'boolean') return undefined
  return { isValid: body['isValid'], invalidReason: asText(body['invalidReason']) }
}

function asSettleResponse(body: unknown, { header }: HttpResponse): SettleResponse | undefined {
  if (!isJsonObject(body) || typeof body['success'] !== 'boolean') return undefined
  const transaction = asText(body['transaction'])
  const amount = asAmount(body['amount'])
  return {
    success: body['success'],
    transaction: isTransactionHash(transaction) || isSvmSignature(transaction) ? transaction : undefined,
    errorReason: asText(body['errorReason']),
    ...(amount !== undefined && { amount }),
    listing: readListingResponse(header(EXTENSION_RESPONSES)),
  }
}

function asSupportedKinds(body: unknown): readonly SupportedKind[] | undefined {
  if (!isJsonObject(body) || !Array.isArray(body['kinds'])) return undefined
  const { signers, extensions } = body
  return body['kinds'].flatMap((kind: unknown): SupportedKind[] => {
    if (!isJsonObject(kind)) return []
    const { x402Version, scheme, network, extra } = kind
    const named = isJsonObject(extra) ? (asText(extra['feePayer']) ?? '') : ''
    const feePayer = isSvmAddress(named) ? { feePayer: named } : {}
    if (typeof x402Version !== 'number' || typeof scheme !== 'string' || typeof network !== 'string')
      return []
    const permits = scheme === 'upto' ? accountsIn(extra, signers, extensions) : undefined
    return [{ x402Version, scheme, network, ...feePayer, ...(permits && { permits }) }]
  })
}

/** Lists have a signer for each family of networks; those of EVM networks are one. */
function accountsIn(extra: unknown, signers: unknown, extensions: unknown): ListedAccounts | undefined {
  const named = isJsonObject(extra) ? (asText(extra['facilitatorAddress']) ?? '') : ''
  if (!isAddress(named)) return undefined
  const listed = isJsonObject(signers)
    ? Object.entries(signers).flatMap(([family, each]) =>
        family.startsWith('eip155:') && Array.isArray(each) ? each.flatMap((one) => asText(one) ?? []) : [],
      )
    : []
  const account = toChecksum(named)
  return {
    account,
    accounts: [...new Set([account, ...listed.filter(isAddress).map(toChecksum)])],
    approvals: Array.isArray(extensions) && extensions.includes(GAS_SPONSORING) ? 'sent along' : 'not sent',
  }
}

function asAmount(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^[0-9]{1,78}$/.test(value) ? BigInt(value) : undefined
}

function isSvmSignature(text: string | undefined): text is string {
  return text !== undefined && decodeBase58(text, 64) !== undefined
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** Faults of a certificate end the handshake, before the request is written. */
const CERTIFICATE = /^(?:CERT_|ERR_TLS_CERT|ERR_SSL_WRONG_VERSION|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/

/** Whether the connection failed before a byte of the request was written, by the errors of Node and undici. */
export function wasNeverSent(fault: unknown): boolean {
  if (!(fault instanceof Error)) return false
  if (fault instanceof AggregateError && fault.errors.length > 0) return fault.errors.every(wasNeverSent)
  const code = 'code' in fault && typeof fault.code === 'string' ? fault.code : ''
  const syscall = 'syscall' in fault ? fault.syscall : undefined
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || CERTIFICATE.test(code)) return true
  if (fault.message.includes('before secure TLS connection was established')) return true
  return wasNeverSent(fault.cause)
}

type NamedNetwork = Pick<Network, 'id' | 'title'>

export interface Survey {
  /** What an operator should know, one sentence each. */
  readonly problems: readonly string[]
  /** CAIP-2 ids of networks that no facilitator takes, by the word of all of them. */
  readonly unsupported: readonly string[]
  /** Those that are paid by upto alone: exact is listed by none. */
  readonly withoutExact: readonly string[]
  /** The kinds that the facilitators list, in order of preference. */
  readonly kinds: readonly (SupportedKind & { readonly by: Facilitator })[]
}

/** Asks every facilitator once what it settles. Never rejects. */
export async function surveyFacilitators(
  facilitators: readonly Facilitator[],
  networks: readonly NamedNetwork[],
): Promise<Survey> {
  if (networks.length === 0) return { problems: [], unsupported: [], withoutExact: [], kinds: [] }
  const answers = await Promise.all(
    facilitators.map(async (facilitator) => ({ facilitator, answer: await facilitator.supported() })),
  )
  const problems = answers.flatMap(({ facilitator: { url }, answer }) => {
    const name = `facilitator ${new URL(url).host}`
    switch (answer.kind) {
      case 'answer':
        return []
      case 'declined':
        return answer.status === 401 || answer.status === 403
          ? [`${name} refuses us (${answer.status}): check its credentials`]
          : [`${name} has no /supported (${answer.status}): check its URL`]
      case 'unreached':
      case 'lost':
        return [`${name} does not answer: payments fail while it is away`]
    }
  })
  const kinds = answers.flatMap(({ facilitator: by, answer }) =>
    answer.kind === 'answer' ? answer.value.map((kind) => ({ ...kind, by })) : [],
  )
  // One that has not answered may be the one that settles there.
  const withoutExact =
    problems.length > 0
      ? []
      : networks.filter(({ id }) => !kinds.some((kind) => takes(kind, exactOn(id)) || takesV1(kind, id)))
  const unsupported = withoutExact.filter(({ id }) => !kinds.some((kind) => takesPermits(kind, id)))
  const blamed = unsupported.map(
    ({ title, id }) =>
      `${title} (${id}) cannot be offered: no facilitator settles there; take it from payments.x402.networks or name another facilitator`,
  )
  return {
    problems: [...problems, ...blamed],
    unsupported: unsupported.map(({ id }) => id),
    withoutExact: withoutExact.filter((network) => !unsupported.includes(network)).map(({ id }) => id),
    kinds,
  }
}

/** Whether an entry of a facilitator’s list is scheme upto on a network, with an account that settles it. */
export function takesPermits(kind: SupportedKind, network: string): boolean {
  return kind.permits !== undefined && takes(kind, { scheme: 'upto', network })
}

/** Whether an entry of a facilitator’s list is a scheme on a network, in version 2. */
export function takes(
  { x402Version, scheme, network }: SupportedKind,
  asked: Pick<Requirements, 'scheme' | 'network'>,
): boolean {
  const [namespace = ''] = asked.network.split(':')
  return (
    x402Version === 2 &&
    scheme === asked.scheme &&
    (network === asked.network || network === `${namespace}:*`)
  )
}

export function exactOn(network: string): Pick<Requirements, 'scheme' | 'network'> {
  return { scheme: 'exact', network }
}
