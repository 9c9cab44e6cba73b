import { hasSoundChecksum, toChecksum } from '../address.ts'
import { parseDuration } from '../duration.ts'
import { parseGwei } from '../money.ts'
import { findNetwork, NETWORKS } from '../networks.ts'
import { type CheckContext, entriesOf, routesOf } from './check-context.ts'
import { didYouMean, error, type Issue, warning } from './issue.ts'
import type { Path } from './source.ts'

/** Time a payment must still have when it is settled, besides the work: x402 clients and chains need a few seconds. */
const SETTLING_SECONDS = 9
const SHORTEST_TIMEOUT = 15_000
const LONGEST_TIMEOUT = 3_600_000
/** Milliseconds a route may work when it says nothing. */
const DEFAULT_WORK = 20_000

export function* checkPayments(context: CheckContext): Generator<Issue> {
  const { declared, document } = context
  const { payments } = declared
  if (payments === undefined) {
    const priced = routesOf(declared).find(({ at }) => isPriced(context, at))
    if (priced !== undefined && !document.has(['payments']))
      yield error('payments_missing', document.at([...priced.at, 'price']), MISSING)
    return
  }
  const isWritten = ['x402', 'mpp'].some((name) => document.has(['payments', name]))
  if (payments.x402 === undefined && payments.mpp === undefined && !isWritten)
    yield error(
      'payments_missing',
      document.atKey(['payments']),
      'offer at least one protocol: "x402: { networks: [base] }", or mpp',
    )
  yield* checkAddress(context, payments.pay_to, ['payments', 'pay_to'])
  yield* checkAddress(context, payments.mpp?.currency, ['payments', 'mpp', 'currency'])
  yield* checkNetworks(context)
  yield* checkLimits(context)
  yield* checkTimes(context)
  yield* checkUpfront(context)
}

const MISSING =
  'this costs money, but there is no "payments" section: write "payments: { currency: USD, x402: { networks: [base] } }"'

function isPriced({ document }: CheckContext, at: Path): boolean {
  const spelling = document.spelling([...at, 'price'])
  return spelling !== undefined && spelling !== 'free'
}

function* checkAddress({ document }: CheckContext, address: string | undefined, at: Path): Generator<Issue> {
  if (address === undefined) return
  if (/^0x0{40}$/.test(address))
    yield error('address_zero', document.at(at), 'the zero address receives nothing; write your own')
  else if (!hasSoundChecksum(address)) {
    const message = `this address fails its EIP-55 checksum, so a digit may be wrong; if it is right, write ${toChecksum(address)}`
    yield error('address_checksum', document.at(at), message)
  }
}

function* checkNetworks({ declared, document }: CheckContext): Generator<Issue> {
  const seen = new Set<string>()
  for (const [index, name] of (declared.payments?.x402?.networks ?? []).entries()) {
    const at = document.at(['payments', 'x402', 'networks', index])
    const network = findNetwork(name)
    if (network === undefined) {
      const known = NETWORKS.flatMap(({ id, nickname }) => [id, nickname])
      const nicknames = NETWORKS.map(({ nickname }) => nickname).join(', ')
      const message = `"${name}" is no known network${didYouMean(name, known)}; known: ${nicknames}, or their CAIP-2 ids`
      yield error('network_unknown', at, message)
    } else if (seen.has(network.id)) {
      const message = `${network.title} (${network.id}, ${network.nickname}) stands in the list already`
      yield error('list_repeats', at, message)
    } else seen.add(network.id)
  }
}

