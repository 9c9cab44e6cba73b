import { hasSoundChecksum, toChecksum } from '../address.ts'
import { parseDuration } from '../duration.ts'
import { parseGwei } from '../gwei.ts'
import { findNetwork, NETWORKS } from '../networks.ts'
import { error, type Issue, warning } from './issue.ts'
import type { Path } from './source.ts'
import { routesOf, type Subject } from './subject.ts'
import { didYouMean } from './suggest.ts'

/** Time a payment must still have when it is settled, besides the work: x402 clients and chains need a few seconds. */
const SETTLING_SECONDS = 9
const SHORTEST_TIMEOUT = 15_000
const LONGEST_TIMEOUT = 3_600_000
/** Milliseconds a route may work when it says nothing. */
const USUAL_WORK = 20_000

export function checkPayments(subject: Subject): Issue[] {
  const { declared, document } = subject
  const { payments } = declared
  if (payments === undefined) {
    const priced = routesOf(declared).find(({ at }) => isPriced(subject, at))
    return priced === undefined || document.has(['payments'])
      ? []
      : [error('payments_missing', document.at([...priced.at, 'price']), MISSING)]
  }
  const issues: Issue[] = []
  const written = ['x402', 'mpp'].some((name) => document.has(['payments', name]))
  if (payments.x402 === undefined && payments.mpp === undefined && !written) {
    issues.push(
      error(
        'payments_missing',
        document.atKey(['payments']),
        'offer at least one protocol: "x402: { networks: [base] }", or mpp',
      ),
    )
  }
  issues.push(...checkAddress(subject, payments.pay_to, ['payments', 'pay_to']))
  issues.push(...checkAddress(subject, payments.mpp?.currency, ['payments', 'mpp', 'currency']))
  return [
    ...issues,
    ...checkNetworks(subject),
    ...checkLimits(subject),
    ...checkTimes(subject),
    ...checkUpfront(subject),
  ]
}

const MISSING =
  'this costs money, but there is no "payments" section: write "payments: { currency: USD, x402: { networks: [base] } }"'

function isPriced({ document }: Subject, at: Path): boolean {
  const spelling = document.spelling([...at, 'price'])
  return spelling !== undefined && spelling !== 'free'
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
      const nicknames = NETWORKS.map(({ nickname }) => nickname).join(', ')
      return [
        error(
          'network_unknown',
          at,
          `"${name}" is no known network${didYouMean(name, known)}; known: ${nicknames}, or their CAIP-2 ids`,
        ),
      ]
    }
    if (seen.has(network.id))
      return [
        error(
          'list_repeats',
          at,
          `${network.title} (${network.id}, ${network.nickname}) stands in the list already`,
        ),
      ]
    seen.add(network.id)
    return []
  })
}

function checkTimes(subject: Subject): Issue[] {
  const { declared, document } = subject
  const at = ['payments', 'x402', 'timeout']
  const timeout = parseDuration(declared.payments?.x402?.timeout ?? '60s') ?? 60_000
  if (timeout < SHORTEST_TIMEOUT || timeout > LONGEST_TIMEOUT) {
    return [
      error('timeout_out_of_range', document.at(at), 'a payment is valid for 15s to 1h; 60s suits most'),
    ]
  }
  const longest = timeout - SETTLING_SECONDS * 1000
  const priced = routesOf(declared).filter((place) => isPriced(subject, place.at))
  const usual = priced.some(({ route }) => route.timeout === undefined) && USUAL_WORK > longest
  return [
    ...(usual ? [warning('timeout_over_payment', document.at(at), CUT)] : []),
    ...priced.flatMap(({ path, route, at: place }) => {
      if (route.timeout === undefined || (parseDuration(route.timeout) ?? 0) <= longest) return []
      const sentence = `${path} may take longer than a payment is valid (payments.x402.timeout less ${SETTLING_SECONDS}s); it is cut to fit`
      return [warning('timeout_over_payment', document.at([...place, 'timeout']), sentence)]
    }),
  ]
}

const CUT = `a route may take 20s unless it says otherwise, and settling takes ${SETTLING_SECONDS}s more: work is cut to fit; 60s suits most`

/** A transaction of MPP lives for 25 s, and settling takes its part. */
const LONGEST_BEFORE_SETTLING = 15_000

/** What takes longer than an MPP payment waits is paid for first: its operator should know, and can say so himself. */
function checkUpfront(subject: Subject): Issue[] {
  const { declared, document } = subject
  if (declared.payments?.mpp === undefined) return []
  const priced = [
    ...routesOf(declared),
    ...Object.entries(declared.tools ?? {}).map(([path, route]) => ({ path, route, at: ['tools', path] })),
  ].filter(({ route, at }) => isPriced(subject, at) && route.settle !== 'upfront')
  const usual = priced.some(({ route }) => route.timeout === undefined)
  return [
    ...(usual ? [warning('timeout_over_mpp', document.atKey(['payments', 'mpp']), USUALLY_UPFRONT)] : []),
    ...priced.flatMap(({ path, route, at }) => {
      if ((parseDuration(route.timeout ?? '') ?? 0) <= LONGEST_BEFORE_SETTLING) return []
      const sentence = `${path} may take longer than 15s, so that on MPP it is paid before the work; write "settle: upfront" if you mean it`
      return [warning('timeout_over_mpp', document.at([...at, 'timeout']), sentence)]
    }),
  ]
}

const USUALLY_UPFRONT =
  'a route may take 20s unless it says otherwise, and above 15s it is paid before the work on MPP: write "timeout: 15s"'

const LIMITS = ['payments', 'x402', 'limits']

/** Limits are said of networks that are offered, each under one of its names. */
function checkLimits({ declared, document }: Subject): Issue[] {
  const { networks = [], limits = {} } = declared.payments?.x402 ?? {}
  const offered = new Set(networks.flatMap((name) => findNetwork(name)?.id ?? []))
  const seen = new Set<string>()
  return Object.keys(limits).flatMap((name) => {
    const at = document.atKey([...LIMITS, name])
    const network = findNetwork(name)
    if (network === undefined) {
      const sentence = `"${name}" is no known network${didYouMean(name, networks)}; limits are for networks of the list: ${networks.join(', ')}`
      return [error('network_unknown', at, sentence)]
    }
    if (!offered.has(network.id)) {
      const sentence = `${network.title} (${network.id}) is not offered: add it to "networks", or leave its limits out`
      return [error('network_not_offered', at, sentence)]
    }
    if (seen.has(network.id)) {
      const sentence = `${network.title} (${network.id}, ${network.nickname}) has its limits already`
      return [error('list_repeats', at, sentence)]
    }
    seen.add(network.id)
    return [
      ...checkAmount(document, name, 'max_fee_gwei', 'price of gas: write gwei', 'like 5 or 0.05'),
      ...checkAmount(document, name, 'max_gas_loss', `amount of ${network.coin}: write it`, 'like 0.005'),
    ]
  })
}

function checkAmount(
  document: Subject['document'],
  name: string,
  key: 'max_fee_gwei' | 'max_gas_loss',
  what: string,
  example: string,
): Issue[] {
  const path = [...LIMITS, name, key]
  const spelling = document.spelling(path)
  if (spelling === undefined || parseGwei(spelling) !== undefined) return []
  const sentence = `${spelling} is no ${what} as a decimal greater than zero, with at most nine places, ${example}`
  return [error('fee_invalid', document.at(path), sentence)]
}
