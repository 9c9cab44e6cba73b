import type { InventedGame } from './games.ts'

/** Hundredths of a currency for one US dollar, so that prices look local; round, and nobody's exchange rate. */
const PER_DOLLAR: Readonly<Record<string, number>> = {
  BRL: 300,
  CLP: 60000,
  CNY: 400,
  EUR: 100,
  GBP: 85,
  IDR: 800000,
  INR: 4000,
  JPY: 12000,
  KRW: 110000,
  PLN: 420,
  TWD: 2000,
  UAH: 1800,
  USD: 100,
}

/** Hundredths of the currency. */
export function fullPrice({ cents }: InventedGame, currency: string): number {
  return local(cents, currency)
}

/** Hundredths of the currency. */
export function finalPrice({ cents, discountPercent }: InventedGame, currency: string): number {
  return local(Math.floor((cents * (100 - discountPercent)) / 100), currency)
}

/** Dear currencies have cents; in the others the store asks for whole units. */
function local(cents: number, currency: string): number {
  const rate = PER_DOLLAR[currency] ?? 100
  const hundredths = Math.round((cents * rate) / 100)
  return rate >= 1000 ? Math.round(hundredths / 100) * 100 : hundredths
}

export function formatPrice(hundredths: number, currency: string): string {
  return new Intl.NumberFormat('en-US', { style: 'currency', currency }).format(hundredths / 100)
}
