import { isAddress } from '../base/address.ts'
import { didYouMean } from '../catalog/issue.ts'
import { isSvmAddress } from '../base/base58.ts'
import { findNetwork, findSvmNetwork, NETWORKS, SVM_NETWORKS, TEMPO_NETWORKS } from '../base/networks.ts'
import { openSvmAccount, type SvmAccount } from '../base/svm-signature.ts'
import { canonicalPath } from '../http/request-target.ts'
import type { FacilitatorAccess } from '../x402/facilitators/facilitator-client.ts'
import type { OpenScheme } from '../x402/scheme.ts'
import { OPTION_NAMES, type PaymentOptions, type RatecardOptions } from './ratecard-options.ts'
import { OPTIONS, type OptionNames } from './option-names.ts'

/**
 * Options that cannot be used. The message names each of them, and what it takes.
 *
 * @example
 * import { createRatecard, OptionError } from 'ratecard'
 *
 * createRatecard({ catalog: 'catalog.yaml', baseUrl: 'api.example.com' }).catch((fault: unknown) => {
 *   if (fault instanceof OptionError) console.error(fault.problems.join('\n'))
 * })
 */
export class OptionError extends TypeError {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'OptionError'
    this.problems = problems
  }
}

function chainIdOf(name: string): number | undefined {
  const tempo = TEMPO_NETWORKS.find(({ nickname }) => nickname === name)
  const caip2 = /^eip155:(\d{1,15})$/.exec(name)?.[1]
  return findNetwork(name)?.chainId ?? tempo?.chainId ?? (caip2 === undefined ? undefined : Number(caip2))
}

/** The names of the parts of `runtime`, which is for tests. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  ...OPTION_NAMES,
  runtime: ['now', 'random', 'sleep', 'fetch'],
}

/** Payees, and what settlement requires. */
export interface PaymentConfig {
  /** On EVM networks; empty when not set. */
  readonly payTo: string
  /** On Solana; empty when not set. */
  readonly payToSolana?: string
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** JSON-RPC endpoints of Solana by CAIP-2 id. */
  readonly svmRpcUrls?: Readonly<Record<string, string>>
  /** Pay the fees of settlements on Solana: offers name the first one. */
  readonly feePayers?: readonly SvmAccount[]
  readonly signerKeys: readonly `0x${string}`[]
  /** Sign claims of channels: the present one first. */
  readonly channelKeys?: readonly `0x${string}`[]
  /** Settle on networks without a signer; in order of preference. */
  readonly facilitators: readonly FacilitatorAccess[]
  readonly mppRecipient: string | undefined
  /** The first one signs challenges, all are accepted. */
  readonly mppSecretKeys: readonly string[]
  /** Seeds of Ed25519: the first one signs receipts, all are published. */
  readonly receiptKeys?: readonly `0x${string}`[]
  /** Schemes of x402 besides those that are built in. */
  readonly schemes?: readonly OpenScheme[]
}

/** Records a problem of an option unless it is right. */
type Check = (isRight: boolean, option: string, sentence: string) => void

/** Throws `OptionError` with all errors; how options work together is checked when the networks are opened. */
export function readPayments(options: RatecardOptions, names: OptionNames = OPTIONS): PaymentConfig {
  const problems: string[] = []
  const check: Check = (isRight, option, sentence) => {
    if (!isRight) problems.push(`${option} ${sentence}`)
  }
  checkNames(options, '', check)
  if (problems.includes('options must be an object')) throw new OptionError(problems)
  const { payments = {} } = options
  checkNames(payments, 'payments', check)
  checkNames(payments.x402, 'payments.x402', check)
  checkNames(payments.mpp, 'payments.mpp', check)
  checkNames(options.runtime, 'runtime', check)
  checkService(options, names, check)
  checkStores(options, names, check)
  const config = {
    ...readPayees(payments, names, check),
    ...readKeys(payments, names, check),
    facilitators: readFacilitators(payments, names, check),
    mppSecretKeys: readSecretKeys(payments, names, check),
    ...readEndpoints(payments, check),
    schemes: payments.x402?.schemes ?? [],
  }
  if (problems.length > 0) throw new OptionError(problems)
  return config
}

