/**
 * How a payer is known, as far as the loss of gas goes. `known`: a payment has settled since the last revert. `new`: none
 * has. `code`: a contract signs for the account, and decides while the transaction runs.
 */
export const STANDINGS = ['known', 'new', 'code'] as const
export type Standing = (typeof STANDINGS)[number]

/**
 * The part of the hourly budget that payers of one standing may lose together. Strangers cannot close the network for
 * those who have paid before: a quarter stays for them.
 */
export function shareOf(standing: Standing, budget: bigint): bigint {
  switch (standing) {
    case 'known':
      return budget
    case 'new':
      return budget / 2n
    case 'code':
      return budget / 4n
  }
}
