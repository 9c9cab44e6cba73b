/** What buyers call: a route of the catalog, and its calls, which a number tells apart. */
export interface ChaosRoute {
  readonly name: string
  /** Whether a call leaves something behind at the upstream: a second payment for it would be a second purchase. */
  readonly hasEffect: boolean
  /** Its entry below `routes` in the catalog. */
  readonly yaml: (upstream: string) => string
  readonly request: (n: number) => ChaosRequest
  /** Price of a call, in atomic units of a currency with six decimals. */
  readonly price: (n: number) => bigint
}

export interface ChaosRequest {
  /** With the query, below `/paid/`. */
  readonly path: string
  readonly post?: { readonly type: string; readonly body: string }
}

const FIXED = '0.01'
const FIXED_PRICE = 10_000n
const N = 'n: { type: integer, required: true, minimum: 1, example: 1 }'

/** Routes that are paid after the work and before it, that store something, and whose upstream answers in pieces. */
export const FIXED_ROUTES: readonly ChaosRoute[] = [
  get('work', FIXED, () => FIXED_PRICE),
  get('upfront', FIXED, () => FIXED_PRICE, ['handler: work', 'settle: upfront']),
  get('write', FIXED, () => FIXED_PRICE),
  get(
    'rated',
    '{ base: 0.001, per: { value_of: n, unit: 10, price: 0.0001 }, max: 1 }',
    (n) => {
      const price = 1_000n + 100n * units(n, 10)
      return price < 1_000_000n ? price : 1_000_000n
    },
    ['handler: work'],
  ),
  post('send', FIXED, () => FIXED_PRICE, {
    yaml: [`body: { properties: { ${N} } }`],
    json: (n) => ({ n }),
  }),
  post(
    'measured',
    '{ base: 0.002, per: { characters_of: text, unit: 100, price: 0.0005 } }',
    (n) => 2_000n + 500n * units(textFor(n).length, 100),
    {
      yaml: [
        `body: { properties: { ${N}, text: { type: string, required: true, maxLength: 1000, example: x } } }`,
      ],
      json: (n) => ({ n, text: textFor(n) }),
    },
  ),
  post(
    'weighed',
    '{ base: 0.001, per: { bytes_of: body, unit: 1000, price: 0.0001 } }',
    (n) => 1_000n + 100n * units(Buffer.byteLength(documentFor(n)), 1_000),
    { yaml: ['body: { media_type: text/plain, max_size: 100 KB }'], text: documentFor },
  ),
  post('stream', FIXED, () => FIXED_PRICE, {
    yaml: [`body: { properties: { ${N} } }`, 'response: { stream: true, media_type: text/event-stream }'],
    json: (n) => ({ n }),
  }),
]

/**
 * 0.001 and 0.0001 for each 10 of `n`, in proportion, rounded up; at most 0.020001. The odd ceiling keeps the sums apart that
 * a channel may be charged: no charge and the next price make another ceiling.
 */
function meteredPrice(n: number): bigint {
  const price = 1_000n + BigInt(n) * 10n
  return price < 20_001n ? price : 20_001n
}

const METERED =
  '{ base: 0.001, metered: [{ value_of: /n, unit: 10, price: 0.0001 }], ceiling: 0.020001, if_missing: 0.020001 }'

/** Routes whose price follows from the answer, some above their ceiling; only a scheme that charges less than was signed buys them. */
export const METERED_ROUTES: readonly ChaosRoute[] = [
  get('counted', METERED, meteredPrice, ['handler: work']),
  post('metered', METERED, meteredPrice, {
    yaml: [`body: { properties: { ${N} } }`],
    json: (n) => ({ n }),
  }),
  post('events', METERED, meteredPrice, {
    yaml: [
      `body: { properties: { ${N} } }`,
      'response: { stream: true, media_type: text/event-stream, receipt_event: true }',
    ],
    json: (n) => ({ n }),
  }),
]

/** Up to 600 characters, more in bytes than in characters. */
function textFor(n: number): string {
  return 'é'.repeat(1 + ((n * 37) % 600))
}

/** Up to 40 KB, which begin with the number. */
function documentFor(n: number): string {
  return `${n} ${'é'.repeat((n * 997) % 20_000)}`
}

/** Counts are rounded up. */
function units(count: number, size: number): bigint {
  return BigInt(Math.ceil(count / size))
}

function get(
  name: string,
  priceYaml: string,
  price: ChaosRoute['price'],
  more: readonly string[] = [],
): ChaosRoute {
  return {
    name,
    hasEffect: false,
    price,
    yaml: () => entry(`/paid/${name}`, priceYaml, [`parameters: { ${N} }`, 'example: { n: 1 }', ...more]),
    request: (n) => ({ path: `${name}?n=${n}` }),
  }
}

type Body =
  | { readonly yaml: readonly string[]; readonly json: (n: number) => object }
  | { readonly yaml: readonly string[]; readonly text: (n: number) => string }

function post(name: string, priceYaml: string, price: ChaosRoute['price'], body: Body): ChaosRoute {
  return {
    name,
    hasEffect: true,
    price,
    yaml: (upstream) =>
      entry(`POST /paid/${name}`, priceYaml, [`upstream: ${upstream}/${name}`, ...body.yaml]),
    request: (n) => ({
      path: name,
      post:
        'json' in body
          ? { type: 'application/json', body: JSON.stringify(body.json(n)) }
          : { type: 'text/plain', body: body.text(n) },
    }),
  }
}

function entry(path: string, price: string, more: readonly string[]): string {
  const lines = [`price: ${price}`, 'timeout: 10s', 'summary: Work while processes are killed', ...more]
  return `  ${path}:\n${lines.map((line) => `    ${line}\n`).join('')}`
}