/** Checks that the object at this path has no members but options. */
function checkNames(value: unknown, at: string, check: Check): void {
  if (value === undefined) return
  if (typeof value !== 'object' || value === null) return check(false, at || 'options', 'must be an object')
  const known = KNOWN[at] ?? []
  for (const name of Object.keys(value).filter((each) => !known.includes(each)))
    check(false, at === '' ? name : `${at}.${name}`, `is not an option${didYouMean(name, known)}`)
}

/** Checks what is served, and where. */
function checkService(
  { catalog, baseUrl, basePath, handlers = {}, service }: RatecardOptions,
  names: OptionNames,
  check: Check,
): void {
  check(
    typeof catalog === 'string' ? catalog !== '' : typeof catalog?.text === 'string',
    'catalog',
    'must be the path of a catalog file, or { text } with its content',
  )
  check(
    isOrigin(baseUrl),
    names.baseUrl,
    'must be an origin without a path, such as https://api.example.com: basePath names the path of a mount',
  )
  check(
    basePath === undefined || (basePath !== '/' && canonicalPath(basePath) !== undefined),
    'basePath',
    'must be a path such as /shop, without a slash at its end',
  )
  check(
    typeof handlers === 'object' && handlers !== null,
    'handlers',
    'must be an object of handlers by name',
  )
  check(
    service === undefined || (typeof service === 'object' && typeof service?.handlers === 'function'),
    'service',
    'must be what defineService returns',
  )
}

function checkStores(
  { ledger, cache, dataDir, ledgerReplicas = 0 }: RatecardOptions,
  names: OptionNames,
  check: Check,
): void {
  for (const [option, url] of Object.entries({ [names.ledger]: ledger, [names.cache]: cache }))
    check(url === undefined || isUrl(url, /^rediss?:$/), option, 'must be a URL: redis://… or rediss://…')
  check(dataDir === undefined || typeof dataDir === 'string', names.dataDir, 'must be the path of a folder')
  check(
    Number.isInteger(ledgerReplicas) && ledgerReplicas >= 0,
    'ledgerReplicas',
    'must be a whole number of replicas',
  )
}

function readPayees(
  { x402: { payTo = [] } = {}, mpp }: PaymentOptions,
  names: OptionNames,
  check: Check,
): Pick<PaymentConfig, 'payTo' | 'payToSolana' | 'mppRecipient'> {
  const payees = typeof payTo === 'string' ? [payTo] : payTo
  const [evmPayees, svmPayees] = [payees.filter(isAddress), payees.filter(isSvmAddress)]
  check(
    evmPayees.length <= 1 && svmPayees.length <= 1 && evmPayees.length + svmPayees.length === payees.length,
    names.payTo,
    'must be an address: 0x and 40 hexadecimal digits, or one of Solana in base58, or one of each',
  )
  const mppRecipient = mpp?.recipient
  check(
    mppRecipient === undefined || isAddress(mppRecipient),
    names.mppRecipient,
    'must be an address: 0x and 40 hexadecimal digits',
  )
  return { payTo: evmPayees[0] ?? '', payToSolana: svmPayees[0] ?? '', mppRecipient }
}

