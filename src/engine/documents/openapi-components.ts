import { ERRORS } from '../errors.ts'
import type { JsonObject } from '../json.ts'
import { paymentHeaders, paymentRequired, paymentSchemas } from './openapi-payment.ts'

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