function* checkTimes(context: CheckContext): Generator<Issue> {
  const { declared, document } = context
  const at = document.at(['payments', 'x402', 'timeout'])
  const timeout = parseDuration(declared.payments?.x402?.timeout ?? '60s') ?? 60_000
  if (timeout < SHORTEST_TIMEOUT || timeout > LONGEST_TIMEOUT) {
    yield error('timeout_out_of_range', at, 'a payment is valid for 15s to 1h; 60s suits most')
    return
  }
  const longest = timeout - SETTLING_SECONDS * 1000
  const priced = routesOf(declared).filter((place) => isPriced(context, place.at))
  if (DEFAULT_WORK > longest && priced.some(({ route }) => route.timeout === undefined))
    yield warning('timeout_over_payment', at, CUT)
  for (const { path, route, at: place } of priced) {
    if ((parseDuration(route.timeout ?? '') ?? 0) <= longest) continue
    const message = `${path} may take longer than a payment is valid (payments.x402.timeout less ${SETTLING_SECONDS}s); it is cut to fit`
    yield warning('timeout_over_payment', document.at([...place, 'timeout']), message)
  }
}

const CUT = `a route may take 20s unless it says otherwise, and settling takes ${SETTLING_SECONDS}s more: work is cut to fit; 60s suits most`

/** A transaction of MPP lives for 25 s, and settling takes its part. */
const LONGEST_BEFORE_SETTLING = 15_000

/** What takes longer than an MPP payment waits is paid for first: its operator should know, and can say so himself. */
function* checkUpfront(context: CheckContext): Generator<Issue> {
  const { declared, document } = context
  if (declared.payments?.mpp === undefined) return
  const priced = entriesOf(declared).filter(
    ({ entry, at }) => isPriced(context, at) && entry.settle !== 'upfront',
  )
  if (priced.some(({ entry }) => entry.timeout === undefined))
    yield warning('timeout_over_mpp', document.atKey(['payments', 'mpp']), DEFAULT_IS_UPFRONT)
  for (const { entry, at } of priced) {
    if ((parseDuration(entry.timeout ?? '') ?? 0) <= LONGEST_BEFORE_SETTLING) continue
    const message = `${at.at(-1) ?? ''} may take longer than 15s, so that on MPP it is paid before the work; write "settle: upfront" if you mean it`
    yield warning('timeout_over_mpp', document.at([...at, 'timeout']), message)
  }
}

const DEFAULT_IS_UPFRONT =
  'a route may take 20s unless it says otherwise, and above 15s it is paid before the work on MPP: write "timeout: 15s"'

const LIMITS = ['payments', 'x402', 'limits']

/** Limits are for networks that are offered, each under one of its names. */
function* checkLimits(context: CheckContext): Generator<Issue> {
  const { networks = [], limits = {} } = context.declared.payments?.x402 ?? {}
  const offered = new Set(networks.flatMap((name) => findNetwork(name)?.id ?? []))
  const seen = new Set<string>()
  for (const name of Object.keys(limits)) {
    const at = context.document.atKey([...LIMITS, name])
    const network = findNetwork(name)
    if (network === undefined) {
      const message = `"${name}" is no known network${didYouMean(name, networks)}; limits are for networks of the list: ${networks.join(', ')}`
      yield error('network_unknown', at, message)
    } else if (!offered.has(network.id)) {
      const message = `${network.title} (${network.id}) is not offered: add it to "networks", or leave its limits out`
      yield error('network_not_offered', at, message)
    } else if (seen.has(network.id)) {
      const message = `${network.title} (${network.id}, ${network.nickname}) has its limits already`
      yield error('list_repeats', at, message)
    } else {
      seen.add(network.id)
      yield* checkAmount(
        context,
        [...LIMITS, name, 'max_fee_gwei'],
        'price of gas: write gwei',
        'like 5 or 0.05',
      )
      const amount = `amount of ${network.coin}: write it`
      yield* checkAmount(context, [...LIMITS, name, 'max_gas_loss'], amount, 'like 0.005')
    }
  }
}

function* checkAmount(
  { document }: CheckContext,
  path: Path,
  what: string,
  example: string,
): Generator<Issue> {
  const spelling = document.spelling(path)
  if (spelling === undefined || parseGwei(spelling) !== undefined) return
  const message = `${spelling} is no ${what} as a decimal greater than zero, with at most nine places, ${example}`
  yield error('fee_invalid', document.at(path), message)
}
