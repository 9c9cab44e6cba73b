import type { Catalog, Route } from '../catalog/catalog.ts'
import { ERRORS } from '../errors.ts'
import type { JsonObject } from '../json.ts'
import { toAtomic } from '../money.ts'
import { priceOf } from './listing.ts'
import type { Facts } from './registry.ts'

const text: JsonObject = { type: 'string' }

/** As the specification declares it: the words of FastAPI, which clients know. */
const VALIDATION: JsonObject = {
  HTTPValidationError: {
    title: 'HTTPValidationError',
    type: 'object',
    properties: {
      detail: {
        title: 'Detail',
        type: 'array',
        items: { $ref: '#/components/schemas/ValidationError' },
      },
      charged: { title: 'Charged', type: 'string', enum: ['yes', 'no', 'unknown'] },
    },
  },
  ValidationError: {
    title: 'ValidationError',
    type: 'object',
    required: ['loc', 'msg', 'type'],
    properties: {
      loc: { title: 'Location', type: 'array', items: { anyOf: [text, { type: 'integer' }] } },
      msg: { title: 'Message', type: 'string' },
      type: { title: 'Error Type', type: 'string' },
      input: { title: 'Input' },
      ctx: { title: 'Context', type: 'object' },
    },
  },
}

const PROBLEM: JsonObject = {
  description: 'RFC 9457 problem details.',
  type: 'object',
  additionalProperties: true,
  required: ['type', 'title', 'status', 'detail', 'code', 'hint', 'charged', 'retryable'],
  properties: {
    type: { type: 'string', format: 'uri-reference' },
    title: text,
    status: { type: 'integer' },
    detail: text,
    code: {
      type: 'string',
      description: 'Stable: decide by it. New codes may join these.',
      examples: Object.keys(ERRORS),
    },
    hint: { type: 'string', description: 'What to do next.' },
    charged: { enum: ['no', 'yes', 'unknown'], description: 'Whether money moved for this request.' },
    retryable: {
      type: 'boolean',
      description: 'Whether the same request may succeed later without being changed.',
    },
    payment: { type: 'object', additionalProperties: true },
  },
}

/** What every answer of the service’s own has at its top level, beside its own members. */
const ENVELOPE: JsonObject = {
  Envelope: {
    type: 'object',
    additionalProperties: true,
    properties: {
      endpoint: text,
      source: { type: 'array', items: { $ref: '#/components/schemas/Source' } },
      fetched_at: { type: 'string', format: 'date-time', description: 'When the sources were read.' },
      cached: { type: 'boolean' },
      cache_ttl_seconds: { type: 'integer' },
      warnings: { type: 'array', items: { $ref: '#/components/schemas/Warning' } },
      preview: { type: 'boolean', description: 'Only on free previews, like the two that follow.' },
      truncated: { type: 'boolean', description: 'Whether the full answer has more items or fields.' },
      full: { type: 'object', additionalProperties: true, description: 'Where the full answer is sold.' },
    },
  },
  Source: {
    description: 'Where an answer’s data comes from.',
    type: 'object',
    additionalProperties: true,
    required: ['name'],
    properties: { name: text, url: text, licence: text, version: text, published_at: text },
  },
  Warning: {
    description: 'Something to know about an answer that was given all the same.',
    type: 'object',
    additionalProperties: true,
    required: ['code', 'message'],
    properties: { code: text, message: text, source: text },
  },
}

