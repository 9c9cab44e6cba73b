import { InvalidParameter } from 'ratecard/handler'
import type { JsonObject } from 'ratecard/handler'

interface Scheme {
  readonly name: string
  readonly panLengths: readonly number[]
  readonly cvvLength: number | null
  readonly luhn: boolean
  /** Leading digits: one number, or the first and last of a range, both of the same length. */
  readonly ranges: readonly (readonly [string] | readonly [string, string])[]
}

/** Public ISO/IEC 7812 ranges, not exhaustive. Of schemes that share a range, the one that issues the cards comes first. */
const SCHEMES: Readonly<Record<string, Scheme>> = {
  visa: { name: 'Visa', panLengths: [13, 16, 19], cvvLength: 3, luhn: true, ranges: [['4']] },
  mastercard: {
    name: 'Mastercard',
    panLengths: [16],
    cvvLength: 3,
    luhn: true,
    ranges: [
      ['51', '55'],
      ['2221', '2720'],
    ],
  },
  amex: { name: 'American Express', panLengths: [15], cvvLength: 4, luhn: true, ranges: [['34'], ['37']] },
  unionpay: {
    name: 'UnionPay',
    panLengths: [16, 17, 18, 19],
    cvvLength: 3,
    luhn: false,
    ranges: [['62'], ['622126', '622925'], ['8100', '8171']],
  },
  discover: {
    name: 'Discover',
    panLengths: [16, 17, 18, 19],
    cvvLength: 3,
    luhn: true,
    ranges: [['6011'], ['644', '649'], ['65'], ['622126', '622925']],
  },
  diners: {
    name: 'Diners Club',
    panLengths: [14, 15, 16, 17, 18, 19],
    cvvLength: 3,
    luhn: true,
    ranges: [['300', '305'], ['3095'], ['36'], ['38', '39']],
  },
  jcb: { name: 'JCB', panLengths: [16, 17, 18, 19], cvvLength: 3, luhn: true, ranges: [['3528', '3589']] },
  maestro: {
    name: 'Maestro',
    panLengths: [12, 13, 14, 15, 16, 17, 18, 19],
    cvvLength: 3,
    luhn: true,
    ranges: [['5018'], ['5020'], ['5038'], ['5893'], ['6304'], ['6759'], ['6761', '6763']],
  },
  mir: { name: 'Mir', panLengths: [16, 17, 18, 19], cvvLength: 3, luhn: true, ranges: [['2200', '2204']] },
  troy: { name: 'Troy', panLengths: [16], cvvLength: 3, luhn: true, ranges: [['9792']] },
  elo: {
    name: 'Elo',
    panLengths: [16],
    cvvLength: 3,
    luhn: true,
    ranges: [
      ['401178', '401179'],
      ['431274'],
      ['438935'],
      ['451416'],
      ['457393'],
      ['457631', '457632'],
      ['504175'],
      ['506699', '506778'],
      ['509000', '509999'],
      ['627780'],
      ['636297'],
      ['636368'],
      ['650031', '650033'],
      ['650035', '650051'],
      ['650405', '650439'],
      ['650485', '650538'],
      ['650541', '650598'],
      ['650700', '650718'],
      ['650720', '650727'],
      ['650901', '650978'],
      ['651652', '651679'],
      ['655000', '655019'],
      ['655021', '655058'],
    ],
  },
  hipercard: {
    name: 'Hipercard',
    panLengths: [13, 16, 19],
    cvvLength: 3,
    luhn: true,
    ranges: [['606282'], ['637095'], ['637568'], ['637599'], ['637609'], ['637612']],
  },
  rupay: {
    name: 'RuPay',
    panLengths: [16],
    cvvLength: 3,
    luhn: true,
    ranges: [['508'], ['60'], ['81', '82'], ['353', '356']],
  },
  uatp: { name: 'UATP', panLengths: [15], cvvLength: null, luhn: true, ranges: [['1']] },
}

interface Hit {
  readonly brand: string
  readonly scheme: Scheme
  /** Digits of the range that were compared: the more, the nearer. */
  readonly length: number
  /** Whether the given digits are in the range whatever follows. */
  readonly certain: boolean
}

/**
 * The scheme of a card by its leading digits; the longest range that fits wins. `possible_brands` also names schemes
 * whose longer ranges begin with the digits given. The issuer is not known: there is no free and complete table.
 *
 * Only 4 to 8 digits are taken. A caller who sends the whole number sends cardholder data (PCI DSS), which must not travel
 * in a URL nor reach a log, so it is refused and repeated in no message.
 */
export function checkCardBin(input: string): JsonObject {
  const digits = input.replaceAll(/[\s-]/g, '')
  if (!/^\d{4,8}$/.test(digits)) {
    throw new InvalidParameter(
      'card_bin',
      'card_bin must be the first 4 to 8 digits, never a full card number',
    )
  }
  const hits = Object.entries(SCHEMES)
    .flatMap(([brand, scheme]) =>
      scheme.ranges.flatMap(([from, to = from]) => hitOf(brand, scheme, digits, from, to)),
    )
    .toSorted((a, b) => Number(b.certain) - Number(a.certain) || b.length - a.length)
  const best = hits.find((hit) => hit.certain)
  return {
    valid: best !== undefined,
    brand: best?.brand ?? null,
    scheme_name: best?.scheme.name ?? null,
    possible_brands: [...new Set(hits.map((hit) => hit.brand))],
    pan_lengths: best?.scheme.panLengths ?? [],
    cvv_length: best?.scheme.cvvLength ?? null,
    luhn_required: best?.scheme.luhn ?? null,
    iin_length: iinLength(digits),
    issuer: null,
    errors: best === undefined ? ['unknown_scheme'] : [],
  }
}

/** An issuer identification number has 8 digits since ISO/IEC 7812-1:2017 and had 6 before; null where neither is there. */
function iinLength(digits: string): number | null {
  return digits.length === 8 ? 8 : digits.length >= 6 ? 6 : null
}

function hitOf(brand: string, scheme: Scheme, digits: string, from: string, to: string): readonly Hit[] {
  const length = Math.min(from.length, digits.length)
  const [lowest, given, highest] = [from.slice(0, length), digits.slice(0, length), to.slice(0, length)]
  if (given < lowest || given > highest) return []
  return [{ brand, scheme, length: from.length, certain: length === from.length }]
}
