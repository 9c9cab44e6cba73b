import { isJsonObject, parsePrice, type Json, type JsonObject } from '../engine/index.ts'
import { world } from './assemble.ts'
import type { Call, Command } from './command.ts'
import { offerPrice, readOffer, type SignableOffer } from './offer.ts'
import { signOffer } from './sign.ts'
import { findWallet, sandboxUrl } from './wallet.ts'

/** Exit codes a script can act on. */
const OVER_MAX = 3
const NOT_CHARGED = 4
const UNKNOWN = 5

export const pay: Command = {
  name: 'pay',
  summary: 'pay for one call and show the whole exchange',
  usage: 'pay <url or path> [--protocol x402] [--max USD] [--json]',
  takes: 1,
  examples: [
    "ratecard pay '/paid/util/workday?country=DE&date=2026-12-23&days=3'",
    'PAYER_PRIVATE_KEY=… ratecard pay https://api.example.com/paid/ping --max 0.01',
  ],
  options: { protocol: { type: 'string' }, max: { type: 'string' }, json: { type: 'boolean' } },
  run: async (call) => {
    const order = orderOf(call)
    if (typeof order === 'string') {
      call.terminal.err(`ratecard pay: ${order}`)
      return 64
    }
    const steps = new Steps(call, world.now)
    const bill = await exchange(call, order, steps)
    steps.finish(bill)
    return bill.exit
  },
}

interface Order {
  readonly url: URL
  /** Micro-dollars. */
  readonly max: bigint | undefined
}

function orderOf({ positionals, flags, env }: Call): Order | string {
  const [target] = positionals
  if (target === undefined) return 'say what to pay for: a URL, or a path of the sandbox that runs here'
  const protocol = flags.text('protocol')
  if (protocol !== undefined && protocol !== 'x402')
    return `--protocol takes x402; ${protocol} is not spoken yet`
  const base = target.startsWith('/')
    ? (sandboxUrl(env.dataDir) ?? env.baseUrl ?? `http://localhost:${env.port}`)
    : undefined
  const url = URL.canParse(target, base) ? new URL(target, base) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return `${target} is neither a URL (http://… or https://…) nor a path (/…)`
  const text = flags.text('max')
  const max = text === undefined ? undefined : parsePrice(text)
  if (max?.kind === 'fault') return '--max takes USD with at most six decimals, such as 0.01'
  return { url, max: max?.value }
}

interface Bill {
  readonly exit: number
  readonly status: number
  readonly charged: 'no' | 'yes' | 'unknown'
  readonly offer?: SignableOffer
  readonly transaction?: string
  readonly payment?: string
  readonly body: Json
  readonly note?: string
}

async function exchange({ env }: Call, { url, max }: Order, steps: Steps): Promise<Bill> {
  const first = await request(url)
  if (first === undefined)
    return { exit: NOT_CHARGED, status: 0, charged: 'no', body: null, note: `${url.origin} does not answer` }
  steps.tell(`${first.status} ${first.status === 402 ? 'payment required' : ''}`.trim())
  const said = { status: first.status, charged: 'no', body: first.body } as const
  if (first.status !== 402)
    return { ...said, exit: first.status === 200 ? 0 : NOT_CHARGED, note: 'nothing was asked for' }
  const offer = readOffer(first.headers.get('payment-required'))
  if (offer === undefined)
    return { ...said, exit: NOT_CHARGED, note: 'no offer of this 402 can be signed here' }
  steps.tell(
    `${offerPrice(offer)} USD in ${offer.network.token.symbol} on ${offer.network.title} (${offer.network.id}) to ${offer.payTo}`,
  )
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
  const signed = await signOffer(offer, wallet.key, new Date(world.now()), world.random)
  steps.tell(`signed by ${signed.payer}`)
  return settle(url, offer, signed.header, steps)
}

/** How often the same header is sent while the outcome is unknown: it can be charged once only. */
const TRIES = 5

