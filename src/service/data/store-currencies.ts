/**
 * The currency the game store prices in, by country (ISO 3166-1 alpha-2 → ISO 4217). Its item batch states amounts but
 * no currency. Edited by hand: own currencies and US-dollar regions as the store's partner documentation lists them;
 * European countries without one of these are priced in euro, all others in US dollars.
 */
const STORE_CURRENCIES = {
  published_at: '2026-11-20',
  url: 'https://partner.steamgames.com/doc/store/pricing/currencies',
  countries: {
    AED: 'AE',
    AUD: 'AU',
    BRL: 'BR',
    CAD: 'CA',
    CHF: 'CH LI',
    CLP: 'CL',
    CNY: 'CN',
    COP: 'CO',
    CRC: 'CR',
    EUR: 'AD AL AT BA BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MC ME MK MT NL PT RO RS SE SI SK SM VA XK',
    GBP: 'GB GG IM JE',
    HKD: 'HK',
    IDR: 'ID',
    ILS: 'IL',
    INR: 'IN',
    JPY: 'JP',
    KRW: 'KR',
    KWD: 'KW',
    KZT: 'KZ',
    MXN: 'MX',
    MYR: 'MY',
    NOK: 'NO SJ',
    NZD: 'NZ',
    PEN: 'PE',
    PHP: 'PH',
    PLN: 'PL',
    QAR: 'QA',
    RUB: 'RU',
    SAR: 'SA',
    SGD: 'SG',
    THB: 'TH',
    TWD: 'TW',
    UAH: 'UA',
    USD: [
      'US AS GU MP PR UM VI', // the United States and their territories
      'AM AZ BY GE KG MD TJ TM UZ', // region USD_CIS
      'AR BO BZ EC GT GY HN NI PA PY SR SV VE', // region USD_LATAM
      'BH DZ EG IQ JO LB LY MA OM PS SD TN TR YE', // region USD_MENA
      'BD BT LK NP PK', // region USD_SASIA
    ].join(' '),
    UYU: 'UY',
    VND: 'VN',
    ZAR: 'ZA',
  },
} as const

const BY_COUNTRY: ReadonlyMap<string, string> = new Map(
  Object.entries(STORE_CURRENCIES.countries).flatMap(([currency, countries]) =>
    countries.split(' ').map((country) => [country, currency] as const),
  ),
)

/**
 * The currency of a country's store; undefined for a country that is not in the table.
 *
 * @example
 * storeCurrency('DE') // 'EUR'
 */
export function storeCurrency(country: string): string | undefined {
  return BY_COUNTRY.get(country)
}
