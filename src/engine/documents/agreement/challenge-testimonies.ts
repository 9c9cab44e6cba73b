import type { ErrorCode } from '../../errors.ts'
import { findNetwork } from '../../networks.ts'
import type { Json, JsonObject } from '../../json.ts'
import { listAt, NONE, pathOf, priceOfAmount, readObject, spellAvailable, textAt } from './spelling.ts'
import { claimOf, type Claim, type Field, type Testimony } from './testimony.ts'

/** A 402 as it was received. */
export interface Demand {
  /** Of the route, as the catalog writes it. */
  readonly path: string
  readonly header: (name: string) => string | undefined
  readonly body: string
}

/** What the 402s say: their bodies for readers, and the offers of each protocol and network. */
export function challengeTestimonies(demands: readonly Demand[]): Testimony[] {
  const said = new Map<string, Map<string, Claim>>()
  for (const demand of demands) {
    for (const [document, claim] of claimsOf(demand)) {
      const claims = said.get(document) ?? new Map<string, Claim>()
      said.set(document, claims.set(demand.path, claim))
    }
  }
  return Array.from(said, ([document, claims]) => ({ document, covers: 'sold', claims }))
}

function* claimsOf({ header, body }: Demand): Iterable<[string, Claim]> {
  const required = decode(header('payment-required'))
  const request = decode(/\brequest="([\w-]+)"/.exec(header('www-authenticate') ?? '')?.[1])
  const read = readObject(body)
  const sample = textAt(read, 'sample')
  yield [
    '402',
    claimOf(
      ['price', textAt(read, 'price', 'amount')],
      ['sample', sample === undefined ? NONE : pathOf(sample)],
      ['available', spellAvailable(!UNREADY.has(textAt(read, 'would_fail', 'code') ?? ''))],
      ['protocols', [...(required ? ['x402'] : []), ...(request ? ['mpp'] : [])].join(', ')],
    ),
  ]
  for (const offer of listAt(required, 'accepts')) {
    const offered = x402Claim(offer)
    if (offered !== undefined) yield [`402 by x402 on ${textAt(offer, 'network')}`, offered]
  }
  const amount = textAt(request, 'amount')
  if (amount !== undefined)
    yield [
      '402 by mpp',
      claimOf(
        ['price', priceOfAmount(amount, TIP20_DECIMALS)],
        ['mpp', `${amount} of ${textAt(request, 'currency')}`],
      ),
    ]
}

/** Why a request would be refused whatever its parameters are. */
const UNREADY: ReadonlySet<string> = new Set<ErrorCode>(['not_configured', 'not_implemented'])

/** Of every token on Tempo. */
const TIP20_DECIMALS = 6

/** One offer, on a network that is known by its CAIP-2 name. */
function x402Claim(offer: Json): Claim | undefined {
  const network = textAt(offer, 'network')
  if (network === undefined || !isEip155(network)) return undefined
  const decimals = findNetwork(network)?.token.decimals
  const price = decimals === undefined ? undefined : priceOfAmount(textAt(offer, 'amount'), decimals)
  return claimOf(['price', price], ...offerFields([offer]))
}

/** The offers of x402 as fields, one for each network. */
export function offerFields(accepts: readonly Json[]): [Field, string][] {
  return accepts.flatMap((offer): [Field, string][] => {
    const network = textAt(offer, 'network')
    const [amount, asset, payTo] = ['amount', 'asset', 'payTo'].map((name) => textAt(offer, name))
    return network === undefined || !isEip155(network) ? [] : [[network, `${amount} of ${asset} to ${payTo}`]]
  })
}

function isEip155(network: string): network is `eip155:${string}` {
  return network.startsWith('eip155:')
}

/** base64 or base64url of a JSON object. */
function decode(text: string | undefined): JsonObject | undefined {
  return text === undefined ? undefined : readObject(Buffer.from(text, 'base64').toString('utf8'))
}
