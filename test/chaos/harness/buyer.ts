import { setTimeout as delay } from 'node:timers/promises'
import { isJsonObject } from '../../../src/engine/base/json.ts'
import type { Hex } from '../../support/payment.ts'
import type { Secrets } from '../../support/secrets.ts'
import type { PaymentMethod } from './payment-method.ts'
import type { Purchase, PurchaseLog } from './purchase-log.ts'
import type { SeededRandom } from './seeded-random.ts'
import { EVENTS } from './upstream.ts'

/**
 * What a buyer does when an answer does not come:
 *
 * - `same-payment`: sends the same payment again, until it is answered or refused
 * - `stock`: runs the protocol’s own client again, which gets a new 402 and signs again
 * - `impatient`: the same, and disconnects when an answer takes too long to begin, or a stream to end
 */
export type RetryStrategy = 'same-payment' | 'stock' | 'impatient'

export const RETRY_STRATEGIES: readonly RetryStrategy[] = ['same-payment', 'stock', 'impatient']

export interface BuyerSettings {
  readonly method: PaymentMethod
  readonly key: Hex
  /** Of the key. */
  readonly address: string
  readonly strategy: RetryStrategy
  readonly random: SeededRandom
  readonly log: PurchaseLog
  readonly secrets: Secrets
  /** Base address of a randomly chosen process. */
  readonly anyUrl: () => string
}

/** Share of purchases with arguments that several buyers use, or one buyer several times. */
const SHARED_RATE = 0.15
const SHARED_ARGUMENTS = 10
const MAX_PAUSE_MS = 2_000

/**
 * State of a run: `killing`, then `over`, when purchases that were begun are completed, then `ended`, when nothing answers
 * any more; a run that fails has `ended` at once.
 */
export type Phase = 'killing' | 'over' | 'ended'

/** Makes one purchase after the other while processes are killed. */
export async function buy(settings: BuyerSettings, phase: () => Phase): Promise<void> {
  const { random, log, method } = settings
  while (phase() === 'killing') {
    // Pauses leave some buyers untouched by a kill, so that they meet a server that others keep busy.
    await delay(random.between(0, MAX_PAUSE_MS))
    const route = random.oneOf(method.routes)
    const n = random.chance(SHARED_RATE)
      ? random.between(1, SHARED_ARGUMENTS)
      : SHARED_ARGUMENTS + log.purchases.length
    const purchase: Purchase = {
      buyer: settings.address,
      route,
      n,
      payments: new Map(),
      events: [`${settings.strategy} ${settings.address}`],
      answer: undefined,
    }
    log.purchases.push(purchase)
    await complete(settings, purchase, phase)
  }
}

/**
 * Sends the payments of an unanswered purchase once more, after the last kill: an answer is not lost when its buyer gave
 * up while it was on its way.
 */
export async function resendPayments(settings: BuyerSettings, purchase: Purchase): Promise<void> {
  const { method, anyUrl } = settings
  const transport = loggedFetch(settings, purchase)
  for (const header of purchase.payments.values()) {
    if (purchase.answer !== undefined) return
    const signal = AbortSignal.timeout(MAX_REQUEST_MS)
    const { url, init } = requestFor(purchase, anyUrl(), { [method.header]: header })
    await transport(url, { ...init, signal }).catch(() => undefined)
  }
}

interface PurchaseRequest {
  readonly url: string
  readonly init: Omit<RequestInit, 'headers'> & { readonly headers: Record<string, string> }
}

function requestFor(
  { route, n }: Purchase,
  base: string,
  headers: Record<string, string> = {},
): PurchaseRequest {
  const { path, post } = route.request(n)
  const url = `${base}/paid/${path}`
  if (post === undefined) return { url, init: { headers } }
  const { type, body } = post
  return { url, init: { method: 'POST', headers: { ...headers, 'content-type': type }, body } }
}

/** How long a buyer continues after the last kill. */
const GIVE_UP_MS = 120_000
const MAX_REQUEST_MS = 60_000

/** Tries until the purchase is answered, or the buyer gives up. */
async function complete(settings: BuyerSettings, purchase: Purchase, phase: () => Phase): Promise<void> {
  const { random } = settings
  const attempt = attempts(settings, purchase)
  let giveUpAt = Infinity
  while (purchase.answer === undefined && phase() !== 'ended' && Date.now() < giveUpAt) {
    if (giveUpAt === Infinity && phase() === 'over') giveUpAt = Date.now() + GIVE_UP_MS
    await attempt().catch(() => undefined)
    if (purchase.answer === undefined) await delay(random.between(100, 600))
  }
}

