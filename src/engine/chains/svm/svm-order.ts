/** What is recorded of a transaction before it is sent. */
export interface SvmOrder {
  /** No block above this height can contain it. */
  readonly lastHeight: bigint
  /** In base64, with all signatures. */
  readonly transaction: string
}

/** As it stands in a record. */
export function writeOrder({ lastHeight, transaction }: SvmOrder): string {
  return `${lastHeight} ${transaction}`
}

export function readOrder(raw: string | undefined): SvmOrder | undefined {
  const [height = '', transaction] = raw?.split(' ') ?? []
  return transaction === undefined || !/^\d+$/.test(height)
    ? undefined
    : { lastHeight: BigInt(height), transaction }
}
