import type { Funnel } from './standing.ts'
import type { TemplateContext } from './text.ts'

/** Where the bars begin, how long the longest is, and how far they stand apart, in units of the drawing. */
const LEFT = 190
const LONGEST = 360
const BAR = 24
const PITCH = 42

const STEPS: readonly (readonly [name: keyof Funnel, label: string])[] = [
  ['unpaid', 'Price shown (402)'],
  ['presented', 'Payment came'],
  ['verified', 'Found good'],
  ['settled', 'Charged'],
  ['sent', 'Arrived'],
]

/** A bar for each step, and the slopes between them. */
export function drawFunnel(funnel: Funnel): TemplateContext {
  const most = Math.max(...STEPS.map(([name]) => funnel[name]))
  const steps = STEPS.map(([name, label], place) => ({
    name,
    label,
    count: funnel[name],
    y: place * PITCH,
    width: lengthOf(funnel[name], most),
  }))
  return {
    height: String((STEPS.length - 1) * PITCH + BAR),
    title: steps.map(({ label, count }) => `${label}: ${count}`).join(', '),
    slopes: steps.slice(1).map(({ y, width }, place) => {
      const above = steps[place]?.width ?? 0
      const from = y - PITCH + BAR
      return { points: `${LEFT},${from} ${LEFT + above},${from} ${LEFT + width},${y} ${LEFT},${y}` }
    }),
    steps: steps.map(({ name, label, count, y, width }) => ({
      name,
      label,
      count: String(count),
      y: String(y),
      baseline: String(y + 18),
      width: String(width),
    })),
  }
}

/** By the logarithm: a thousand prices are shown for one that is paid. */
function lengthOf(count: number, most: number): number {
  return count === 0 ? 0 : Math.round((LONGEST * Math.log(1 + count)) / Math.log(1 + most))
}

const SLOWEST_MS = 60_000

/** From the median to the 95th of 100, in percent of a line from 1 ms to a minute; drawn at least that wide that it is seen. */
export function drawSpan(p50: number, p95: number): { readonly x: string; readonly width: string } {
  const [from, to] = [placeOf(p50), placeOf(p95)]
  const width = Math.max(2, to - from)
  return { x: String(Math.min(from, 100 - width)), width: String(width) }
}

function placeOf(ms: number): number {
  return Math.round((100 * Math.log(Math.max(1, ms))) / Math.log(SLOWEST_MS))
}

/** In percent of the most there was on any day. */
export function drawShare(count: number, most: number): number {
  return most === 0 ? 0 : Math.round((100 * count) / most)
}
