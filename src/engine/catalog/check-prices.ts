import { formatPrice, parsePrice, PRICE_DECIMALS, type PriceFault } from '../money.ts'
import { error, warning, type Issue } from './issue.ts'
import type { Path, SourceDocument } from './parse.ts'
import { routesOf, type Subject } from './subject.ts'

/** Stock x402 clients refuse to pay more than this for one call unless they are told to. */
const CLIENT_CAP = 1_000_000n
/** The largest public facilitator settles nothing smaller. */
const SMALLEST_SETTLED = 1_000n

/** Prices are judged by their source text: what YAML makes of a decimal is a float. */
export function checkPrices({ declared, document }: Subject): Issue[] {
  const routes = routesOf(declared).flatMap(({ path, at }) => checkPrice(document, [...at, 'price'], path))
  const tools = Object.keys(declared.tools ?? {}).flatMap((name) =>
    checkPrice(document, ['tools', name, 'price'], undefined),
  )
  return [...routes, ...tools]
}

function checkPrice(document: SourceDocument, at: Path, path: string | undefined): Issue[] {
  const spelling = document.spelling(at)
  if (spelling === undefined) return []
  const position = document.at(at)
  const paid = path?.startsWith('/paid/') === true
  if (spelling === 'free') {
    return paid
      ? [
          error(
            'price_free_under_paid',
            position,
            `every path under /paid/ is paid; give ${path} a price or another path`,
          ),
        ]
      : []
  }
  const price = parsePrice(spelling)
  if (price.kind === 'fault') return [error(price.fault, position, faultSentence(price.fault, spelling))]
  if (path !== undefined && !paid) {
    return [error('price_outside_paid', position, `a priced route stands under /paid/: "/paid${path}"`)]
  }
  return advise(price.value, position)
}

function advise(price: bigint, position: Issue['position']): Issue[] {
  if (price > CLIENT_CAP) {
    return [
      warning(
        'price_over_client_cap',
        position,
        'stock x402 clients refuse payments over 1 USD unless told otherwise',
      ),
    ]
  }
  if (price < SMALLEST_SETTLED) {
    return [
      warning('price_below_facilitators', position, 'below 0.001 USD public facilitators refuse to settle'),
    ]
  }
  return []
}

function faultSentence(fault: PriceFault, spelling: string): string {
  switch (fault) {
    case 'price_too_precise': {
      const decimals = spelling.split('.')[1]?.length ?? 0
      return `${spelling} has ${decimals} decimals; a price has at most ${PRICE_DECIMALS} (the smallest is 0.000001)`
    }
    case 'price_not_positive':
      return 'a price is greater than 0; write "free" for a route that costs nothing'
    case 'price_too_large':
      return `${spelling} USD is more than a call can cost (1,000,000); prices are in USD, not in atomic units`
    case 'price_not_decimal':
      return `${spelling} is not a plain decimal; write USD with digits and a point${nearest(spelling)}, or "free"`
  }
}

/** The plain spelling of a price that is written with a sign, separators or an exponent. */
function nearest(spelling: string): string {
  const value = Number(spelling.replace(/[^0-9.eE+-]/g, ''))
  if (spelling === '' || !Number.isFinite(value) || value < 1e-6) return ', such as 0.005'
  const plain = parsePrice(value.toFixed(PRICE_DECIMALS))
  return plain.kind === 'price' ? `: ${formatPrice(plain.value).replace(/\.?0+$/, '')}` : ', such as 0.005'
}
