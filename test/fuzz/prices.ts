import t from 'tap'
import { CatalogError } from '../../src/engine/catalog/issue.ts'
import { compileText } from '../../src/engine/catalog/load-catalog.ts'
import type { Catalog } from '../../src/engine/catalog/catalog.ts'
import { documentNames } from '../../src/engine/documents/all.ts'
import { fc } from '../support/fast-check.ts'
import { arrivedOf, costOf } from './support/arrived.ts'
import { calls, type Call } from './support/price-arguments.ts'
import { catalogOf, type Sold, soldRoutes } from './support/price-declarations.ts'
import { attempt } from './support/property-run.ts'
import { OFFER, openRecordingShop, PAYMENT } from './support/recording-shop.ts'

t.setTimeout(3_600_000)

function compile(text: string): Catalog {
  const inputs = { handlers: undefined, documents: documentNames, read: () => undefined }
  return compileText('catalog.yaml', text, inputs).catalog
}

const EMPTY = JSON.stringify({
  catalog: 1,
  service: { name: 'Counts', version: '1.0.0', description: 'Counts' },
  payments: { currency: 'USD', x402: { networks: ['base'] } },
  routes: { '/paid/none': { price: 1, summary: 'None', handler: 'none' } },
})
const shop = await openRecordingShop(t, () => compile(EMPTY))

/** The answer to one request, of a route or a tool. */
interface Answered {
  readonly status: number
  /** Atomic units that are asked for. */
  readonly offer: string | undefined
  /** Whether the arguments would be refused after a payment. */
  readonly isRefused: boolean
  readonly text: string
}

const encoded = encodeURIComponent
const pairOf = ([name, text]: readonly [string, string]): string => `${encoded(name)}=${encoded(text)}`

/** The arguments that a route takes, in the two ways in which they can be sent. */
function given({ names }: Sold, { values, twice }: Call, form: 'text' | 'json'): [string, string][] {
  const all = names.flatMap((name): [string, string][] => {
    const value = values[name]
    return value === undefined ? [] : [[name, value[form]]]
  })
  const [first] = all
  return twice && first !== undefined ? [...all, first] : all
}

const objectOf = (members: readonly (readonly [string, string])[]): string =>
  `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`

interface Sent {
  readonly type: string
  readonly body: string | Uint8Array<ArrayBuffer>
}

function bodyOf(sold: Sold, call: Call): Sent | undefined {
  switch (sold.form) {
    case 'json':
    case 'whole':
      return { type: 'application/json', body: objectOf(given(sold, call, 'json')) }
    case 'form': {
      const type = 'application/x-www-form-urlencoded'
      return { type, body: given(sold, call, 'text').map(pairOf).join('&') }
    }
    case 'array':
      return { type: 'application/json', body: `[${call.items.join(' , ')}]` }
    case 'text':
      return { type: 'text/plain', body: call.items.join('\r\n') }
    case 'bytes':
      return { type: 'image/png', body: new Uint8Array(call.bytes) }
    default:
      return undefined
  }
}

async function request(sold: Sold, call: Call, payment: string | undefined): Promise<Answered> {
  const sent = bodyOf(sold, call)
  const texts = sent === undefined ? given(sold, call, 'text') : []
  const inPath = sold.form === 'path' ? sold.names[0] : undefined
  const path = sold.path.replace(/\{.*\}/, () => encoded(texts.find(([name]) => name === inPath)?.[1] ?? '-'))
  const query = texts
    .filter(([name]) => name !== inPath)
    .map(pairOf)
    .join('&')
  const response = await fetch(`${shop.url}${path}?${query}`, {
    method: sold.method,
    headers: {
      ...(sent === undefined ? {} : { 'content-type': sent.type }),
      ...(payment === undefined ? {} : { [PAYMENT]: payment }),
    },
    body: sent?.body ?? null,
  })
  const text = await response.text()
  return {
    status: response.status,
    offer: response.headers.get(OFFER) ?? undefined,
    isRefused: text.includes('"would_fail"'),
    text,
  }
}

