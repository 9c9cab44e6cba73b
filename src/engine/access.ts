import type { ErrorCode } from './errors.ts'
import type { Micros } from './money.ts'

/**
 * One request that was answered, as its operator may see it: neither what was asked, nor who asked, nor what the answer
 * was. Whatever is a name in it stands in the catalog, so that there are not more of them than there are routes.
 */
export interface Access {
  readonly method: string
  /** Template of the route, path of a document, `tool <name>`; `unknown` when the catalog has nothing there. */
  readonly place: string
  readonly status: number
  /** `ok` below 400, else the code of the problem. */
  readonly outcome: 'ok' | ErrorCode
  /** Of the paid operation; undefined on everything that is free. */
  readonly price: Micros | undefined
  /** Whether the answer came from the cache; undefined when that is not told. */
  readonly cached: boolean | undefined
  /** Milliseconds from the first look at the request to its answer. */
  readonly ms: number
  /** Public id of the payment, where one was taken. */
  readonly payment: string | undefined
}

/** Called for every request once it is answered; must be quick and must not throw. */
export type Observe = (access: Access) => void
