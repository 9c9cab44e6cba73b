import { setTimeout as delay } from 'node:timers/promises'

const PATIENCE_MS = 60_000

/** Waits until a condition holds, or there is a value; throws with its name after a minute. */
export async function until<T>(
  what: string,
  holds: () => T | false | undefined | Promise<T | false | undefined>,
): Promise<T> {
  const patience = Date.now() + PATIENCE_MS
  for (;;) {
    const found = await holds()
    if (found !== undefined && found !== false) return found
    if (Date.now() > patience) throw new Error(`waited in vain until ${what}`)
    await delay(20)
  }
}
