const duration = { type: 'string', pattern: '^[1-9][0-9]{0,6}(ms|s|m|h|d)$' } as const
const address = { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' } as const

/** How buyers pay: prices are in USD whatever the token. */
export const payments = {
  type: 'object',
  description: 'How buyers pay.',
  additionalProperties: false,
  required: ['currency'],
  properties: {
    currency: { const: 'USD' },
    pay_to: {
      ...address,
      description: 'Address that receives the money, quoted; the variable PAY_TO overrides it.',
    },
    reprice_grace: {
      ...duration,
      description: 'How long an amount that was offered before a change is still honoured: 5m.',
    },
    redeliver: {
      ...duration,
      description: 'How long the same payment is answered again without a charge: 24h.',
    },
    x402: {
      type: 'object',
      additionalProperties: false,
      required: ['networks'],
      properties: {
        networks: {
          type: 'array',
          minItems: 1,
          uniqueItems: true,
          items: { type: 'string', minLength: 1, pattern: '^[A-Za-z]' },
          description: 'CAIP-2 ids or nicknames (base, polygon, arbitrum, avalanche…), most preferred first.',
        },
        timeout: { ...duration, description: 'How long a signed payment is valid: 60s.' },
        limits: {
          type: 'object',
          description: 'Limits of settling, by network of the list; what is left out keeps its default.',
          additionalProperties: {
            type: 'object',
            additionalProperties: false,
            properties: {
              confirmations: {
                type: 'integer',
                minimum: 1,
                maximum: 12,
                description:
                  'Blocks a payment must lie under before it counts, its own included; buyers wait for them: 2.',
              },
              max_fee_gwei: {
                type: 'number',
                maximum: 1_000_000,
                description: 'Highest price of a unit of gas, tip included; above it nothing is settled: 5.',
              },
              max_gas_loss: {
                type: 'number',
                maximum: 1_000_000,
                description:
                  'Most that reverted transactions may cost in an hour, in the coin of the network; above it nothing is sold there: 0.005.',
              },
            },
          },
        },
      },
    },
    mpp: {
      type: 'object',
      additionalProperties: false,
      required: ['method', 'intent', 'chain', 'currency'],
      properties: {
        method: { enum: ['tempo'] },
        intent: { enum: ['charge'] },
        chain: { type: 'integer', minimum: 1 },
        currency: { ...address, description: 'TIP-20 token contract, quoted.' },
      },
    },
  },
} as const
