/**
 * How a payer is known, as far as the loss of gas goes. `known`: a payment has settled since the last revert. `new`: none
 * has. `code`: a contract signs for the account, and decides while the transaction runs.
 */
export const STANDINGS = ['known', 'new', 'code'] as const
export type Standing = (typeof STANDINGS)[number]

/** Wei, by the standing of the payers. */
export type ByStanding = Readonly<Record<Standing, bigint>>

/** What counts against the share of a standing. */
export function countedWith(standing: Standing, { known, new: fresh, code }: ByStanding): bigint {
  switch (standing) {
    case 'known':
      return known + fresh + code
    case 'new':
      return fresh + code
    case 'code':
      return code
  }
}

/**
 * The part of the hourly budget that payers of one standing may lose, those that are less known included. Strangers
 * cannot close the network for those who have paid before: a quarter stays for them.
 */
export function shareOf(standing: Standing, budget: bigint): bigint {
  switch (standing) {
    case 'known':
      return budget
    case 'new':
      return (budget * 3n) / 4n
    case 'code':
      return budget / 4n
  }
}

/**
 * How much new payers may have in flight at once in one process: what their share has left, and a part of it only once
 * some of it was lost, so that a process sees what becomes of some before it sends the others. `several`: a payer with
 * other payments under way leaves most of the room to those who have one: many wallets with many payments each would
 * otherwise leave none for honest newcomers.
 */
export function roomForNew(payments: PaymentsUnderWay, lost: bigint, budget: bigint): bigint {
  const left = shareOf('new', budget) - lost
  if (lost === 0n) return payments === 'one' ? left : left / 8n
  return payments === 'one' ? left / 4n : left / 16n
}

/** Payments of one payer that are being settled, or wait for their turn. */
export type PaymentsUnderWay = 'one' | 'several'
