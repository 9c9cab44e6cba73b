import { type Micros, parsePrice, PRICE_DECIMALS, type PriceFault } from '../../base/money.ts'
import { type CheckContext, entriesOf } from '../check-context.ts'
import { error, type Issue, type Position, warning } from '../issue.ts'
import type { DeclaredRoute } from '../schema.ts'
import type { Path, SourceDocument } from '../yaml-document.ts'

/** Stock x402 clients refuse to pay more than this per call by default. */
const CLIENT_CAP = 1_000_000n
/** The largest public facilitator settles no smaller amounts. */
const SMALLEST_SETTLED = 1_000n

/** Checks prices in their source text, since YAML turns a decimal into a float. */
export function* checkPrices({ declared, document }: CheckContext): Generator<Issue> {
  for (const { entry, at } of entriesOf(declared)) yield* checkPrice(document, entry, at)
}

function* checkPrice(
  document: SourceDocument,
  entry: Pick<DeclaredRoute, 'price'>,
  owner: Path,
): Generator<Issue> {
  const at = [...owner, 'price']
  if (entry.price === undefined && !document.has(at)) {
    yield error('price_missing', document.atHome(owner), priceless(owner.at(-1) ?? 'this'))
    return
  }
  const position = document.at(at)
  const spelling = document.spelling(at)
  if (spelling === undefined || spelling === 'free') return
  const price = parsePrice(spelling)
  if (price.kind === 'fault')
    yield error(price.fault, position, faultMessage(price.fault, spelling.trim(), 'price or free'))
  else yield* unusual(price.value, price.value, position)
}

/** Warns about prices that buyers or facilitators may refuse. */
export function* unusual(lowest: Micros, highest: Micros, position: Position): Generator<Issue> {
  if (highest > CLIENT_CAP) {
    const message = 'stock x402 clients refuse payments over 1 USD by default'
    yield warning('price_over_client_cap', position, message)
  } else if (lowest < SMALLEST_SETTLED) {
    const message = 'below 0.001 USD public facilitators refuse to settle'
    yield warning('price_below_facilitators', position, message)
  }
}

/** The message for a missing price, with what to write. */
export function priceless(owner: string | number): string {
  const free = owner === 'defaults' ? '' : ', or "price: free"'
  return `${owner} has no price: write "price: 0.005" (USD)${free}`
}

/** What may stand in a place of the catalog. */
type Takes = 'amount' | 'price or free'

export function faultMessage(fault: PriceFault, spelling: string, takes: Takes): string {
  switch (fault) {
    case 'price_too_precise': {
      const decimals = spelling.split('.')[1]?.length ?? 0
      return `${spelling} has ${decimals} decimals; a price has at most ${PRICE_DECIMALS} (the smallest is 0.000001)`
    }
    case 'price_not_positive':
      return `a price is greater than 0${takes === 'amount' ? '' : '; write "free" for what costs nothing'}`
    case 'price_too_large':
      return `${spelling} USD is more than a call can cost (1,000,000); prices are in USD, not in atomic units`
    case 'price_not_decimal': {
      if (/^free$/i.test(spelling)) return 'write "free" in lower case'
      const meant = plainDecimals(spelling)
      const example = meant === '' ? ', such as 0.005' : `: ${meant}`
      return `${spelling || 'an empty text'} is no plain decimal; write USD with digits and a point${example}${takes === 'amount' ? '' : ' (or "free")'}`
    }
  }
}

/** The prices that a text with a sign, separators or an exponent may mean; empty when that would be a guess. */
function plainDecimals(spelling: string): string {
  const bare = spelling.replace(/^\$|^USDC?\b|\$$|\bUSDC?$/i, '').trim()
  if (!/^[\d.,_e+-]+$/i.test(bare)) return ''
  const thousands = /^[1-9]\d{0,2}(?:,\d{3})+$/.test(bare) ? [bare.replaceAll(',', '')] : []
  return [bare.replaceAll('_', '').replace(',', '.'), ...thousands]
    .map((text) => [Number(text), Number(text).toFixed(PRICE_DECIMALS)] as const)
    .filter(([number, text]) => number > 0 && number === Number(text))
    .map(([, text]) => text.replace(/\.?0+$/, ''))
    .join(' or ')
}
