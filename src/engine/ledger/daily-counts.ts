/** How many days, today included, numbers are kept that are counted by day. */
export const COUNTED_DAYS = 90

/** How many names are counted on one day, so that 90 days take at most about 20 MB; what comes after is left out. */
export const MOST_NAMES = 2_000

/**
 * Numbers by day (UTC) and name that all processes of a ledger add to, such as requests that were not paid. Unlike
 * records they may lack what a killed process has counted last.
 */
export interface DailyCounts {
  /** Adds to the numbers of a day; 90 days later they are gone. */
  add(date: string, counts: ReadonlyMap<string, number>): Promise<void>
  /** The numbers of these days, both included. */
  read(from: string, to: string): Promise<readonly DayCounts[]>
}

export interface DayCounts {
  readonly date: string
  readonly counts: ReadonlyMap<string, number>
}