function attempts(settings: BuyerSettings, purchase: Purchase): () => Promise<void> {
  const { method, key, strategy, random, anyUrl } = settings
  const transport = loggedFetch(settings, purchase)
  const paying = method.client(key, transport)
  let patience = 1
  let header: string | undefined
  const { sign } = method
  const stock = async (): Promise<void> => {
    const { url, init } = requestFor(purchase, anyUrl())
    await paying(url, { ...init, signal: AbortSignal.timeout(MAX_REQUEST_MS) })
  }
  // A new payment for a call with effects is a second purchase: only the same payment identifies the first.
  switch (purchase.route.hasEffect ? 'same-payment' : strategy) {
    case 'same-payment':
      if (sign === undefined) return stock
      return async () => {
        const { url, init } = requestFor(purchase, anyUrl())
        header ??= await sign(url, key, (input) => transport(input, init))
        const headers = { ...init.headers, [method.header]: header }
        const response = await transport(url, { ...init, headers })
        // A 402 says that nothing was charged, so the buyer may sign again.
        if (response.status === 402) header = undefined
      }
    case 'stock':
      return stock
    case 'impatient':
      return async () => {
        patience *= 1.3
        const timeout = Math.min(random.between(50, 600) * patience, MAX_REQUEST_MS)
        const { url, init } = requestFor(purchase, anyUrl())
        await paying(url, { ...init, signal: AbortSignal.timeout(timeout) })
      }
  }
}

/** A fetch that records what is sent and received. */
function loggedFetch(settings: BuyerSettings, purchase: Purchase): typeof fetch {
  const { method, log, secrets } = settings
  return async (input, init) => {
    const request = new Request(input, init)
    const header = request.headers.get(method.header)
    if (header !== null && !purchase.payments.has(method.referenceOf(header))) {
      purchase.payments.set(method.referenceOf(header), header)
      secrets.addHeader(header)
    }
    const requestedAt = Date.now()
    const record = (outcome: string): void => {
      const what = header === null ? 'unpaid request' : `payment ${method.referenceOf(header)}`
      const server = new URL(request.url).port
      purchase.events.push(`${timeOf(requestedAt)} ${what} to ${server}; ${timeOf(Date.now())} ${outcome}`)
    }
    let head = ''
    const connection = new AbortController()
    const leave = (): void => connection.abort()
    request.signal.addEventListener('abort', leave, { once: true })
    try {
      const response = await fetch(new Request(request, { signal: connection.signal }))
      head = ` after the head of a ${response.status}`
      // Its body comes with the head. A buyer who left now would throw away what has arrived, and the server cannot know.
      if (response.headers.has('content-length')) request.signal.removeEventListener('abort', leave)
      log.statuses.set(response.status, (log.statuses.get(response.status) ?? 0) + 1)
      if (header === null) record(String(response.status))
      else record(await readAnswer(settings, purchase, { response: response.clone(), request, requestedAt }))
      return response
    } catch (error) {
      log.cutOff += 1
      record(`cut off${head}`)
      throw error
    }
  }
}

interface Exchange {
  readonly request: Request
  readonly requestedAt: number
  readonly response: Response
}

/** Stores the response to a payment in its purchase; resolves to a line for the purchase’s events. */
async function readAnswer(
  { method, log, secrets }: BuyerSettings,
  purchase: Purchase,
  { request, requestedAt, response }: Exchange,
): Promise<string> {
  const [text = '', ending] = (await secrets.scanResponse(response)).split(RECEIPT_EVENT)
  const body: unknown = JSON.parse(messageIn(text))
  if (!isJsonObject(body)) throw new Error('an answer is not an object')
  const payment = response.headers.get('ratecard-payment')
  if (response.status !== 200) return `${response.status} ${JSON.stringify(body['code'])}`
  if (body['n'] !== purchase.n) {
    log.wrongAnswers += 1
    return '200 for other arguments'
  }
  const { origin: from } = new URL(request.url)
  const transaction = method.receiptOf(response, ending)
  purchase.answer = {
    from,
    requestedAt,
    receivedAt: Date.now(),
    payment,
    transaction,
    run: body['run'],
  }
  return `200 by ${payment ?? 'no payment'}`
}

/** Begins the last event of a stream whose charge its headers could not state. */
const RECEIPT_EVENT = 'event: receipt\ndata: '

/** The JSON of an answer, or the data that all events of a stream repeat. */
function messageIn(text: string): string {
  const events = text.match(/^data: .*$/gm) ?? []
  const [first] = new Set(events)
  if (first === undefined) return text
  if (events.length !== EVENTS || new Set(events).size !== 1)
    throw new Error(`a stream has ${events.length} of ${EVENTS} events`)
  return first.slice('data: '.length)
}

function timeOf(at: number): string {
  return new Date(at).toISOString().slice(11, 23)
}
