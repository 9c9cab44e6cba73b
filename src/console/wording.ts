import { formatShort, type Micros, shortDecimal } from '../engine/base/money.ts'
import { amountOf, findAnyNetwork, TEMPO_NETWORKS } from '../engine/base/networks.ts'
import type { TemplateContext } from '../engine/documents/template.ts'

/** `$1,234.50`: all decimals that say something, two at least. */
export function dollars(amount: Micros): string {
  const [whole = '', fraction = ''] = formatShort(amount).split('.')
  return `$${grouped(whole)}.${fraction}`
}

/** `$1,234.50`, rounded for a figure that is read from afar. */
export function roundDollars(amount: Micros): string {
  if (amount < 1_000_000n) return dollars(amount)
  const cents = (amount + 5_000n) / 10_000n
  const text = cents.toString().padStart(3, '0')
  return `$${grouped(text.slice(0, -2))}.${text.slice(-2)}`
}

/** `1,234` */
export function grouped(count: number | string): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** An exact amount with its token: `0.005 USDC`. */
export function exactAmount(atomic: bigint, network: string, asset: string): string {
  const { amount, token } = amountOf(atomic, network, asset)
  return `${shortDecimal(amount)} ${token}`
}

/** The title of a network by its CAIP-2 id. */
export function networkTitle(id: string): string {
  return (
    findAnyNetwork(id)?.title ?? TEMPO_NETWORKS.find(({ chainId }) => id === `eip155:${chainId}`)?.title ?? id
  )
}

/** A share for people: `12.5 %`; empty where there is nothing to share. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return ''
  const share = Math.round((part / whole) * 1_000) / 10
  return `${share} %`
}

/** A time for people to the second, for programs in full. */
export function moment(ms: number): TemplateContext {
  const iso = new Date(ms).toISOString()
  return { iso, words: timeWords(ms) }
}

/** `2026-11-26 18:37:37`, in UTC. */
export function timeWords(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}

/** `340 ms`, `2.1 s`, `3 min` */
export function elapsed(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} days`
}

/** `12.3 MB` */
export function bytes(size: number): string {
  if (size < 1_000) return `${size} B`
  if (size < 1_000_000) return `${(size / 1_000).toFixed(1)} kB`
  return size < 1_000_000_000
    ? `${(size / 1_000_000).toFixed(1)} MB`
    : `${(size / 1_000_000_000).toFixed(1)} GB`
}

/** The beginning and the end of an address or a hash. */
export function shortened(text: string): string {
  return text.length <= 16 ? text : `${text.slice(0, 8)}…${text.slice(-6)}`
}