function readKeys(
  { x402: { signerKeys, channelKeys, feePayerKeys = [] } = {}, receiptKeys }: PaymentOptions,
  names: OptionNames,
  check: Check,
): Pick<PaymentConfig, 'feePayers' | 'signerKeys' | 'receiptKeys' | 'channelKeys'> {
  const feePayers = feePayerKeys.flatMap((key) => openSvmAccount(key) ?? [])
  check(
    feePayers.length === feePayerKeys.length,
    names.feePayers,
    'must be key pairs of Solana: 64 bytes in base58, or as a JSON array',
  )
  const keysOf = (given: readonly string[] = [], option: string): readonly `0x${string}`[] => {
    const keys = given.filter(isKey)
    check(keys.length === given.length, option, 'must be private keys: 0x and 64 hexadecimal digits')
    return keys
  }
  return {
    feePayers,
    signerKeys: keysOf(signerKeys, names.signerKeys),
    receiptKeys: keysOf(receiptKeys, names.receiptKeys),
    channelKeys: keysOf(channelKeys, names.channelKeys),
  }
}

function readFacilitators(
  { x402: { facilitators = [] } = {} }: PaymentOptions,
  names: OptionNames,
  check: Check,
): PaymentConfig['facilitators'] {
  for (const { url } of facilitators)
    check(isUrl(url, /^https?:$/), `${names.facilitators}.url`, 'must be a URL: https://…')
  return facilitators.map(({ url, token, cdp }) => ({ url, token, cdp }))
}

function readSecretKeys({ mpp }: PaymentOptions, names: OptionNames, check: Check): readonly string[] {
  const secretKeys = mpp?.secretKeys ?? []
  check(
    secretKeys.every((key) => Buffer.byteLength(key) >= 32),
    names.mppSecretKeys,
    'must be texts of at least 32 bytes',
  )
  return secretKeys
}

/** Networks of x402 are of both kinds, those of MPP are EVM networks. */
function readEndpoints(
  { x402, mpp }: PaymentOptions,
  check: Check,
): Pick<PaymentConfig, 'rpcUrls' | 'svmRpcUrls'> {
  const ofX402 = Object.entries(x402?.rpcUrls ?? {})
  const svm = ofX402.flatMap(([name, url]): [string, string][] => {
    const id = findSvmNetwork(name)?.id
    if (id === undefined) return []
    check(isUrl(url, /^https?:$/), `payments.x402.rpcUrls.${name}`, 'must be a URL: https://…')
    return [[id, url]]
  })
  const ofEvm = ofX402.filter(([name]) => findSvmNetwork(name) === undefined)
  const evm = [
    ...readEvmEndpoints(ofEvm, 'payments.x402.rpcUrls', check),
    ...readEvmEndpoints(Object.entries(mpp?.rpcUrls ?? {}), 'payments.mpp.rpcUrls', check),
  ]
  return { rpcUrls: Object.fromEntries(evm), svmRpcUrls: Object.fromEntries(svm) }
}

/** The URLs by chain id. */
function readEvmEndpoints(
  urls: readonly (readonly [string, string])[],
  at: string,
  check: Check,
): [number, string][] {
  return urls.flatMap(([name, url]): [number, string][] => {
    const chainId = chainIdOf(name)
    const names = [...NETWORKS, ...SVM_NETWORKS, ...TEMPO_NETWORKS].map(({ nickname }) => nickname)
    check(chainId !== undefined, `${at}.${name}`, `is not a network${didYouMean(name, names)}`)
    check(isUrl(url, /^https?:$/), `${at}.${name}`, 'must be a URL: https://…')
    return chainId === undefined ? [] : [[chainId, url]]
  })
}

/** The public address of a service, without a slash at its end. */
export function publicAddress({
  baseUrl,
  basePath = '',
}: Pick<RatecardOptions, 'baseUrl' | 'basePath'>): string {
  return new URL(baseUrl).origin + basePath
}

function isKey(text: string): text is `0x${string}` {
  return /^0x[0-9a-fA-F]{64}$/.test(text)
}

function isUrl(value: unknown, protocol: RegExp): boolean {
  return typeof value === 'string' && URL.canParse(value) && protocol.test(new URL(value).protocol)
}

function isOrigin(value: unknown): boolean {
  if (!isUrl(value, /^https?:$/)) return false
  const { pathname, search, hash, username, password } = new URL(String(value))
  return pathname === '/' && search + hash + username + password === ''
}
