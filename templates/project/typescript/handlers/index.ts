import type { Handlers } from './catalog.ts'
import { moon } from './moon.ts'

/** Every handler by its name in the catalog. */
export const handlers = {
  moon,
} satisfies Partial<Handlers>
