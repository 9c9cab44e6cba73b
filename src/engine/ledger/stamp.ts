import type { Entry } from './entry.ts'

/**
 * What a compare-and-set compares. The version alone is not enough: it begins anew when an entry is removed and the
 * payment comes again, and a process that had stopped in the meantime would write over somebody else's entry.
 */
export function stampOf({ version, createdAt, owner }: Entry): string {
  return `${version}:${createdAt}:${owner}`
}
