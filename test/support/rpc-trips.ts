import { setTimeout as delay } from 'node:timers/promises'
import type { RpcProxy } from './rpc-proxy.ts'

/** Longer than everything that a purchase does by itself. */
const LATENCY_MS = 120

/** The calls to a slow node during `work`, those that were under way at the same time together. */
export async function tripsDuring(
  node: RpcProxy,
  work: () => Promise<unknown>,
): Promise<readonly (readonly string[])[]> {
  const trips: string[][] = []
  let ends = 0
  node.onCall(async (method) => {
    const now = performance.now()
    if (now >= ends) {
      trips.push([])
      ends = now + LATENCY_MS / 2
    }
    trips.at(-1)?.push(method)
    await delay(LATENCY_MS)
  })
  try {
    await work()
  } finally {
    node.onCall(async () => undefined)
  }
  return trips
}

/** The attempt with the fewest trips: a busy machine may take longer over one than what is known stays fresh. */
export async function fewestTrips(
  attempts: readonly (() => Promise<readonly (readonly string[])[]>)[],
): Promise<readonly (readonly string[])[]> {
  const all: (readonly (readonly string[])[])[] = []
  for (const attempt of attempts) all.push(await attempt())
  return all.toSorted((a, b) => a.length - b.length)[0] ?? []
}
