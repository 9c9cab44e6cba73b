import { hasSoundChecksum, isAddress, toChecksum } from '../../base/address.ts'
import { parseDuration } from '../../base/duration.ts'
import { parseGwei } from '../../base/money.ts'
import { isSvmAddress } from '../../base/base58.ts'
import {
  findAnyNetwork,
  findNetwork,
  findSvmNetwork,
  NETWORKS,
  SVM_NETWORKS,
  TEMPO_NETWORKS,
} from '../../base/networks.ts'
import { type CheckContext, deniedFiles, entriesOf, routesOf } from '../check-context.ts'
import { didYouMean, error, type Issue, warning } from '../issue.ts'
import type { Path } from '../yaml-document.ts'

/** Time that settlement needs after the work: x402 clients and chains need a few seconds. */
const SETTLING_SECONDS = 9
const SHORTEST_TIMEOUT = 15_000
const LONGEST_TIMEOUT = 3_600_000
/** Default timeout of a handler in milliseconds. */
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
  yield* checkPayees(context)
  yield* checkAddress(context, payments.mpp?.currency, ['payments', 'mpp', 'currency'])
  yield* checkDenied(context)
  yield* checkOwn(context)
  yield* checkNetworks(context)
  yield* checkMixture(context)
  yield* checkLimits(context)
  yield* checkTimes(context)
  yield* checkUpfront(context)
}

const MISSING =
  'this costs money, but there is no "payments" section: write "payments: { currency: USD, x402: { networks: [base] } }"'

function isPriced({ document }: CheckContext, at: Path): boolean {
  return document.has([...at, 'price']) && document.spelling([...at, 'price']) !== 'free'
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

const PAY_TO = ['payments', 'pay_to']

/** At most one address of each kind of network, and each of them usable. */
function* checkPayees(context: CheckContext): Generator<Issue> {
  const { pay_to: payees = [] } = context.declared.payments ?? {}
  const listed = typeof payees === 'string' ? [payees] : payees
  for (const [index, payee] of listed.entries()) {
    const at = typeof payees === 'string' ? PAY_TO : [...PAY_TO, index]
    const same = listed.findIndex((other) => isAddress(other) === isAddress(payee))
    if (same < index)
      yield error(
        'list_repeats',
        context.document.at(at),
        'name one address for EVM networks, and one for Solana',
      )
    if (isAddress(payee)) yield* checkAddress(context, payee, at)
    else if (!isSvmAddress(payee))
      yield error(
        'address_invalid',
        context.document.at(at),
        `"${payee}" is no address of Solana: 32 bytes in base58`,
      )
  }
}

function* checkOwn({ declared, document }: CheckContext): Generator<Issue> {
  for (const [index, word] of (declared.payments?.payers?.own ?? []).entries()) {
    const problem = addressProblem(word)
    const place = document.at(['payments', 'payers', 'own', index])
    if (problem !== undefined) yield error('payer_invalid', place, `"${word}" ${problem}`)
  }
}

function addressProblem(word: string): string | undefined {
  if (isAddress(word))
    return hasSoundChecksum(word)
      ? undefined
      : 'fails its EIP-55 checksum, so a digit may be wrong; if it is right, write it in lower case'
  return isBase58(word) ? undefined : 'is not an address: 0x and 40 hexadecimal digits'
}

function* checkDenied(context: CheckContext): Generator<Issue> {
  for (const { path, at, lines } of deniedFiles(context)) {
    const place = context.document.at(at)
    if (lines === undefined) yield error('file_unreadable', place, `${path} cannot be read`)
    for (const { number, word } of lines ?? []) {
      const problem = addressProblem(word)
      if (problem !== undefined)
        yield error('payer_invalid', place, `${path}:${number}: "${word}" ${problem}`)
    }
  }
}

/** An address of a network with another form of addresses; not an EVM address without its 0x. */
function isBase58(word: string): boolean {
  return /^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(word) && !/^[0-9a-fA-F]{40}$/.test(word)
}

function* checkNetworks({ declared, document }: CheckContext): Generator<Issue> {
  const seen = new Set<string>()
  for (const [index, name] of (declared.payments?.x402?.networks ?? []).entries()) {
    const at = document.at(['payments', 'x402', 'networks', index])
    const network = findAnyNetwork(name)
    if (network === undefined) {
      const all = [...NETWORKS, ...SVM_NETWORKS]
      const known = all.flatMap(({ id, nickname }) => [id, nickname])
      const nicknames = all.map(({ nickname }) => nickname).join(', ')
      const message = `"${name}" is no known network${didYouMean(name, known)}; known: ${nicknames}, or their CAIP-2 ids`
      yield error('network_unknown', at, message)
    } else if (seen.has(network.id)) {
      const message = `${network.title} (${network.id}, ${network.nickname}) is already in the list`
      yield error('list_repeats', at, message)
    } else seen.add(network.id)
  }
}

/** A price is one number on all networks: on a test network it costs nothing. */
function* checkMixture({ declared, document }: CheckContext): Generator<Issue> {
  const { x402, mpp } = declared.payments ?? {}
  const offered = [
    ...(x402?.networks ?? []).flatMap((name, index) => {
      const network = findAnyNetwork(name)
      return network === undefined ? [] : [{ ...network, at: ['payments', 'x402', 'networks', index] }]
    }),
    ...(mpp === undefined ? [] : [{ ...tempoNetwork(mpp.chain), at: ['payments', 'mpp', 'chain'] }]),
  ]
  const [first] = offered
  const other = offered.find(({ testnet }) => testnet !== first?.testnet)
  if (first === undefined || other === undefined) return
  const [test, real] = other.testnet ? [other, first] : [first, other]
  const message = `${test.title} is a test network and ${real.title} is not: what costs money on one would be free on the other; leave one of them out, and test with a catalog of its own`
  yield error('networks_mixed', document.at(other.at), message)
}

function tempoNetwork(chain: number): { readonly title: string; readonly testnet: boolean } {
  return (
    TEMPO_NETWORKS.find(({ chainId }) => chainId === chain) ?? { title: `Tempo (${chain})`, testnet: false }
  )
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

/** An MPP transaction is valid for 25 s, and settlement takes part of that. */
const LONGEST_BEFORE_SETTLING = 15_000

/** Warns of a handler that may outlast an MPP payment, and is settled upfront unless the catalog decides. */
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

/** Checks that limits are for offered networks, each under one of its names. */
function* checkLimits(context: CheckContext): Generator<Issue> {
  const { networks = [], limits = {} } = context.declared.payments?.x402 ?? {}
  const offered = new Set(networks.flatMap((name) => findNetwork(name)?.id ?? []))
  const seen = new Set<string>()
  for (const name of Object.keys(limits)) {
    const at = context.document.atKey([...LIMITS, name])
    const network = findNetwork(name)
    if (network === undefined && findSvmNetwork(name) !== undefined) {
      const message = `limits are for EVM networks; on Solana what failed transactions may cost is fixed`
      yield error('network_unknown', at, message)
    } else if (network === undefined) {
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
