/** What is told to whoever sends a payment, or its identifier, for something else than it was used for. */
export const REUSED = {
  payment_reused:
    'this payment was used before, for another request or for an answer that was delivered; it is charged once at most',
  identifier_reused:
    'this payment-identifier belongs to another request of the same payer; nothing was charged now',
} as const