async function settle(url: URL, offer: SignableOffer, header: string, steps: Steps): Promise<Bill> {
  let last: Response402 | undefined
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const response = await request(url, header)
    if (response !== undefined && chargedBy(response) !== 'unknown') return billOf(offer, response, steps)
    last = response ?? last
    steps.tell('outcome not known yet: the same payment is sent again')
    await world.sleep(1000 * attempt)
  }
  return {
    exit: UNKNOWN,
    status: last?.status ?? 0,
    charged: 'unknown',
    offer,
    body: last?.body ?? null,
    note: 'the outcome is not known: ask again with the same payment',
  }
}

function billOf(offer: SignableOffer, response: Response402, steps: Steps): Bill {
  const { status, headers, body } = response
  const charged = chargedBy(response)
  if (status !== 200) return { exit: charged === 'no' ? NOT_CHARGED : UNKNOWN, status, charged, offer, body }
  const receipt = readReceipt(headers.get('payment-response'))
  const transaction = typeof receipt?.['transaction'] === 'string' ? receipt['transaction'] : ''
  const settled = receipt?.['success'] === true
  steps.tell(settled ? `settled in ${transaction}` : 'answered without a receipt')
  return {
    exit: 0,
    status,
    charged: settled ? 'yes' : 'unknown',
    offer,
    transaction,
    payment: headers.get('ratecard-payment') ?? '',
    body,
  }
}

/** What an answer to a payment says of the money; an error page of something in between says nothing. */
function chargedBy({ status, body }: Response402): 'no' | 'yes' | 'unknown' {
  if (status === 200) return 'yes'
  const said = isJsonObject(body) ? body['charged'] : undefined
  if (said === 'no' || said === 'yes' || said === 'unknown') return said
  return status < 500 ? 'no' : 'unknown'
}

interface Response402 {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}

async function request(url: URL, payment?: string): Promise<Response402 | undefined> {
  const headers = {
    accept: 'application/json',
    ...(payment === undefined ? {} : { 'payment-signature': payment }),
  }
  try {
    // A redirect would take a signed payment to somebody else.
    const response = await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(60_000) })
    return { status: response.status, headers: response.headers, body: readJson(await response.text()) }
  } catch {
    return undefined
  }
}

function readReceipt(header: string | null): JsonObject | undefined {
  if (header === null) return undefined
  const value = readJson(Buffer.from(header, 'base64').toString('utf8'))
  return isJsonObject(value) ? value : undefined
}

function readJson(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Tells each step when it has happened, for people; with --json only the bill is printed. */
class Steps {
  readonly #call: Call
  readonly #now: () => number
  readonly #began: number

  constructor(call: Call, now: () => number) {
    this.#call = call
    this.#now = now
    this.#began = now()
  }

  tell(line: string): void {
    if (this.#call.flags.given('json')) return
    this.#call.terminal.err(`${String(this.#now() - this.#began).padStart(6)} ms  ${line}`)
  }

  finish({ status, charged, offer, transaction, payment, body, note }: Bill): void {
    const { flags, terminal } = this.#call
    if (note !== undefined) this.tell(note)
    if (flags.given('json')) {
      const bill = {
        status,
        charged,
        protocol: offer === undefined ? null : 'x402',
        network: offer?.network.id ?? null,
        amount: offer === undefined ? null : offerPrice(offer),
        transaction: transaction ?? null,
        payment: payment ?? null,
        body,
      }
      terminal.out(JSON.stringify(bill))
      return
    }
    this.tell(`${status === 0 ? 'no answer' : status}, charged: ${charged}`)
    terminal.out(typeof body === 'string' ? body : JSON.stringify(briefly(body), null, 2))
  }
}

/** Of a problem only what tells the reader what to do: its offers have been shown. */
function briefly(body: Json): Json {
  if (!isJsonObject(body) || body['title'] === undefined) return body
  const told = ['title', 'detail', 'hint', 'code', 'charged', 'would_fail'].flatMap(
    (key): [string, Json][] => {
      const value = body[key]
      return value === undefined ? [] : [[key, value]]
    },
  )
  return Object.fromEntries(told)
}
