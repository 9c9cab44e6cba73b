import { setTimeout as delay } from 'node:timers/promises'

const PATIENCE_MS = 60_000

/** Waits until a condition holds; throws with its name after a minute. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const patience = Date.now() + PATIENCE_MS
  while (!(await holds())) {
    if (Date.now() > patience) throw new Error(`waited in vain until ${what}`)
    await delay(20)
  }
}
