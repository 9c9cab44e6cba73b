import { UsageError } from '../command-line/usage-error.ts'
import { type Micros, parsePrice } from '../engine/base/money.ts'
import type { Flags } from '../engine/service-definition.ts'
import { PROTOCOLS } from './protocols/all.ts'
import type { PayingProtocol } from './protocols/paying-protocol.ts'
import { x402By } from './protocols/x402.ts'
import { SCHEMES } from './protocols/x402-terms.ts'

/** An amount in USD; undefined when the flag is not given. Throws `UsageError`. */
export function amountOf(flags: Flags, flag: string): Micros | undefined {
  const text = flags.text(flag)
  if (text === undefined) return undefined
  const price = parsePrice(text)
  if (price.kind === 'price') return price.value
  throw new UsageError(`--${flag} takes USD with at most six decimals, such as 0.05; not "${text}"`)
}

/**
 * The protocols that `--protocol` and `--scheme` allow, in order of preference: the usual ones when neither is given. Throws
 * `UsageError`.
 */
export function protocolsOf(
  flags: Flags,
  usual: readonly PayingProtocol[] = PROTOCOLS,
): readonly PayingProtocol[] {
  const [wanted, scheme] = [flags.text('protocol'), flags.text('scheme')]
  if (scheme !== undefined) {
    const schemes = SCHEMES.filter((each) => each === scheme)
    if (schemes.length === 0) throw new UsageError('--scheme takes exact, upto or batch-settlement')
    if ((wanted ?? 'x402') !== 'x402') throw new UsageError('--scheme is for x402 alone')
    return [x402By(schemes)]
  }
  const allowed = usual.filter(({ name }) => wanted === undefined || wanted === name)
  if (allowed.length > 0) return allowed
  throw new UsageError(`--protocol takes ${PROTOCOLS.map(({ name }) => name).join(' or ')}`)
}
