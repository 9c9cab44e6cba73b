import { routeKey, type Catalog } from '../../engine/catalog/catalog.ts'
import { spellPrice } from '../../engine/catalog/price/text.ts'
import type { ErrorCode } from '../../engine/base/errors.ts'
import type { Json, JsonObject } from '../../engine/base/json.ts'
import { findNetwork } from '../../engine/base/networks.ts'
import { at, listAt, membersAt, readObject, textAt } from '../json-access.ts'
import { bodySchema, openapiOperations, spellValue } from '../openapi-document.ts'
import { offersOf, type PaymentRequired } from './payment-required.ts'
import { ALL, statementOf, type RouteStatement, type DocumentStatements, SOLD } from './route-statements.ts'

const NONE = 'none'

/** The statements of a catalog file, without knowing the credentials of its server. */
export function catalogStatements({ routes }: Catalog): DocumentStatements {
  const statements = routes
    .filter(({ operation }) => !operation.planned)
    .map((route): [string, RouteStatement] => {
      const { kind, operation, parameters, sample } = route
      const { price, meter, body } = operation
      return [
        routeKey(route),
        statementOf(
          ['price', kind !== 'paid' || price === undefined ? 'free' : spellPrice(price, meter)],
          [
            'parameters',
            joinParameters([
              ...parameters.map(({ name, required, default: value }) => [name, required, value] as const),
              ...(body?.form === 'whole' ? membersOf(body.schema) : []),
            ]),
          ],
          ['sample', sample ?? NONE],
        ),
      ]
    })
  return { document: 'catalog', covers: ALL, statements: new Map(statements) }
}

/** What the OpenAPI document states about every route, without the generated documents among its paths. */
export function openapiStatements(document: string, openapi: JsonObject): DocumentStatements {
  const statements = openapiOperations(openapi)
    .filter(([, operation]) => at(operation, 'x-document') === undefined)
    .map(([key, operation]): [string, RouteStatement] => [key, openapiStatement(operation)])
  return { document, covers: ALL, statements: new Map(statements) }
}

function openapiStatement(operation: Json): RouteStatement {
  const parameters = listAt(operation, 'parameters').map(
    (parameter) =>
      [
        textAt(parameter, 'name') ?? '',
        at(parameter, 'required') === true,
        at(parameter, 'schema', 'default'),
      ] as const,
  )
  const info = at(operation, 'x-payment-info')
  const protocols = listAt(info, 'protocols').flatMap((each) => membersAt(each).map(([name]) => name))
  const [offer] = listAt(info, 'offers')
  const [amount, currency] = [textAt(offer, 'amount'), textAt(offer, 'currency')]
  return statementOf(
    ['price', info === undefined ? 'free' : priceAt(info)],
    ['parameters', joinParameters([...parameters, ...membersOf(bodySchema(operation))])],
    ['sample', textAt(operation, 'x-free-preview') ?? NONE],
    ['available', at(operation, 'x-available') === false ? 'no' : 'yes'],
    ['protocols', info === undefined ? undefined : protocols.join(', ')],
    ['mpp', amount === undefined ? undefined : `${amount} of ${currency}`],
  )
}

function membersOf(schema: Json | undefined): (readonly [string, boolean, Json | undefined])[] {
  const required = listAt(schema, 'required')
  return membersAt(schema, 'properties').map(([name, rules]) => [
    name,
    required.includes(name),
    at(rules, 'default'),
  ])
}

/** The member `price`: an amount, or the range of a rule. */
export function priceAt(value: Json | undefined): string | undefined {
  const [min, max] = ['min', 'max'].map((end) => textAt(value, 'price', end))
  return textAt(value, 'price', 'amount') ?? (min === undefined ? undefined : `${min} to ${max}`)
}

/** `limit*` must be given, `country=US` has a default, the rest may be left out. */
function joinParameters(parameters: readonly (readonly [string, boolean, Json | undefined])[]): string {
  const joined = parameters.map(([name, required, value]) => {
    if (required) return `${name}*`
    return value === undefined || value === '' ? name : `${name}=${spellValue(value)}`
  })
  return joined.join(', ') || NONE
}

/** What the 402s say: their bodies for readers, and the offers of each protocol and network. */
export function challengeStatements(challenges: readonly PaymentRequired[]): DocumentStatements[] {
  const said = new Map<string, Map<string, RouteStatement>>()
  for (const challenge of challenges)
    for (const [document, statement] of statementsOf(challenge))
      said.set(
        document,
        (said.get(document) ?? new Map<string, RouteStatement>()).set(challenge.key, statement),
      )
  return Array.from(said, ([document, statements]) => ({ document, covers: SOLD, statements }))
}

/** Reasons to refuse every request, whatever its parameters. */
const UNREADY: ReadonlySet<string> = new Set<ErrorCode>(['not_configured', 'not_implemented'])

/** Decimals of every token on Tempo. */
const TIP20_DECIMALS = 6

function* statementsOf(challenge: PaymentRequired): Iterable<[string, RouteStatement]> {
  const { x402, mpp } = offersOf(challenge)
  const read = readObject(challenge.body)
  const sample = textAt(read, 'sample')
  const isComputed = textAt(read, 'price', 'rule') !== undefined
  const price = isComputed ? 'due' : 'price'
  yield [
    '402',
    statementOf(
      [price, textAt(read, 'price', 'amount')],
      ['sample', sample === undefined ? NONE : pathOf(sample)],
      ['available', UNREADY.has(textAt(read, 'would_fail', 'code') ?? '') ? 'no' : 'yes'],
      [
        'protocols',
        [...(x402 === undefined ? [] : ['x402']), ...(mpp === undefined ? [] : ['mpp'])].join(', '),
      ],
    ),
  ]
  for (const offer of x402 ?? []) {
    const [field] = offerFields([offer], isComputed)
    if (field === undefined) continue
    const decimals = findNetwork(field[0])?.token.decimals
    const amount = decimals === undefined ? undefined : priceOf(textAt(offer, 'amount'), decimals)
    yield [`402 by x402 on ${field[0]}`, statementOf([price, amount], field)]
  }
  const amount = textAt(mpp, 'amount')
  if (amount !== undefined)
    yield [
      '402 by mpp',
      statementOf(
        [price, priceOf(amount, TIP20_DECIMALS)],
        ['mpp', isComputed ? undefined : `${amount} of ${textAt(mpp, 'currency')}`],
      ),
    ]
}

/** The offers of x402 as fields, one for each network; the amount of a computed price is another in each. */
export function offerFields(accepts: readonly Json[], isComputed: boolean): [string, string][] {
  return accepts.flatMap((offer): [string, string][] => {
    const network = textAt(offer, 'network')
    const [amount, asset, payTo] = ['amount', 'asset', 'payTo'].map((name) => textAt(offer, name))
    return network === undefined
      ? []
      : [[network, `${isComputed ? '' : `${amount} of `}${asset} to ${payTo}`]]
  })
}

/** Atomic units of a token as a price with at least six decimals; undefined if it is not an amount. */
function priceOf(amount: string | undefined, decimals: number): string | undefined {
  if (amount === undefined || !/^\d+$/.test(amount)) return undefined
  const digits = amount.padStart(decimals + 1, '0')
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return `${digits.slice(0, digits.length - decimals)}.${fraction.padEnd(6, '0')}`
}

/** An address of this service as its path, templates in braces. */
export function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/]+/, '').replace(/[?#].*$/, '')
  return path.replaceAll('%7B', '{').replaceAll('%7D', '}')
}
