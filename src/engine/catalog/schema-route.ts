import { SUCCESS_STATUSES } from '../base/success-status.ts'
import { COUNTERS } from './price/meter.ts'
import { measureSchemas } from './price/measures.ts'

const text = { type: 'string', minLength: 1 } as const
const scalar = { type: ['string', 'number', 'boolean'] } as const

/** Parameters of a route: the subset of JSON Schema that a query string can carry. */
export const parameters = {
  type: 'object',
  description: 'Query and path parameters by name.',
  propertyNames: { pattern: '^[a-z][a-z0-9_]*$' },
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    required: ['type'],
    properties: {
      type: {
        enum: ['string', 'integer', 'number', 'boolean', 'object'],
        description: 'object: in bodies and tools only, not in queries.',
      },
      description: { type: 'string', minLength: 1 },
      required: {
        type: 'boolean',
        description: 'true: a request without it gets 422. Path parameters are always required.',
      },
      default: {
        ...scalar,
        description: 'Value if the parameter is omitted; for an object, its JSON as a text.',
      },
      example: {
        ...scalar,
        description: 'A real value; required for required parameters. For an object, its JSON as a text.',
      },
      enum: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: scalar,
        description: 'The allowed values.',
      },
      aliases: {
        type: 'object',
        additionalProperties: { type: 'string', minLength: 1 },
        description: 'Alternative spellings, each with its value.',
      },
      minimum: { type: 'number' },
      maximum: { type: 'number' },
      exclusiveMinimum: { type: 'number' },
      minLength: { type: 'integer', minimum: 0 },
      maxLength: { type: 'integer', minimum: 1, description: 'Default: 2000.' },
      pattern: {
        type: 'string',
        minLength: 1,
        description: 'Regular expression the whole value must match; anchor it with ^ and $.',
      },
      format: {
        enum: ['date', 'country'],
        description: 'date: YYYY-MM-DD. country: ISO 3166-1 alpha-2, upper-cased.',
      },
      list: {
        type: 'object',
        description: 'The string is a comma-separated list; the handler receives an array.',
        additionalProperties: false,
        required: ['max_items'],
        properties: {
          max_items: { type: 'integer', minimum: 1, maximum: 1000 },
          min_items: { type: 'integer', minimum: 0 },
          items: { enum: ['string', 'integer'], description: 'Type of the items. Default: string.' },
          minimum: { type: 'number' },
          maximum: { type: 'number' },
        },
      },
      idempotency_key: {
        type: 'boolean',
        description:
          'true: buyers name a purchase by it. A new payment of the same buyer with the same key and arguments is not charged, for payments.redeliver, and gets the same answer; with other arguments it is refused.',
      },
    },
  },
} as const

const mediaType = { type: 'string', pattern: '^[a-z]+/[a-z0-9][a-z0-9.+-]*$' } as const
const size = { type: 'string', pattern: '^[1-9][0-9]{0,8} ?(B|KB|MB)$' } as const
const duration = { type: 'string', pattern: '^[1-9][0-9]{0,6}(ms|s|m|h|d)$' } as const

