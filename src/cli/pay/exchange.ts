import { formatPrice, isJsonObject, type Json, systemRuntime } from '../../engine/internal.ts'
import type { Env } from '../../env.ts'
import { type Bill, parseNumbersAsWritten, type Steps } from './result.ts'
import { mpp } from './mpp.ts'
import {
  metaOf,
  type Offer,
  type PayingProtocol,
  type ProtocolName,
  type Reply,
  type Signing,
} from './protocol.ts'
import { findWallet, sandboxUrl, type Wallet } from './wallet.ts'
import { x402 } from './x402.ts'

/** What a seller has answered. */
export interface Answer {
  /** Status over HTTP, also of a tool's result. */
  readonly status: number
  readonly reply: Reply
  readonly body: Json
}

/** An answer of HTTP, read to its end. */
interface Page extends Answer {
  readonly reply: Extract<Reply, { readonly kind: 'http' }>
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

/** Milliseconds to wait for the headers of an answer, and for each piece of it. */
const PATIENCE_MS = 60_000

/** Media types whose lines are printed before the answer ends. */
const STREAMS = /^(?:text\/event-stream|application\/(?:x-ndjson|jsonl))\b/

/** Sends one request; undefined without a complete answer. Prints the lines of a stream as they arrive. */
export async function request(
  call: HttpCall,
  payment: Readonly<Record<string, string>>,
  print?: (line: string) => void,
): Promise<Page | undefined> {
  const { url, method, body = null } = call
  const headers = { accept: 'application/json, */*;q=0.9', ...call.headers, ...payment }
  const silence = new AbortController()
  const timer = setTimeout(() => silence.abort(), PATIENCE_MS)
  try {
    // A redirect would send a signed payment to another host.
    const init = { method, headers, body, redirect: 'manual', signal: silence.signal } as const
    const response = await fetch(url, init)
    const { status, headers: said } = response
    const isStream = status === 200 && STREAMS.test(said.get('content-type') ?? '')
    const feed = print !== undefined && isStream ? linePrinter(print) : undefined
    const chunks: Uint8Array[] = []
    for await (const chunk of response.body ?? []) {
      timer.refresh()
      chunks.push(chunk)
      feed?.(chunk)
    }
    feed?.()
    const bytes = Buffer.concat(chunks)
    return { status, reply: { kind: 'http', headers: said }, bytes, body: readJson(bytes.toString()) }
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

/** Takes the bytes of a text as they come; nothing: this was all. */
function linePrinter(print: (line: string) => void): (chunk?: Uint8Array) => void {
  const decoder = new TextDecoder()
  let rest = ''
  return (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: chunk !== undefined })).split('\n')
    rest = lines.pop() ?? ''
    if (chunk === undefined && rest !== '') lines.push(rest)
    for (const line of lines) print(line)
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

/** Requests, pays what is asked, and requests again with the payment. */
export async function exchange(
  env: Env,
  { call, max, protocols }: PurchaseRequest,
  steps: Steps,
): Promise<Bill> {
  const { url } = call
  const print = (line: string): void => steps.print(line)
  const first = await request(call, {}, print)
  if (first === undefined)
    return { exit: NOT_CHARGED, status: 0, charged: 'no', body: null, note: `${url.origin} does not answer` }
  steps.tell(`${first.status} ${first.status === 402 ? 'payment required' : ''}`.trim())
  const said = { status: first.status, charged: 'no', body: first.body, ...contentOf(first) } as const
  if (first.status !== 402)
    return { ...said, exit: first.status === 200 ? 0 : NOT_CHARGED, note: 'nothing was asked for' }
  const offer = findOffer(first.reply, protocols)
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
  const signing = await signOffer(offer, wallet)
  if (signing.kind === 'unsigned') return { ...said, exit: NOT_CHARGED, offer, note: signing.reason }
  steps.tell(`signed by ${signing.payer}`)
  const settled = await settle({
    ask: () => request(call, signing.headers, print),
    protocol: offer.protocol,
    attempt: 1,
    tell: (line) => steps.tell(line),
  })
  return billOf(offer, settled, steps)
}

export function findOffer(reply: Reply, protocols: readonly PayingProtocol[]): Offer | undefined {
  for (const protocol of protocols) {
    const offer = protocol.readOffer(reply)
    if (offer !== undefined) return offer
  }
  return undefined
}

export function signOffer(offer: Offer, wallet: Wallet): Promise<Signing> {
  return offer.sign({
    key: wallet.keys[offer.protocol],
    rpcUrl: (chainId) => wallet.rpcUrls[chainId],
    now: new Date(systemRuntime.now()),
    random: systemRuntime.random,
  })
}

/** How often the same payment is sent while the outcome is unknown: it can be charged once only. */
const TRIES = 5

interface SettleRequest<T extends Answer> {
  /** Requests with the payment; undefined when no answer arrived. */
  readonly ask: () => Promise<T | undefined>
  readonly protocol: ProtocolName
  /** 1 for a payment that was never sent before. */
  readonly attempt: number
  readonly tell: (line: string) => void
}

/** What became of a payment. */
export interface Settled<T extends Answer> {
  /** The last one. */
  readonly answer: T | undefined
  readonly charged: Bill['charged']
  readonly transaction: string | undefined
}

/** Sends a payment until its outcome is known, a few times at most. */
export async function settle<T extends Answer>(order: SettleRequest<T>): Promise<Settled<T>> {
  const { ask, protocol, tell } = order
  let last: T | undefined
  for (let attempt = order.attempt; attempt < order.attempt + TRIES; attempt += 1) {
    if (attempt > order.attempt) {
      tell('outcome not known yet: the same payment is sent again')
      await systemRuntime.sleep(1000 * (attempt - order.attempt))
    }
    const answer = await ask()
    last = answer ?? last
    const transaction = answer && PROTOCOLS.find(({ name }) => name === protocol)?.readReceipt(answer.reply)
    const isRefusedCopy = attempt > 1 && protocol === 'mpp' && answer?.status === 402
    const charged =
      answer === undefined || isRefusedCopy ? 'unknown' : chargedBy(answer, transaction, attempt)
    if (answer !== undefined && (answer.status === 200 || charged !== 'unknown'))
      return { answer, charged, transaction }
  }
  return { answer: last, charged: 'unknown', transaction: undefined }
}

/**
 * What an answer to a payment proves about the charge. An error page of an intermediary proves nothing, and a
 * refused copy says nothing of the original: MPP refuses every copy of an answered payment.
 */
function chargedBy(
  { status, reply, body }: Answer,
  transaction: string | undefined,
  attempt: number,
): Bill['charged'] {
  if (isEarlier(reply)) return 'no'
  if (transaction !== undefined) return 'yes'
  if (status === 200) return 'unknown'
  const said = isJsonObject(body) ? body['charged'] : undefined
  if (said === 'no' || said === 'yes' || said === 'unknown') return said
  return status < 500 && attempt === 1 ? 'no' : 'unknown'
}

/** Whether an earlier payment of the same buyer has bought the answer, and was charged. */
export function isEarlier(reply: Reply): boolean {
  const charged =
    reply.kind === 'tool' ? metaOf(reply, 'ratecard/charged') : reply.headers.get('ratecard-charged')
  return charged === 'earlier'
}

/** The bytes of an answer that is no problem, for `--output`. */
function contentOf({ status, reply, bytes }: Page): Pick<Bill, 'content'> {
  if (status !== 200) return {}
  return { content: { bytes, mediaType: reply.headers.get('content-type') ?? 'application/octet-stream' } }
}

function billOf(offer: Offer, { answer, charged, transaction }: Settled<Page>, steps: Steps): Bill {
  const payment = answer?.reply.headers.get('ratecard-payment') ?? undefined
  const { status = 0, body = null } = answer ?? {}
  const bill = { status, charged, offer, payment, body }
  if (answer === undefined || (charged === 'unknown' && status !== 200))
    return { ...bill, exit: UNKNOWN, note: 'the outcome is not known: ask again with the same payment' }
  if (isEarlier(answer.reply))
    steps.tell(`bought before with ${payment ?? 'another payment'}: this one was not used and is not charged`)
  else if (transaction !== undefined) steps.tell(`settled in ${transaction}`)
  else if (status === 200) steps.tell('answered without a receipt')
  const failed = charged === 'no' ? NOT_CHARGED : UNKNOWN
  return { ...bill, exit: status === 200 ? 0 : failed, transaction, ...contentOf(answer) }
}
