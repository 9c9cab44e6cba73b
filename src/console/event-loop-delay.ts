import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 20
const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

/** Begins to measure. */
export function watchEventLoop(): () => void {
  histogram.enable()
  return () => void histogram.disable()
}

/** How long work has waited for its turn since the last look, in milliseconds. */
export function eventLoopDelay(): { readonly median: number; readonly longest: number } {
  const ms = (ns: number): number => (Number.isFinite(ns) ? Math.max(0, ns / 1e6 - RESOLUTION_MS) : 0)
  return { median: ms(histogram.percentile(50)), longest: ms(histogram.max) }
}
