import type { Catalog, Parameter, Route } from '../catalog/catalog.ts'
import { NO_SEPARATORS } from '../catalog/input-schema.ts'
import { formatShort, type Micros } from '../base/money.ts'
import { findNetwork } from '../base/networks.ts'
import type { Facts } from './registry.ts'
import { usualOffers } from './listing.ts'

/** Notice on every document when the money is not real. */
export const SANDBOX = 'Sandbox: payments are play money on a local chain.'

const CHARGING =
  'You pay for a 200 only. Errors say under "charged" whether money moved; if it did, the same payment sent again is answered.'
const UPFRONT =
  'is charged before the work; if that fails, the same payment sent again runs it without another charge.'

/** Label for prices that are charged before the work. */
export const CHARGED_FIRST = 'Charged first'

const STREAMED =
  'streams, and is charged before its first byte; if it breaks off, the same payment sent again gets all of it without another charge.'

/** When these routes charge. */
export function chargingOf(routes: readonly Route[]): string {
  return routes.some(({ kind, operation }) => kind === 'paid' && operation.settle === 'upfront')
    ? `${CHARGING} What is "${CHARGED_FIRST}" ${UPFRONT}`
    : CHARGING
}

/** When a route charges. */
export function charging(route: Route): string {
  if (!isUpfront(route)) return CHARGING
  return `This route ${route.operation.response.stream ? STREAMED : UPFRONT}`
}

export function isUpfront({ kind, operation }: Route): boolean {
  return kind === 'paid' && (operation.settle === 'upfront' || operation.response.stream)
}

/** Instructions for a payment, one step per line. */
export function howToPay(catalog: Catalog, facts: Facts): string[] {
  const lines = ['Send the request without a payment: the 402 lists what to pay and costs nothing.']
  if (facts.protocols.includes('x402')) {
    lines.push(
      `Its header PAYMENT-REQUIRED is base64 of JSON (x402 version 2; the body has the same members): choose one of "accepts"${offeredNetworks(catalog, facts)}.`,
      'Sign it as an EIP-3009 TransferWithAuthorization, exactly as offered. You need no gas.',
      'Send the same request with PAYMENT-SIGNATURE: base64 of {"x402Version": 2, "accepted", "payload": {"signature", "authorization"}}, with "resource" and "extensions" of the 402. The receipt is in PAYMENT-RESPONSE. x402 client libraries do all this.',
    )
  }
  if (facts.protocols.includes('mpp')) {
    lines.push(
      'Or pay by MPP: answer WWW-Authenticate: Payment with Authorization: Payment; the receipt is in Payment-Receipt.',
    )
  }
  lines.push('Answer lost, or 503? Send the same payment again, not a new one: it is charged once at most.')
  return lines
}

/** The networks of the present offers. */
export function offeredNetworks(catalog: Catalog, facts: Facts): string {
  const ids = usualOffers(catalog, facts).flatMap(({ network }) =>
    typeof network === 'string' ? [network] : [],
  )
  const named = [...new Set(ids)].map((id) => `${findNetwork(id)?.title ?? 'chain'} (${id})`)
  return named.length === 0 ? '' : `, for ${named.join(', ')}`
}

/** A sentence from the `use_when` of the catalog, with or without those words. */
export function useWhen(text: string): string {
  return /^use (when|it|this|to|for)\b/i.test(text) ? sentence(text) : `Use when: ${sentence(text)}`
}

/** One line with a final punctuation mark. */
export function sentence(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return /[.!?:]$/.test(line) ? line : `${line}.`
}

/** How old an answer may be. */
export function freshness({ operation }: Route): string {
  const { cache } = operation
  return cache === undefined
    ? 'Not cached: every call runs the handler.'
    : `Cached for ${spellDuration(cache.ttl)}.`
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
  ['millisecond', 1],
] as const

/** A duration in words, in the largest exact unit: `10 minutes`. */
export function spellDuration(ms: number): string {
  const [name, size] = UNITS.find(([, unit]) => ms >= unit && ms % unit === 0) ?? ['millisecond', 1]
  const count = ms / size
  return count === 1 ? `1 ${name}` : `${count} ${name}s`
}

/** Rules of lists and aliases that JSON Schema cannot express. A list is one text, or in JSON an array. */
export function unspokenRules({ list, aliases }: Parameter, form: 'text' | 'json'): string[] {
  const rules: string[] = []
  if (list !== undefined) {
    const { minItems, maxItems } = list
    const count = minItems === maxItems || minItems === 0 ? `up to ${maxItems}` : `${minItems} to ${maxItems}`
    const counted = `${count} ${list.items === 'integer' ? 'whole numbers' : 'values'}`
    const isOpen = form === 'json' && list.items === 'string'
    rules.push(
      `${form === 'text' ? 'Comma-separated' : 'Array'}, ${counted}${isOpen ? ` ${NO_SEPARATORS}` : ''}.`,
    )
  }
  const spellings = Object.entries(aliases).map(([alias, value]) => `${alias} for ${value}`)
  if (spellings.length > 0) rules.push(`Also understood: ${spellings.join(', ')}.`)
  return rules
}

/** An eight-line program that pays for `url`, at most `cap`. */
export function payingClient(cap: Micros): string {
  return [
    "import { wrapFetchWithPayment, x402Client } from '@x402/fetch'",
    "import { ExactEvmScheme } from '@x402/evm/exact/client'",
    "import { privateKeyToAccount } from 'viem/accounts'",
    'const account = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY)',
    "const client = new x402Client().register('eip155:*', new ExactEvmScheme(account))",
    `client.setSpendControls({ maxAmountPerPayment: '$${formatShort(cap)}' })`,
    'const pay = wrapFetchWithPayment(fetch, client)',
    'console.log(await (await pay(url)).json())',
  ].join('\n')
}
