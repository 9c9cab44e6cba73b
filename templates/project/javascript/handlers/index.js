import { moon } from './moon.js'

/**
 * Every handler by its name in the catalog.
 *
 * @satisfies {Partial<import('./catalog.d.ts').Handlers>}
 */
export const handlers = {
  moon,
}
