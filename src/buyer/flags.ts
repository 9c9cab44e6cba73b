import { UsageError } from '../command-line/usage-error.ts'
import { type Micros, parsePrice } from '../engine/base/money.ts'
import { findAnyNetwork, NETWORKS, SVM_NETWORKS, TEMPO_NETWORKS } from '../engine/base/networks.ts'
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
 * The protocols that `--protocol` and `--scheme` allow, with the offers that `--network` allows, in order of preference:
 * the usual ones when none of them is given. Throws `UsageError`.
 */
export function protocolsOf(
  flags: Flags,
  usual: readonly PayingProtocol[] = PROTOCOLS,
): readonly PayingProtocol[] {
  const [wanted, scheme] = [flags.text('protocol'), flags.text('scheme')]
  return protocolsBy({ wanted, scheme, usual }).map((protocol) => onNetwork(protocol, networkOf(flags)))
}

/** The CAIP-2 id of `--network`; undefined when it is not given. Throws `UsageError`. */
function networkOf(flags: Flags): string | undefined {
  const name = flags.text('network')
  if (name === undefined) return undefined
  const id = findAnyNetwork(name)?.id ?? tempoId(name)
  if (id !== undefined) return id
  const names = [...NETWORKS, ...SVM_NETWORKS, ...TEMPO_NETWORKS].map(({ nickname }) => nickname)
  throw new UsageError(`--network takes one of ${names.join(', ')}`)
}

function tempoId(name: string): string | undefined {
  const ids = TEMPO_NETWORKS.map(({ nickname, chainId }) => ({ nickname, id: `eip155:${chainId}` }))
  return ids.find(({ nickname, id }) => nickname === name || id === name)?.id
}

/** The protocol with its offers on one network alone. */
function onNetwork(protocol: PayingProtocol, network: string | undefined): PayingProtocol {
  if (network === undefined) return protocol
  return {
    ...protocol,
    readOffers: (reply) => protocol.readOffers(reply).filter((offer) => offer.network === network),
  }
}

interface Ways {
  readonly wanted: string | undefined
  readonly scheme: string | undefined
  readonly usual: readonly PayingProtocol[]
}

function protocolsBy({ wanted, scheme, usual }: Ways): readonly PayingProtocol[] {
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
