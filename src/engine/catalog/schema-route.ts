const scalar = { type: ['string', 'number', 'boolean'] } as const

/** Parameters of a route: the subset of JSON Schema that a query string can carry, and nothing else. */
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
        description: 'object: in bodies and tools only, for a query holds none.',
      },
      description: { type: 'string', minLength: 1 },
      required: {
        type: 'boolean',
        description: 'true: without it the answer is 422. Path parameters are required by nature.',
      },
      default: {
        ...scalar,
        description: 'Used when the parameter is not given; of an object, its JSON as a text.',
      },
      example: {
        ...scalar,
        description: 'A real value; required parameters must have one. Of an object, its JSON as a text.',
      },
      enum: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: scalar,
        description: 'The values allowed.',
      },
      aliases: {
        type: 'object',
        additionalProperties: { type: 'string', minLength: 1 },
        description: 'Other spellings, and the value each stands for.',
      },
      minimum: { type: 'number' },
      maximum: { type: 'number' },
      exclusiveMinimum: { type: 'number' },
      minLength: { type: 'integer', minimum: 0 },
      maxLength: { type: 'integer', minimum: 1, description: '2000 unless said.' },
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
          items: { enum: ['string', 'integer'], description: 'What each item is; string unless said.' },
          minimum: { type: 'number' },
          maximum: { type: 'number' },
        },
      },
    },
  },
} as const

const text = { type: 'string', minLength: 1 } as const
const mediaType = { type: 'string', pattern: '^[a-z]+/[a-z0-9][a-z0-9.+-]*$' } as const
const size = { type: 'string', pattern: '^[1-9][0-9]{0,8} ?(B|KB|MB)$' } as const
const duration = { type: 'string', pattern: '^[1-9][0-9]{0,6}(ms|s|m|h|d)$' } as const

const variable = { type: 'string', pattern: '^[A-Z][A-Z0-9_]*$' } as const
/** RFC 9110 §5.6.2: a token. */
const headerName = { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" } as const

const credential = {
  type: ['string', 'object'],
  pattern: '^[A-Z][A-Z0-9_]*$',
  description:
    'handler: proxy — what the upstream gets to see of you, as names of environment variables: NAME of a bearer token, { bearer: NAME }, { header: { X-Api-Key: NAME } }, { query: { key: NAME } } or { basic: { user: NAME, password: NAME } }.',
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

const price = {
  type: ['number', 'string'],
  description: 'USD per call: a decimal with at most six places, or the word free.',
} as const

const argumentsGiven = {
  type: 'object',
  description: 'Arguments the handler gets besides the parameters: a fixed value, or $name of a parameter.',
  additionalProperties: { type: ['string', 'number', 'boolean'] },
} as const

/** Keys a route and a tool share: one operation, several faces. */
const operation = {
  price,
  handler: {
    ...text,
    description: 'Name of the handler; the path without /paid/ and templates unless said.',
  },
  summary: { ...text, maxLength: 200, description: 'One line: verb, object, source.' },
  use_when: { ...text, description: 'Use when …: one sentence that helps an agent choose.' },
  queries: {
    type: 'array',
    minItems: 1,
    maxItems: 5,
    description: 'What people ask when they need this, in their words: "top games in Germany".',
    items: { ...text, maxLength: 200 },
  },
  description: { ...text, description: 'More than the summary, for people.' },
  category: text,
  timeout: { ...duration, description: 'Longest time the handler may take: 20s unless said.' },
  settle: {
    enum: ['after', 'upfront'],
    description:
      'upfront: the money moves before the work, for what is expensive or cannot be undone; a failed run is made again without a charge. PUT, PATCH and DELETE settle upfront unless said.',
  },
  parameters,
  sources: { type: 'array', items: text, description: 'Names under sources: what this route needs.' },
  example: {
    type: ['string', 'object', 'array'],
    description: 'Example answer: ./a/file.json next to the catalog, or inline when short.',
  },
  response: {
    type: 'object',
    description: 'What an answer looks like.',
    additionalProperties: false,
    properties: {
      media_type: {
        ...mediaType,
        description: 'Media type of the answer when it is not JSON, such as application/pdf.',
      },
      max_size: { ...size, description: 'Largest answer: 1 MB unless said, at most 10 MB.' },
      headers: {
        type: 'array',
        minItems: 1,
        items: { type: 'string', ...headerName },
        description: 'Response headers that are passed on with the answer, such as ETag.',
      },
      schema: {
        type: ['string', 'object'],
        description:
          'JSON Schema (2020-12) of the answer’s own members: ./a/file.json next to the catalog, or inline. The example has to fit it.',
      },
    },
  },
  planned: {
    type: 'boolean',
    description: 'true: announced, not written yet; a payment gets 501 and is not charged.',
  },
} as const

const body = {
  type: 'object',
  description: 'What a request carries: its properties, a schema of the whole body, or a media type.',
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
      type: ['string', 'object', 'array'],
      description: 'Example of a body with a schema: ./a/file.json next to the catalog, or inline.',
    },
    media_type: {
      ...mediaType,
      description:
        'application/json unless said; application/x-www-form-urlencoded takes properties too; text is received as a string, everything else as bytes.',
    },
    max_size: { ...size, description: 'Largest body: 1 MB unless said, at most 10 MB.' },
  },
} as const

export const routes = {
  type: 'object',
  description:
    'Every route by its path, or by METHOD and path: POST /paid/translate. Priced routes stand under /paid/.',
  propertyNames: { pattern: '^(?:(?:GET|POST|PUT|PATCH|DELETE) )?/' },
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    required: ['summary'],
    properties: {
      ...operation,
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
          'The free preview: true for the twin path with the same parameters, or { path, parameters, with }.',
        additionalProperties: false,
        properties: {
          path: { type: 'string', pattern: '^/sample/' },
          summary: { ...text, maxLength: 200 },
          parameters,
          with: argumentsGiven,
        },
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
          'handler: proxy — the address called, with {parameters}, or its path below defaults.upstream; the path without /paid unless said. {list*} in its query repeats the key.',
      },
      upstream_headers: {
        type: 'object',
        description:
          'handler: proxy — headers that the upstream gets: a text with {parameters}. Accept-Language: "{language}".',
        propertyNames: headerName,
        additionalProperties: text,
      },
      credential,
    },
  },
} as const

/** What routes have that do not say it themselves. */
export const defaults = {
  type: 'object',
  description: 'What routes have that do not say it themselves.',
  additionalProperties: false,
  properties: {
    price: { ...price, description: 'Of routes under /paid/: USD per call.' },
    timeout: operation.timeout,
    handler: operation.handler,
    upstream: {
      type: 'string',
      pattern: '^https?://',
      description: 'handler: proxy — the address of the API, below which each "upstream" is a path.',
    },
    credential: {
      ...credential,
      description: 'handler: proxy — as "credential" of a route; sent to defaults.upstream only.',
    },
  },
} as const

export const tools = {
  type: 'object',
  description: 'Operations that only MCP serves, by tool name.',
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
          'payer: the answer depends on who pays. signer: free, for anyone who proves an address by sign-in-with-x.',
      },
      annotations: {
        type: 'object',
        description:
          'What the tool does to the world, as hints for clients, where it differs from: reads only, or stores without replacing anything.',
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
