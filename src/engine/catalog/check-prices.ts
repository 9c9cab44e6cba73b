import { formatPrice, parsePrice, PRICE_DECIMALS, type PriceFault } from '../money.ts'
import { error, warning, type Issue } from './issue.ts'
import type { Path, SourceDocument } from './source.ts'
import { routesOf, type Subject } from './subject.ts'

/** Stock x402 clients refuse to pay more than this for one call unless they are told to. */
const CLIENT_CAP = 1_000_000n
/** The largest public facilitator settles nothing smaller. */
const SMALLEST_SETTLED = 1_000n

/** More than this is no price of one call: a reading of it is not offered. */
const PLAUSIBLE = 100_000_000_000n

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
  if (spelling === 'free' || (paid && /^free$/i.test(spelling))) {
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
  if (price.kind === 'fault') {
    return [error(price.fault, position, faultSentence(price.fault, spelling.trim(), paid))]
  }
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

function faultSentence(fault: PriceFault, spelling: string, paid: boolean): string {
  switch (fault) {
    case 'price_too_precise': {
      const decimals = spelling.split('.')[1]?.length ?? 0
      return `${spelling} has ${decimals} decimals; a price has at most ${PRICE_DECIMALS} (the smallest is 0.000001)`
    }
    case 'price_not_positive':
      return `a price is greater than 0; ${paid ? 'what costs nothing stands outside /paid/, with "price: free"' : 'write "free" for what costs nothing'}`
    case 'price_too_large':
      return `${spelling} USD is more than a call can cost (1,000,000); prices are in USD, not in atomic units`
    case 'price_not_decimal': {
      if (/^free$/i.test(spelling)) return 'write "free" in lower case'
      const meant = readingsOf(spelling).join(' or ')
      const shown = spelling === '' ? 'an empty text' : spelling
      const plain = meant === '' ? ', such as 0.005' : `: ${meant}`
      return `${shown} is no plain decimal; write USD with digits and a point${plain}${paid ? '' : ' (or "free")'}`
    }
  }
}

/** The prices that a text with a sign, separators or an exponent may stand for; none when it would be a guess. */
function readingsOf(spelling: string): string[] {
  const bare = spelling
    .replace(/^\$|^USDC?\b|\$$|\bUSDC?$/i, '')
    .trim()
    .replaceAll('_', '')
  const thousands = /^[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$/.test(bare) ? [bare.replaceAll(',', '')] : []
  const comma = /^\d*,\d+$/.test(bare) ? [bare.replace(',', '.')] : []
  const plain = /^[+]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?$/i.test(bare) ? [bare] : []
  return [...comma, ...thousands, ...plain].flatMap((text) => {
    const price = parsePrice(withoutExponent(text))
    return price.kind === 'price' && price.value <= PLAUSIBLE
      ? [formatPrice(price.value).replace(/\.?0+$/, '')]
      : []
  })
}

/** `5e-3` → `0.005`, `.5` → `0.5`: the point is moved in the text, for a float might move the value. */
function withoutExponent(text: string): string {
  const match = /^\+?(\d*)\.?(\d*)(?:e([+-]?\d{1,2}))?$/i.exec(text)
  const [, whole = '', fraction = '', exponent = '0'] = match ?? []
  const point = whole.length + Number(exponent)
  const digits = ('0'.repeat(Math.max(0, -point)) + whole + fraction).padEnd(Math.max(0, point), '0')
  const before = digits.slice(0, Math.max(0, point)).replace(/^0+(?=\d)/, '')
  return `${before === '' ? '0' : before}.${digits.slice(Math.max(0, point)).padEnd(1, '0')}`
}
