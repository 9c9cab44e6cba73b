import type { Difference, OnchainStatus, OnchainPayment } from '../../engine/index.ts'
import { clean } from '../terminal-text.ts'
import { isoTime, spellAmount } from './row.ts'

/** One difference in words: what each side says, and what to do about it. */
export interface Finding {
  readonly title: string
  readonly says: string
  readonly advice: string
}

const TITLES: Readonly<Record<Difference['kind'], string>> = {
  missing_on_chain: 'missing on chain',
  not_in_ledger: 'not in ledger',
  not_booked: 'charged but not booked',
  differs: 'not the same',
  unresolved: 'unresolved',
}

export function findingOf(difference: Difference, network: string, asset: string): Finding {
  const money = (atomic: bigint): string => {
    const { amount, token } = spellAmount(atomic, network, asset)
    return `${amount} ${token}`
  }
  return { title: TITLES[difference.kind], ...tell(difference, money) }
}

type Money = (atomic: bigint) => string

function tell(difference: Difference, money: Money): Omit<Finding, 'title'> {
  switch (difference.kind) {
    case 'missing_on_chain': {
      const { receipt } = difference.entry
      return {
        says: `The ledger says charged in ${clean(receipt?.transaction ?? '')}; on the chain ${STATUSES[difference.status.kind]}.`,
        advice:
          'ask another node first, for this one may not have it all; if it says the same, the answer was given away: take the payment out of the accounts',
      }
    }
    case 'not_in_ledger': {
      const { payment } = difference
      return {
        says: `${seen(payment, money)}; this ledger has never heard of it.`,
        advice: `see whether another service is paid at this address, or the ledger was lost or moved since; if not, refund ${money(payment.amount)} to ${payment.payer}`,
      }
    }
    case 'not_booked': {
      const { entry, payment } = difference
      const refund = `refund ${money(payment.amount)} to ${payment.payer}`
      return {
        says: `${seen(payment, money)}; the ledger has it as ${entry.state}, not charged.`,
        advice:
          entry.state === 'fulfilled'
            ? `the payer gets the answer by sending the same payment again, which also books it; else ${refund}`
            : `the payer has got no answer for it: ${refund}, and book both`,
      }
    }
    case 'differs': {
      const { entry, payment, fields } = difference
      const { receipt } = entry
      const ledger = {
        amount: money(BigInt(receipt?.amount ?? entry.amount)),
        payer: receipt?.payer ?? entry.payer,
        payee: entry.payee,
        transaction: receipt?.transaction ?? '',
      }
      const chain = { ...payment, amount: money(payment.amount) }
      const told = fields.map((field) => `${field}: ledger ${clean(ledger[field])}, chain ${chain[field]}`)
      return {
        says: `Ledger and chain tell it differently: ${told.join('; ')}.`,
        advice:
          'the chain is right: put its figures into the accounts, and settle what is too much or too little with the payer',
      }
    }
    case 'unresolved': {
      const { entry, status } = difference
      return {
        says: `The ledger has it as ${entry.state} since ${isoTime(entry.createdAt)}; on the chain ${STATUSES[status.kind]}.`,
        advice: NEXT[status.kind],
      }
    }
  }
}

function seen({ amount, payer, transaction }: OnchainPayment, money: Money): string {
  return `The chain shows ${money(amount)} from ${payer} in ${transaction}`
}

/** Completes the sentence "on the chain …". */
const STATUSES: Readonly<Record<OnchainStatus['kind'], string>> = {
  moved: 'it was charged',
  elsewhere: 'it was used up, and its money did not come to this payee',
  canceled: 'the payer has withdrawn it',
  reverted: 'its transaction has failed',
  expired: 'it was never used, and its time is over',
  open: 'it has not been used so far, and still can be',
  unclear: 'it is not to be seen whether it was used',
}

const SERVER = 'a running server checks this again by itself; if none runs, start one'

const NEXT: Readonly<Record<OnchainStatus['kind'], string>> = {
  moved: `${SERVER}, and the buyer gets the answer by sending the same payment again`,
  elsewhere: SERVER,
  canceled: SERVER,
  reverted: SERVER,
  expired: SERVER,
  open: 'nothing yet: look again once it has expired',
  unclear: 'ask another node, one that keeps older logs',
}
