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
        description: 'object: in tools only, for a query holds none.',
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
