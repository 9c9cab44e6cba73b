/**
 * The times on which money depends, and what depends on each: milliseconds, or seconds where the name ends in `_S`. They
 * are explained in `docs/money-path.md`. Times of caches, polls and timeouts that move no money are with their code.
 */

/**
 * How long a dead process keeps others from a payment. The lease is renewed three times within it; every recovery waits
 * for its end.
 */
export const LEASE_MS = 10_000

/** A lease that ends later than a new one by more than this was written with a wrong clock, and is ignored. */
export const CLOCK_TOLERANCE_MS = 2_000

/** How long a dead process keeps a signer, or a channel, from others. */
export const LOCK_MS = 15_000

/** How long a process waits for such a lock: longer than LOCK_MS, so that the lease of a dead process ends meanwhile. */
export const LOCK_PATIENCE_MS = 20_000

/** A payment counts as unused only after a block beyond its expiry: answers and payment orders are kept so much longer. */
export const AFTER_EXPIRY_MS = 30_000

/** Longest time for which an unpaid record is kept, whatever expiry the payer has chosen. */
export const LONGEST_UNPAID_MS = 3_600_000

/** First pause before an unknown outcome, or an undecided write, is looked at again; doubled each time. */
export const FIRST_CHECK_MS = 5_000

/** Longest such pause. */
export const LONGEST_CHECK_MS = 300_000

/** First look at the block of a settled payment: most reorganizations are shorter. */
export const FIRST_LOOK_MS = 15_000

/** The same for a payment that expires soon: while its bytes can still be sent again, but not before its block is shown. */
export const EARLIEST_LOOK_MS = 3_000

/**
 * A settlement that leaves less of the payment’s validity has to be deeper: were its block undone, the process that finds
 * out may die, and another one would have to wait for its lease.
 */
export const LATE_SETTLEMENT_MS = LEASE_MS

/** Longest pause between two looks. */
export const LONGEST_LOOK_MS = 600_000

/** A block that nobody could look at for this long counts as final. */
export const LOOKS_GIVEN_UP_MS = 86_400_000

/** What must be left of a payment’s validity when its settlement begins: work is cut off so much earlier. */
export const SETTLING_MS = 6_000

/** Less time than this is not worth beginning with: the payment is refused. */
export const SHORTEST_WORK_MS = 3_000

/** Greatest age of a purchase whose answer counts as lost, and answers the next equal call of its buyer. */
export const LOST_ANSWER_MS = 600_000

/** Two failed settlements this close together put a payer on upfront… */
export const FAILURES_CLOSE_MS = 600_000

/** …for this long after the second. */
export const UPFRONT_MS = 3_600_000

/** Seconds of validity a payment must still have when it arrives, as every x402 implementation asks. */
export const VALIDITY_MARGIN_S = 6

/** Seconds a payment may be valid beyond its offer, for fast clocks; its record is kept as long. */
export const VALIDITY_SLACK_S = 600

/**
 * Seconds a deposit into a channel is signed for: a reorganization may undo it when calls were answered already for what
 * it has brought, and it is sent again while its signature is valid.
 */
export const DEPOSIT_VALID_S = 600

/** Seconds of that which are left when it arrives: several looks at the chain. */
export const DEPOSIT_MARGIN_S = 60

/** How long after the expiry of a payment its facilitator is asked for the outcome: later it cannot know more. */
export const FACILITATOR_ASKED_MS = 3_600_000

/** How long a facilitator is given to settle; after it the outcome is unknown. */
export const FACILITATOR_SETTLE_MS = 30_000

/** A transaction of MPP lives for 25 s, of which the settlement takes its part: longer work is paid for first. */
export const MPP_LONGEST_WORK_MS = 15_000

/** `LATE_SETTLEMENT_MS` for these: what several processes do one after the other takes most of their life. */
export const MPP_LATE_SETTLEMENT_MS = LEASE_MS + 5_000

/** How long a challenge can be paid: the scheme’s clients and mppx use the same. */
export const MPP_CHALLENGE_MS = 300_000

/** Seconds after which a refund that is in no block never will be, and another may be signed. */
export const REFUND_VALID_S = 3_600

/** How long a transaction of Solana can be carried out after it was signed: 150 blocks, in the best case. */
export const SVM_LIFETIME_MS = 60_000

/** The same in a bad hour of the network: from then on a payment on Solana is not awaited any more. */
export const SVM_LATEST_MS = 90_000

/** Work that a transaction of Solana outlives, so that it can be settled afterwards: longer work is paid for first. */
export const SVM_LONGEST_WORK_MS = 40_000
