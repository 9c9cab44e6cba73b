import { formatPrice, isJsonObject, type Json, world } from '../../engine/internal.ts'
import type { Env } from '../../env.ts'
import { type Bill, parseNumbersAsWritten, type Steps } from './result.ts'
import { mpp } from './mpp.ts'
import type { Offer, PayingProtocol } from './protocol.ts'
import { findWallet, sandboxUrl } from './wallet.ts'
import { x402 } from './x402.ts'

/** An answer, read to its end. */
interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  /** The bytes as JSON, or else as text. */
  readonly body: Json
}

/** What is sent, without the payment. */
export interface HttpCall {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer> | undefined
}

/** Asks once; undefined when no answer has come back. */
async function request(
  call: HttpCall,
  payment: Readonly<Record<string, string>>,
): Promise<Answer | undefined> {
  const { url, method, body = null } = call
  const headers = { accept: 'application/json, */*;q=0.9', ...call.headers, ...payment }
  try {
    // A redirect would take a signed payment to somebody else.
    const signal = AbortSignal.timeout(60_000)
    const response = await fetch(url, { method, headers, body, redirect: 'manual', signal })
    const bytes = Buffer.from(await response.arrayBuffer())
    return { status: response.status, headers: response.headers, bytes, body: readJson(bytes.toString()) }
  } catch {
    return undefined
  }
}

function readJson(text: string): Json {
  try {
    return parseNumbersAsWritten(text)
  } catch {
    return text
  }
}

/** Every way to pay that is known here, the preferred one first. */
export const PROTOCOLS: readonly PayingProtocol[] = [x402, mpp]

/** Exit codes a script can act on. */
const OVER_MAX = 3
const NOT_CHARGED = 4
const UNKNOWN = 5

/** What is to be paid for, and on which terms. */
export interface PurchaseRequest {
  readonly call: HttpCall
  /** Micro-dollars. */
  readonly max: bigint | undefined
  /** In order of preference. */
  readonly protocols: readonly PayingProtocol[]
}

/** Asks, pays what is asked for, and asks again with the payment. */
export async function exchange(
  env: Env,
  { call, max, protocols }: PurchaseRequest,
  steps: Steps,
): Promise<Bill> {
  const { url } = call
  const first = await request(call, {})
  if (first === undefined)
    return { exit: NOT_CHARGED, status: 0, charged: 'no', body: null, note: `${url.origin} does not answer` }
  steps.tell(`${first.status} ${first.status === 402 ? 'payment required' : ''}`.trim())
  const said = { status: first.status, charged: 'no', body: first.body, ...contentOf(first) } as const
  if (first.status !== 402)
    return { ...said, exit: first.status === 200 ? 0 : NOT_CHARGED, note: 'nothing was asked for' }
  const offer = findOffer(first.headers, protocols)
  if (offer === undefined)
    return { ...said, exit: NOT_CHARGED, note: 'no offer of this 402 can be signed here' }
  const fee = offer.fee === 'payer' ? ', and the network’s fee' : ''
  steps.tell(`${formatPrice(offer.amount)} USD in ${offer.money} (${offer.network}) to ${offer.payTo}${fee}`)
  if (max !== undefined && offer.amount > max)
    return { ...said, exit: OVER_MAX, offer, note: 'the price is over --max' }
  const wallet = findWallet(url, env)
  if (wallet === undefined) {
    const sandbox = sandboxUrl(env.dataDir)
    const other =
      sandbox === undefined ? 'start a sandbox here' : `call the sandbox by its own address, ${sandbox}`
    return { ...said, exit: NOT_CHARGED, offer, note: `no wallet: set PAYER_PRIVATE_KEY, or ${other}` }
  }
  if (wallet.kind === 'environment' && max === undefined) {
    return { ...said, exit: OVER_MAX, offer, note: 'a real wallet needs --max USD' }
  }
  const signing = await offer.sign({
    key: wallet.keys[offer.protocol],
    rpcUrl: (chainId) => wallet.rpcUrls[chainId],
    now: new Date(world.now()),
    random: world.random,
  })
  if (signing.kind === 'unsigned') return { ...said, exit: NOT_CHARGED, offer, note: signing.reason }
  steps.tell(`signed by ${signing.payer}`)
  return settle(call, offer, signing.headers, steps)
}

function findOffer(headers: Headers, protocols: readonly PayingProtocol[]): Offer | undefined {
  for (const protocol of protocols) {
    const offer = protocol.readOffer(headers)
    if (offer !== undefined) return offer
  }
  return undefined
}

/** How often the same payment is sent while the outcome is unknown: it can be charged once only. */
const TRIES = 5

async function settle(
  call: HttpCall,
  offer: Offer,
  payment: Readonly<Record<string, string>>,
  steps: Steps,
): Promise<Bill> {
  let last: Answer | undefined
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const answer = await request(call, payment)
    const charged = answer === undefined ? 'unknown' : chargedBy(offer, answer, attempt)
    if (answer !== undefined && (answer.status === 200 || charged !== 'unknown'))
      return billOf(offer, answer, charged, steps)
    last = answer ?? last
    steps.tell('outcome not known yet: the same payment is sent again')
    await world.sleep(1000 * attempt)
  }
  return {
    exit: UNKNOWN,
    status: last?.status ?? 0,
    charged: 'unknown',
    offer,
    payment: last?.headers.get('ratecard-payment') ?? undefined,
    body: last?.body ?? null,
    note: 'the outcome is not known: ask again with the same payment',
  }
}

/**
 * What an answer to a payment says of the money. An error page of something in between says nothing, and that a copy
 * is refused says nothing of the original.
 */
function chargedBy(offer: Offer, { status, headers, body }: Answer, attempt: number): Bill['charged'] {
  if (isEarlier(headers)) return 'no'
  if (offer.readReceipt(headers) !== undefined) return 'yes'
  if (status === 200) return 'unknown'
  const said = isJsonObject(body) ? body['charged'] : undefined
  if (said === 'no' || said === 'yes' || said === 'unknown') return said
  return status < 500 && attempt === 1 ? 'no' : 'unknown'
}

/** Whether the answer was bought by an earlier payment of the same buyer, which is the one that was charged. */
function isEarlier(headers: Headers): boolean {
  return headers.get('ratecard-charged') === 'earlier'
}

/** The bytes of an answer that is no problem, for `--output`. */
function contentOf({ status, headers, bytes }: Answer): Pick<Bill, 'content'> {
  if (status !== 200) return {}
  return { content: { bytes, mediaType: headers.get('content-type') ?? 'application/octet-stream' } }
}

function billOf(offer: Offer, answer: Answer, charged: Bill['charged'], steps: Steps): Bill {
  const { status, headers, body } = answer
  const transaction = offer.readReceipt(headers)
  const payment = headers.get('ratecard-payment') ?? undefined
  if (isEarlier(headers))
    steps.tell(`bought before with ${payment ?? 'another payment'}: this one was not used and is not charged`)
  else if (transaction !== undefined) steps.tell(`settled in ${transaction}`)
  else if (status === 200) steps.tell('answered without a receipt')
  const failed = charged === 'no' ? NOT_CHARGED : UNKNOWN
  const exit = status === 200 ? 0 : failed
  return { exit, status, charged, offer, transaction, payment, body, ...contentOf(answer) }
}