const variable = { type: 'string', pattern: '^[A-Z][A-Z0-9_]*$' } as const
/** RFC 9110 §5.6.2: a token. */
export const headerName = { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" } as const

const credential = {
  type: ['string', 'object'],
  pattern: '^[A-Z][A-Z0-9_]*$',
  description:
    'handler: proxy — credential sent to the upstream, by the name of its environment variable: NAME of a bearer token, { bearer: NAME }, { header: { X-Api-Key: NAME } }, { query: { key: NAME } } or { basic: { user: NAME, password: NAME } }.',
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  properties: {
    bearer: variable,
    header: { type: 'object', minProperties: 1, propertyNames: headerName, additionalProperties: variable },
    query: { type: 'object', minProperties: 1, additionalProperties: variable },
    basic: {
      type: 'object',
      additionalProperties: false,
      required: ['user'],
      properties: { user: variable, password: variable },
    },
  },
} as const

const decimal = { type: ['number', 'string'] } as const

const rate = {
  additionalProperties: false,
  required: ['price'],
  properties: {
    ...measureSchemas,
    unit: { ...decimal, description: 'Size of one unit; counts are rounded up. Default: 1.' },
    price: { ...decimal, description: 'USD for each unit; at most twelve decimals.' },
    included: { ...decimal, description: 'Free quantity. Default: 0.' },
  },
} as const

/** A price that is computed from the arguments. */
const rule = {
  base: { ...decimal, description: 'USD for every call; at most twelve decimals.' },
  by: {
    type: 'object',
    minProperties: 1,
    description:
      'USD that values of a parameter or body member with an enum add: { quality: { high: 0.01 } }.',
    additionalProperties: { type: 'object', minProperties: 1, additionalProperties: decimal },
  },
  per: {
    ...rate,
    type: ['object', 'array'],
    minItems: 1,
    description:
      'USD that counted units add, one entry or a list: { characters_of: text, unit: 1000, price: 0.0005 }.',
    items: { ...rate, type: 'object' },
  },
  min: { ...decimal, description: 'Lowest price of a call.' },
  max: { ...decimal, description: 'Highest price of a call; required if a counted quantity has no limit.' },
} as const

const counted = {
  type: 'object',
  additionalProperties: false,
  required: ['price'],
  properties: {
    value_of: { type: 'string', description: COUNTERS.value_of.description },
    usage_of: { ...text, description: COUNTERS.usage_of.description },
    bytes_of: { enum: ['answer'], description: COUNTERS.bytes_of.description },
    seconds_of: { enum: ['work'], description: COUNTERS.seconds_of.description },
    unit: {
      ...decimal,
      description: 'Size of one unit; part of a unit costs part of its price. Default: 1.',
    },
    price: { ...decimal, description: 'USD for each unit; at most twelve decimals.' },
  },
} as const

const price = {
  type: ['number', 'string', 'object'],
  description: 'USD per call: a decimal with at most six places, the word free, or a rule.',
  additionalProperties: false,
  properties: {
    ...rule,
    metered: {
      type: 'array',
      minItems: 1,
      description:
        'USD that is known after the work, with "ceiling": { value_of: /usage/total_tokens, unit: 1000, price: 0.0005 }.',
      items: counted,
    },
    ceiling: {
      type: ['number', 'string', 'object'],
      description:
        'With "metered": the most a call costs, which buyers authorize: USD, or a rule over the arguments.',
      additionalProperties: false,
      properties: rule,
    },
    if_missing: {
      ...decimal,
      description:
        'With "metered": USD for an answer that lacks a count. Without it such an answer is withheld and costs nothing.',
    },
  },
} as const

const argumentsGiven = {
  type: 'object',
  description: 'Additional arguments of the handler: a fixed value, or $name of a parameter.',
  additionalProperties: { type: ['string', 'number', 'boolean'] },
} as const

/** Keys that routes and tools share. */
const operation = {
  price,
  handler: {
    ...text,
    description: 'Name of the handler. Default: the path without /paid/ and path parameters.',
  },
  title: {
    ...text,
    maxLength: 40,
    description:
      'Two or three words: Top sellers. Default: the name of the tool, or the path without /paid/.',
  },
  summary: { ...text, maxLength: 200, description: 'One line: verb, object, source.' },
  use_when: {
    ...text,
    description:
      'Use when …: one sentence that helps an agent choose. {route: /paid/app} names another route: by its path, or by its tool where tools are described.',
  },
  queries: {
    type: 'array',
    minItems: 1,
    maxItems: 5,
    description: 'Questions of users that this route answers: "top games in Germany".',
    items: { ...text, maxLength: 200 },
  },
  description: {
    ...text,
    description: 'Longer description for people. {route: /paid/app} names another route, as in use_when.',
  },
  deprecated: {
    type: 'boolean',
    description: 'true: every document says that it may be removed. It still answers, at its price.',
  },
  category: text,
  timeout: { ...duration, description: 'Time limit of the handler. Default: 20s.' },
  settle: {
    enum: ['after', 'upfront'],
    description:
      'upfront: the payment settles before the work, for work that is expensive or cannot be undone; a failed run is retried without a charge. Default: after; upfront for PUT, PATCH and DELETE.',
  },
  parameters,
  sources: { type: 'array', items: text, description: 'Names under sources that this route needs.' },
  example: {
    type: ['string', 'object', 'array', 'number', 'boolean'],
    description: 'Example answer: ./a/file.json next to the catalog, or inline when short.',
  },
  response: {
    type: 'object',
    description: 'Form of the answer.',
    additionalProperties: false,
    properties: {
      media_type: {
        ...mediaType,
        description: 'Media type of the answer when it is not JSON, such as application/pdf.',
      },
      max_size: { ...size, description: 'Largest answer. Default: 1 MB; at most 10 MB.' },
      statuses: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: { type: 'integer', enum: SUCCESS_STATUSES },
        description:
          'Statuses of a successful answer, such as [201] or [200, 204]. Documents show them; default: [200]. Whatever it says, the buyer gets the status of the upstream or the handler.',
      },
      receipt_event: {
        type: 'boolean',
        description:
          'true: a stream of text/event-stream ends with an event "receipt", which states what was charged and has the signed receipts.',
      },
      stream: {
        type: 'boolean',
        description:
          'true: the answer is sent while it is produced, after the payment has settled; with a metered price that names if_missing, before it. Needs a media_type, such as text/event-stream; timeout then limits the wait for the first and for each further piece.',
      },
      headers: {
        type: 'array',
        minItems: 1,
        items: { type: 'string', ...headerName },
        description: 'Response headers that are passed on with the answer, such as ETag.',
      },
      schema: {
        type: ['string', 'object'],
        description:
          'JSON Schema (2020-12) of the answer’s own members: ./a/file.json next to the catalog, or inline. The example must match it.',
      },
    },
  },
  access: {
    type: 'object',
    description: 'Who calls it without paying for the call.',
    additionalProperties: false,
    minProperties: 1,
    properties: {
      api_keys: {
        type: 'boolean',
        description: 'false: customers with an API key pay for it too. Default: true.',
      },
      upstream: {
        type: 'boolean',
        description: 'handler: proxy — as "upstream" of the catalog’s own access, which is the default.',
      },
    },
  },
  planned: {
    type: 'boolean',
    description: 'true: announced but not implemented; a payment gets 501 and is not charged.',
  },
} as const

