/**
 * What a scheme keeps in the ledger between payments, such as how much of a channel is used up. The ledger does not read
 * it: it stores a text under a name, and changes it by compare-and-set, alone or in one commit with payments.
 */
export interface SchemeState {
  /** ASCII, 500 characters at most; begins with the name of the scheme, so that no two schemes use the same one. */
  readonly name: string
  readonly text: string
  /** Grows by one with every change; 0 before the first. */
  readonly version: number
}

/** Part of the names of what was only copied from elsewhere, as from a chain: backups leave it out. */
export const COPY = ':copy:'

/**
 * `next` takes the place of the state that was read as `previous`, or nothing of its commit is stored; undefined removes
 * it. Versions of a name start again after its removal, so a scheme removes only what no payment will name any more.
 */
export interface SchemeStateChange {
  readonly previous: Pick<SchemeState, 'name' | 'version'>
  readonly next: string | undefined
}

/** The states of all schemes. */
export interface SchemeStates {
  /** An empty text of version 0 when there is none. */
  get(name: string): Promise<SchemeState>
  /** Every state whose name begins with a prefix, once each, in no order. */
  list(prefix: string): AsyncIterable<SchemeState>
}
