import type { Hex } from '../../support/payment.ts'

/** What is paid with: a chain, the clients for it, and a way to tell which charge belongs to which signature. */
export interface Money {
  /** As below `payments` in a catalog. */
  readonly terms: string
  /** What the server needs to take it. */
  readonly env: Readonly<Record<string, string>>
  /** Request header that carries a payment. */
  readonly header: string
  /** A wallet nobody has used, with more than it will need. */
  wallet(): Promise<Hex>
  /** The client as it comes from the registry; `transport` carries its requests. */
  client(key: Hex, transport: typeof fetch): typeof fetch
  /** Signs one payment for what a GET is asked for; resolves to the header’s value. */
  sign(url: string, key: Hex, transport: typeof fetch): Promise<string>
  /** What the chain shows of a payment and no other: by its header, and by its key in the ledger. */
  readonly markOf: (header: string) => string
  readonly markOfKey: (key: string) => string
  /** Every movement of money to the shop. */
  charges(): Promise<Charge[]>
  /** Transaction of the receipt in an answer. */
  readonly receiptOf: (answer: Response) => string | undefined
  /** One moment of the chain’s own life, for as long as the storm lasts. */
  tick(): Promise<void>
  close(): Promise<void>
}

export interface Charge {
  /** Of the payment that has moved the money. */
  readonly mark: string
  readonly transaction: string
}
