const DECIMAL = /^(0|[1-9][0-9]*)(?:\.([0-9]{1,9}))?$/

/**
 * Wei of an amount in gwei by its source text, as nodes and explorers write prices of gas; undefined when it is no
 * decimal of at most nine places greater than zero.
 *
 * @example
 * parseGwei('0.05') // 50000000n
 */
export function parseGwei(text: string): bigint | undefined {
  const match = DECIMAL.exec(text)
  if (match === null) return undefined
  const [, whole = '0', fraction = ''] = match
  const wei = BigInt(whole + fraction.padEnd(9, '0'))
  return wei === 0n ? undefined : wei
}

/** As `parseGwei`, of an amount of a coin with 18 decimals, such as ETH. */
export function parseCoin(text: string): bigint | undefined {
  const billionths = parseGwei(text)
  return billionths === undefined ? undefined : billionths * 1_000_000_000n
}
