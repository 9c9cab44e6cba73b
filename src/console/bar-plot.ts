import type { TemplateContext } from '../engine/documents/template.ts'

interface Bar {
  readonly label: string
  readonly value: bigint
  /** The value in words. */
  readonly words: string
}

const WIDTH = 720
const HEIGHT = 160
const FOOT = 18
const TOP = 14

/** The geometry of a plot with a bar for each day; the page draws it, and has the same figures in a table. */
export function drawBars(bars: readonly Bar[]): TemplateContext {
  const most = bars.reduce((largest, { value }) => (value > largest ? value : largest), 0n)
  const step = WIDTH / Math.max(1, bars.length)
  const room = HEIGHT - FOOT - TOP
  const marked = Math.ceil(bars.length / 8)
  return {
    width: String(WIDTH),
    height: String(HEIGHT),
    ground: String(HEIGHT - FOOT),
    top: String(TOP),
    most: bars.find(({ value }) => value === most && most > 0n)?.words ?? '',
    isEmpty: most === 0n,
    bars: bars.map(({ label, value, words }, place) => {
      const high =
        most === 0n ? 0 : Math.max(value > 0n ? 2 : 0, (Number((value * 10_000n) / most) / 10_000) * room)
      return {
        x: (place * step + step * 0.14).toFixed(1),
        y: (HEIGHT - FOOT - high).toFixed(1),
        width: (step * 0.72).toFixed(1),
        height: high.toFixed(1),
        middle: (place * step + step / 2).toFixed(1),
        mark: place % marked === 0 ? label.slice(5) : '',
        foot: String(HEIGHT - 4),
        title: `${label}: ${words}`,
      }
    }),
  }
}