async function callTool(sold: Sold, call: Call, payment: string | undefined): Promise<Answered> {
  const { form, tool } = sold
  const body = bodyOf(sold, call)
  const wholes = {
    whole: () => String(body?.body),
    array: () => String(body?.body),
    text: () => JSON.stringify(String(body?.body)),
    bytes: () => JSON.stringify(Buffer.from(call.bytes).toString('base64')),
  }
  const args =
    form === 'whole' || form === 'array' || form === 'text' || form === 'bytes'
      ? `{"body":${wholes[form]()}}`
      : objectOf(given(sold, call, 'json'))
  const meta = payment === undefined ? {} : { [PAYMENT]: payment }
  // As text, so that numbers and members are sent as they were drawn.
  const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":${args},"_meta":${JSON.stringify(meta)}}}`
  const response = await fetch(`${shop.url}/mcp/tools`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
    },
    body: message,
  })
  const text = await response.text()
  const offer = /"x-test-offer\\?":\\?"(\d+)/.exec(text)?.[1]
  const isAnswer = response.status === 200 && !/"isError\\?":true|"error":\{/.test(text)
  const status = isAnswer ? 200 : offer === undefined ? 422 : 402
  return { status, offer, isRefused: offer === undefined, text }
}

let payments = 0

/** Buys one call, and compares what was asked for it with what arrived; says how it ended. */
async function buy(sold: Sold, call: Call): Promise<string> {
  const send = call.by === 'mcp' ? callTool : request
  const place = `${sold.form} to ${sold.sink === 'proxy' ? 'upstream' : 'handler'} by ${call.by}`
  const unpaid = await send(sold, call, undefined)
  if (unpaid.status >= 500) throw new Error(`${place}: ${unpaid.text}`)
  payments += 1
  const paid = await send(sold, call, `p${payments} ${unpaid.offer ?? 1}`)
  const [arrived, ...others] = shop.take()
  const charges = shop.charged()
  const told = `${place}: ${JSON.stringify(sold.entry)} ${paid.text}`
  if (paid.status !== 200) {
    if (paid.status >= 500) throw new Error(told)
    if (arrived !== undefined || charges.length > 0) throw new Error(`refused after the work: ${told}`)
    // Only the connection knows which texts its headers can carry.
    if (!unpaid.isRefused && sold.form !== 'header' && unpaid.status === 402)
      throw new Error(`refused after an offer: ${told}`)
    return `refused: ${place}`
  }
  if (unpaid.isRefused) throw new Error(`answered what it would refuse: ${told}`)
  if (arrived === undefined || others.length > 0 || charges.length !== 1)
    throw new Error(`${others.length + 1} calls, ${charges.length} charges: ${told}`)
  const due = costOf(sold.rule, (name) => arrivedOf(sold, arrived, name))
  if (charges[0] !== due || unpaid.offer !== String(due)) {
    const what = JSON.stringify(
      arrived.kind === 'handler' ? arrived.args : [arrived.url, arrived.bytes.toString()],
    )
    throw new Error(`asked ${unpaid.offer}, charged ${charges[0]}, ${due} by what arrived: ${what} ${told}`)
  }
  return `sold: ${place}`
}

t.test('asks for exactly what the arguments cost that reach an upstream or a handler', (t) =>
  attempt(t, 2, fc.tuple(soldRoutes, calls), async ([routes, made]) => {
    try {
      await shop.serve(compile(catalogOf(routes, shop.upstream)))
    } catch (fault) {
      // A maximum below the price of the examples, for one.
      if (fault instanceof CatalogError) return [`no catalog: ${fault.issues[0]?.code}`]
      throw fault
    }
    const ends: string[] = []
    for (const call of made) {
      const sold = routes[call.route % routes.length]
      if (sold !== undefined) ends.push(await buy(sold, call))
    }
    return ends
  }),
)