/** What operations refer to. */
export function openapiComponents(protocols: readonly string[]): JsonObject {
  return {
    headers: paymentHeaders(protocols),
    responses: {
      PaymentRequired: paymentRequired(protocols),
      Problem: {
        description: 'Any other failure.',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
    schemas: { ...VALIDATION, Problem: PROBLEM, ...ENVELOPE, ...paymentSchemas(protocols) },
  }
}

interface Header {
  readonly name: string
  readonly description: string
}

/** How each protocol asks for money and acknowledges it. */
const HEADERS: Readonly<Record<string, { readonly challenge: Header; readonly receipt: Header }>> = {
  x402: {
    challenge: { name: 'PAYMENT-REQUIRED', description: 'x402: base64 of the PaymentRequired object.' },
    receipt: { name: 'PAYMENT-RESPONSE', description: 'x402: base64 of the settlement receipt.' },
  },
  mpp: {
    challenge: { name: 'WWW-Authenticate', description: 'MPP: a challenge of the Payment scheme.' },
    receipt: { name: 'Payment-Receipt', description: 'MPP: the settlement receipt.' },
  },
}

/** The price declaration: one object that x402 and MPP registries both read; undefined on what is free. */
export function paymentInfo(catalog: Catalog, facts: Facts, route: Route): JsonObject | undefined {
  const amount = priceOf(route)
  if (amount === undefined) return undefined
  const offers = facts.protocols.includes('mpp') ? offersOf(catalog, route) : []
  return {
    price: { mode: 'fixed', currency: 'USD', amount },
    protocols: facts.protocols.map((name) => ({ [name]: terms(catalog, name) })),
    ...(offers.length === 0 ? {} : { offers }),
  }
}

/** As the payment discovery draft has it: atomic units, where `price` is a decimal. */
function offersOf({ payments: { mpp } }: Catalog, { operation: { price } }: Route): JsonObject[] {
  if (mpp === undefined || price === undefined) return []
  const { method, intent, currency } = mpp
  return [{ intent, method, amount: toAtomic(price, TIP20_DECIMALS).toString(), currency }]
}

/** Of every token on Tempo. */
const TIP20_DECIMALS = 6

function terms({ payments: { mpp } }: Catalog, protocol: string): JsonObject {
  if (protocol !== 'mpp' || mpp === undefined) return {}
  return { method: mpp.method, intent: mpp.intent, currency: mpp.currency }
}

/** Headers of a paid 200. */
export function receiptHeaders(protocols: readonly string[]): JsonObject {
  return refer(protocols, 'receipt')
}

function refer(protocols: readonly string[], moment: 'challenge' | 'receipt'): JsonObject {
  const named = protocols.flatMap((name) => HEADERS[name]?.[moment] ?? [])
  return Object.fromEntries(named.map(({ name }) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** Header components of the protocols that are offered. */
function paymentHeaders(protocols: readonly string[]): JsonObject {
  const headers = protocols.flatMap((name) => {
    const of = HEADERS[name]
    return of === undefined ? [] : [of.challenge, of.receipt]
  })
  return Object.fromEntries(
    headers.map(({ name, description }) => [name, { description, schema: { type: 'string' } }]),
  )
}

/** The 402 that all paid routes share. */
function paymentRequired(protocols: readonly string[]): JsonObject {
  return {
    description: 'Payment required: the offers. Nothing was charged.',
    headers: refer(protocols, 'challenge'),
    content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/PaymentRequired' } } },
  }
}

const anyObject: JsonObject = { type: 'object', additionalProperties: true }

/** Body of the 402: a problem that holds the members of x402’s PaymentRequired when x402 is offered. */
function paymentSchemas(protocols: readonly string[]): JsonObject {
  const x402 = protocols.includes('x402')
  return {
    PaymentRequired: {
      description: 'Problem details with the offers and help for the reader.',
      ...anyObject,
      allOf: [{ $ref: '#/components/schemas/Problem' }],
      ...(x402 ? { required: ['x402Version', 'resource', 'accepts'] } : {}),
      properties: { ...HELP, ...(x402 ? OFFERS : {}), ...(protocols.includes('mpp') ? CHALLENGE : {}) },
    },
    ...(x402 ? { PaymentRequirements: REQUIREMENTS } : {}),
  }
}

const HELP: JsonObject = {
  price: { ...anyObject, properties: { amount: text, currency: text } },
  sample: { type: 'string', description: 'Address of the free preview.' },
  docs: text,
  client: { type: 'string', description: 'Source of a client that pays.' },
  would_fail: {
    description: 'Present when the request would be refused even with a payment: repair it before paying.',
    ...anyObject,
    properties: { status: { type: 'integer' }, code: text, detail: text },
  },
}

const OFFERS: JsonObject = {
  x402Version: { const: 2 },
  error: { type: 'string', description: 'Why a payment is required, or was refused.' },
  resource: { ...anyObject, properties: { url: text } },
  accepts: { type: 'array', items: { $ref: '#/components/schemas/PaymentRequirements' } },
  extensions: anyObject,
}

const CHALLENGE: JsonObject = {
  challengeId: { type: 'string', description: 'MPP: id of the challenge in WWW-Authenticate.' },
}

const REQUIREMENTS: JsonObject = {
  description: 'One offer of x402 version 2: copy it unchanged into "accepted".',
  ...anyObject,
  required: ['scheme', 'network', 'amount', 'asset', 'payTo', 'maxTimeoutSeconds'],
  properties: {
    scheme: text,
    network: { type: 'string', description: 'CAIP-2.' },
    amount: { type: 'string', pattern: '^[1-9][0-9]*$', description: 'Atomic units of the asset.' },
    asset: text,
    payTo: text,
    maxTimeoutSeconds: { type: 'integer' },
    extra: anyObject,
  },
}
