import { hasSoundChecksum, toChecksum } from '../address.ts'
import { parseDuration } from '../duration.ts'
import { findNetwork, NETWORKS } from '../networks.ts'
import { error, warning, type Issue } from './issue.ts'
import { routesOf, type Subject } from './subject.ts'
import { didYouMean } from './suggest.ts'

/** Time a payment must still have when it is settled, besides the work: x402 clients and chains need a few seconds. */
const SETTLING_SECONDS = 9
const SHORTEST_TIMEOUT = 15_000
const LONGEST_TIMEOUT = 3_600_000

export function checkPayments(subject: Subject): Issue[] {
  const { declared, document } = subject
  const { payments } = declared
  if (payments === undefined) {
    const priced = routesOf(declared).some(({ route }) => route.price !== 'free')
    const position = document.at([])
    return priced
      ? [error('payments_missing', position, 'routes have prices, but there is no "payments" section')]
      : []
  }
  const issues: Issue[] = []
  if (payments.x402 === undefined && payments.mpp === undefined) {
    issues.push(
      error('payments_missing', document.atKey(['payments']), 'offer at least one protocol: x402 or mpp'),
    )
  }
  issues.push(...checkAddress(subject, payments.pay_to, ['payments', 'pay_to']))
  issues.push(...checkAddress(subject, payments.mpp?.currency, ['payments', 'mpp', 'currency']))
  return [...issues, ...checkNetworks(subject), ...checkTimes(subject)]
}

function checkAddress({ document }: Subject, address: string | undefined, at: readonly string[]): Issue[] {
  if (address === undefined) return []
  if (/^0x0{40}$/.test(address))
    return [error('address_zero', document.at(at), 'the zero address receives nothing; write your own')]
  if (hasSoundChecksum(address)) return []
  const message = `the letter cases of this address do not add up (EIP-55), so a digit may be wrong; if it is right, write ${toChecksum(address)}`
  return [error('address_checksum', document.at(at), message)]
}

function checkNetworks({ declared, document }: Subject): Issue[] {
  const names = declared.payments?.x402?.networks ?? []
  const seen = new Set<string>()
  return names.flatMap((name, index) => {
    const at = document.at(['payments', 'x402', 'networks', index])
    const network = findNetwork(name)
    if (network === undefined) {
      const known = NETWORKS.flatMap(({ id, nickname }) => [id, nickname])
      return [
        error(
          'network_unknown',
          at,
          `"${name}" is no known network${didYouMean(name, known)}; known: ${known.join(', ')}`,
        ),
      ]
    }
    if (seen.has(network.id))
      return [error('list_repeats', at, `${name} is ${network.id}, which stands in the list already`)]
    seen.add(network.id)
    return []
  })
}

function checkTimes({ declared, document }: Subject): Issue[] {
  const at = ['payments', 'x402', 'timeout']
  const timeout = parseDuration(declared.payments?.x402?.timeout ?? '60s') ?? 60_000
  if (timeout < SHORTEST_TIMEOUT || timeout > LONGEST_TIMEOUT) {
    return [
      error('timeout_out_of_range', document.at(at), 'a payment is valid for 15s to 1h; 60s suits most'),
    ]
  }
  return routesOf(declared).flatMap(({ path, route, at: place }) => {
    const own = parseDuration(route.timeout ?? '20s') ?? 20_000
    if (route.price === 'free' || own + SETTLING_SECONDS * 1000 <= timeout) return []
    const position = document.at([...place, 'timeout'])
    return [
      warning(
        'timeout_over_payment',
        position,
        `${path} may take longer than a payment is valid (payments.x402.timeout less ${SETTLING_SECONDS}s); it is cut to fit`,
      ),
    ]
  })
}
