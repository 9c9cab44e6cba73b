import { UsageError } from '../command-line/usage-error.ts'
import { type Micros, parsePrice } from '../engine/base/money.ts'
import type { Flags } from '../engine/service-definition.ts'
import { PROTOCOLS } from './protocols/all.ts'
import type { PayingProtocol } from './protocols/paying-protocol.ts'

/** An amount in USD; undefined when the flag is not given. Throws `UsageError`. */
export function amountOf(flags: Flags, flag: string): Micros | undefined {
  const text = flags.text(flag)
  if (text === undefined) return undefined
  const price = parsePrice(text)
  if (price.kind === 'price') return price.value
  throw new UsageError(`--${flag} takes USD with at most six decimals, such as 0.05; not "${text}"`)
}

/**
 * The protocols that `--protocol` allows, in order of preference: all of them when it is not given. Throws
 * `UsageError`.
 */
export function protocolsOf(flags: Flags): readonly PayingProtocol[] {
  const wanted = flags.text('protocol')
  const allowed = PROTOCOLS.filter(({ name }) => wanted === undefined || wanted === name)
  if (allowed.length > 0) return allowed
  throw new UsageError(`--protocol takes ${PROTOCOLS.map(({ name }) => name).join(' or ')}`)
}
