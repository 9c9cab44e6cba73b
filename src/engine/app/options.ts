import { isAddress } from '../base/address.ts'
import { didYouMean } from '../catalog/issue.ts'
import { isSvmAddress } from '../base/base58.ts'
import { findNetwork, findSvmNetwork, NETWORKS, SVM_NETWORKS, TEMPO_NETWORKS } from '../base/networks.ts'
import { openSvmAccount } from '../base/svm-signature.ts'
import { canonicalPath } from '../http/request-target.ts'
import type { PaymentConfig } from './compose.ts'
import { OPTION_NAMES, type RatecardOptions } from './ratecard-options.ts'
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

/** Throws `OptionError` with all errors; how options work together is checked when the networks are opened. */
export function readPayments(options: RatecardOptions, names: OptionNames = OPTIONS): PaymentConfig {
  const problems: string[] = []
  const check = (isRight: boolean, option: string, sentence: string): void => {
    if (!isRight) problems.push(`${option} ${sentence}`)
  }
  const checkNames = (value: unknown, at: string): void => {
    if (value === undefined) return
    if (typeof value !== 'object' || value === null) return check(false, at || 'options', 'must be an object')
    const known = KNOWN[at] ?? []
    for (const name of Object.keys(value).filter((each) => !known.includes(each)))
      check(false, at === '' ? name : `${at}.${name}`, `is not an option${didYouMean(name, known)}`)
  }
  checkNames(options, '')
  if (problems.includes('options must be an object')) throw new OptionError(problems)
  const {
    catalog,
    baseUrl,
    basePath,
    handlers = {},
    service,
    payments = {},
    ledger,
    cache,
    dataDir,
    ledgerReplicas = 0,
  } = options
  checkNames(payments, 'payments')
  checkNames(payments.x402, 'payments.x402')
  checkNames(payments.mpp, 'payments.mpp')
  checkNames(options.runtime, 'runtime')
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
  for (const [option, url] of Object.entries({ [names.ledger]: ledger, [names.cache]: cache }))
    check(url === undefined || isUrl(url, /^rediss?:$/), option, 'must be a URL: redis://… or rediss://…')
  check(dataDir === undefined || typeof dataDir === 'string', names.dataDir, 'must be the path of a folder')
  check(
    Number.isInteger(ledgerReplicas) && ledgerReplicas >= 0,
    'ledgerReplicas',
    'must be a whole number of replicas',
  )
  const { x402 = {}, mpp } = payments
  const readUrls = (urls: Readonly<Record<string, string>>, at: string): Record<number, string> =>
    Object.fromEntries(
      Object.entries(urls).flatMap(([name, url]): [number, string][] => {
        const chainId = chainIdOf(name)
        const names = [...NETWORKS, ...SVM_NETWORKS, ...TEMPO_NETWORKS].map(({ nickname }) => nickname)
        check(chainId !== undefined, `${at}.${name}`, `is not a network${didYouMean(name, names)}`)
        check(isUrl(url, /^https?:$/), `${at}.${name}`, 'must be a URL: https://…')
        return chainId === undefined ? [] : [[chainId, url]]
      }),
    )
  const { payTo = [], signerKeys = [], channelKeys = [], feePayerKeys = [], facilitators = [] } = x402
  const payees = typeof payTo === 'string' ? [payTo] : payTo
  const [evmPayees, svmPayees] = [payees.filter(isAddress), payees.filter(isSvmAddress)]
  check(
    evmPayees.length <= 1 && svmPayees.length <= 1 && evmPayees.length + svmPayees.length === payees.length,
    names.payTo,
    'must be an address: 0x and 40 hexadecimal digits, or one of Solana in base58, or one of each',
  )
  check(
    mpp?.recipient === undefined || isAddress(mpp.recipient),
    names.mppRecipient,
    'must be an address: 0x and 40 hexadecimal digits',
  )
  const feePayers = feePayerKeys.flatMap((key) => openSvmAccount(key) ?? [])
  check(
    feePayers.length === feePayerKeys.length,
    names.feePayers,
    'must be key pairs of Solana: 64 bytes in base58, or as a JSON array',
  )
  const readKeys = (given: readonly string[] = [], option: string): readonly `0x${string}`[] => {
    const keys = given.filter(isKey)
    check(keys.length === given.length, option, 'must be private keys: 0x and 64 hexadecimal digits')
    return keys
  }
  const keys = readKeys(signerKeys, names.signerKeys)
  const receiptKeys = readKeys(payments.receiptKeys, names.receiptKeys)
  const authorizers = readKeys(channelKeys, names.channelKeys)
  for (const { url } of facilitators)
    check(isUrl(url, /^https?:$/), `${names.facilitators}.url`, 'must be a URL: https://…')
  const secretKeys = mpp?.secretKeys ?? []
  check(
    secretKeys.every((key) => Buffer.byteLength(key) >= 32),
    names.mppSecretKeys,
    'must be texts of at least 32 bytes',
  )
  const svmRpcUrls = Object.fromEntries(
    Object.entries(x402.rpcUrls ?? {}).flatMap(([name, url]) => {
      const id = findSvmNetwork(name)?.id
      if (id === undefined) return []
      check(isUrl(url, /^https?:$/), `payments.x402.rpcUrls.${name}`, 'must be a URL: https://…')
      return [[id, url]]
    }),
  )
  const evmRpcUrls = Object.fromEntries(
    Object.entries(x402.rpcUrls ?? {}).filter(([name]) => findSvmNetwork(name) === undefined),
  )
  const rpcUrls = {
    ...readUrls(evmRpcUrls, 'payments.x402.rpcUrls'),
    ...readUrls(mpp?.rpcUrls ?? {}, 'payments.mpp.rpcUrls'),
  }
  if (problems.length > 0) throw new OptionError(problems)
  return {
    payTo: evmPayees[0] ?? '',
    payToSolana: svmPayees[0] ?? '',
    rpcUrls,
    svmRpcUrls,
    feePayers,
    signerKeys: keys,
    channelKeys: authorizers,
    facilitators: facilitators.map(({ url, token, cdp }) => ({ url, token, cdp })),
    mppRecipient: mpp?.recipient,
    mppSecretKeys: secretKeys,
    receiptKeys,
    schemes: x402.schemes ?? [],
  }
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