const body = {
  type: 'object',
  description: 'Request body: its properties, a schema of the whole body, or a media type.',
  additionalProperties: false,
  properties: {
    properties: {
      ...parameters,
      description:
        'Members of the JSON object or form, by name; handlers receive them next to the parameters.',
      propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
    },
    schema: {
      type: ['string', 'object'],
      description:
        'JSON Schema (2020-12) of the whole body: ./a/file.json next to the catalog, or inline. Handlers receive it as "body".',
    },
    example: {
      type: ['string', 'object', 'array', 'number', 'boolean'],
      description:
        'Example of the body: ./a/file.json next to the catalog, or inline; of a text, the text itself.',
    },
    media_type: {
      ...mediaType,
      description:
        'Default: application/json. application/x-www-form-urlencoded also has properties; handlers receive text as a string, everything else as bytes.',
    },
    max_size: { ...size, description: 'Largest body. Default: 1 MB; at most 10 MB.' },
  },
} as const

export const routes = {
  type: 'object',
  description:
    'Every route by its path, or by METHOD and path: POST /v1/translate. Its price decides whether it is paid.',
  propertyNames: { pattern: '^(?:(?:GET|POST|PUT|PATCH|DELETE) )?/' },
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    required: ['summary'],
    properties: {
      ...operation,
      name: {
        type: 'string',
        pattern: '^[A-Za-z][A-Za-z0-9_.-]*$',
        description:
          'Its operationId in OpenAPI, by which generated clients name it. Default: made of the path.',
      },
      body,
      with: argumentsGiven,
      cache: {
        type: ['string', 'object'],
        pattern: '^[1-9][0-9]{0,6}(ms|s|m|h|d)$',
        description: 'How long an answer is reused: 5m, or { ttl: 5m, stale_if_error: 1h }.',
        additionalProperties: false,
        required: ['ttl'],
        properties: { ttl: duration, stale_if_error: duration },
      },
      sample: {
        type: ['boolean', 'object'],
        description:
          'Free preview: true for the same path under /sample with the same parameters, or { path, parameters, with }.',
        additionalProperties: false,
        properties: {
          path: { type: 'string', pattern: '^/' },
          summary: { ...text, maxLength: 200 },
          parameters,
          with: argumentsGiven,
        },
      },
      requires: {
        enum: ['signer'],
        description:
          'signer: free for anyone who proves an address by sign-in-with-x; the handler gets the address.',
      },
      tool: {
        type: 'string',
        pattern: '^[a-z][a-z0-9_-]*\\.[a-z][a-z0-9_]*$',
        description: 'server.tool_name of its MCP tool.',
      },
      skill: { type: 'string', pattern: '^[a-z][a-z0-9-]*$', description: 'Skill id in the agent card.' },
      upstream: {
        type: 'string',
        pattern: '^(?:https?://|/)',
        description:
          'handler: proxy — the URL to call, with {parameters}, or a path below defaults.upstream. Default: the path without /paid. {list*} in its query repeats the key.',
      },
      upstream_headers: {
        type: 'object',
        description:
          'handler: proxy — request headers for the upstream: texts with {parameters}. Accept-Language: "{language}".',
        propertyNames: headerName,
        additionalProperties: text,
      },
      credential,
    },
  },
} as const

/** Values for routes that do not set them. */
export const defaults = {
  type: 'object',
  description: 'Values for routes that do not set them.',
  additionalProperties: false,
  properties: {
    price: { ...price, description: 'Price of routes: USD per call, or a rule.' },
    timeout: operation.timeout,
    handler: operation.handler,
    upstream: {
      type: 'string',
      pattern: '^https?://',
      description: 'handler: proxy — the URL of the API; "upstream" of a route is a path below it.',
    },
    credential: {
      ...credential,
      description: 'handler: proxy — as "credential" of a route; sent to defaults.upstream only.',
    },
  },
} as const

export const tools = {
  type: 'object',
  description: 'Operations that are available by MCP only, by tool name.',
  propertyNames: { pattern: '^[a-z][a-z0-9_]*$' },
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    required: ['server', 'summary'],
    properties: {
      ...operation,
      server: { ...text, description: 'Name under mcp_servers.' },
      skill: { type: 'string', pattern: '^[a-z][a-z0-9-]*$' },
      requires: {
        enum: ['payer', 'signer'],
        description:
          'payer: the answer depends on the payer. signer: free for anyone who proves an address by sign-in-with-x.',
      },
      annotations: {
        type: 'object',
        description:
          'Effects of the tool, as hints for clients. Default: reads only, or stores without replacing anything.',
        additionalProperties: false,
        properties: {
          read_only: { type: 'boolean' },
          destructive: { type: 'boolean' },
          idempotent: { type: 'boolean' },
          open_world: { type: 'boolean' },
        },
      },
    },
  },
} as const
