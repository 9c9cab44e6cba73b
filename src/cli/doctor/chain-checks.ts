import { countOf } from '../../engine/base/words.ts'
import type { Catalog } from '../../engine/catalog/catalog.ts'
import { FEW, formatCoin } from '../../engine/chains/evm/gas-balance.ts'
import type { AllNetworks } from '../../engine/app/all-networks.ts'
import type { PaymentConfig } from '../../engine/app/options.ts'
import { VARIABLES } from '../../engine/app/option-names.ts'
import { findNetwork, findSvmNetwork, type Network, type SvmNetwork } from '../../engine/base/networks.ts'
import { formatSol } from '../../engine/chains/svm/fee-losses.ts'
import { SvmChain } from '../../engine/chains/svm/svm-chain.ts'
import { checkSvmNetwork, isFew, paymentsFrom } from '../../engine/x402/exact-svm/svm-check.ts'
import { isLoopback } from '../../engine/base/loopback.ts'
import { askChainId, checkNetwork, type NetworkCheck } from '../../engine/x402/exact-evm/network-check.ts'
import { addressOfKey } from '../../engine/chains/evm/signature.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import { areSet } from '../terminal-text.ts'
import { fails, warns, ok, type CheckResult } from './check-result.ts'

/** Checks every node and facilitator that settlement depends on. */
export async function checkChains(
  { payments: { x402, mpp } }: Catalog,
  config: PaymentConfig,
  paymentNetworks: AllNetworks,
): Promise<CheckResult[]> {
  const networks = (x402?.networks ?? []).flatMap((id) => findNetwork(id) ?? [])
  const svmNetworks = (x402?.networks ?? []).flatMap((id) => findSvmNetwork(id) ?? [])
  const results = await Promise.all([
    ...networks.map((network) => checkConfigured(network, config)),
    ...svmNetworks.map((network) => checkSvmConfigured(network, config)),
    ...(mpp === undefined ? [] : [checkTempo(mpp.chain, config, paymentNetworks.mpp.missing(mpp))]),
    ...(x402 === undefined || config.facilitators.length === 0
      ? []
      : [checkFacilitators(x402, paymentNetworks)]),
  ])
  const { x402: evm, svm } = paymentNetworks
  const cautions = x402 === undefined ? [] : [...evm.cautions(x402), ...svm.cautions(x402)]
  return [...results.flat(), ...cautions.map((caution) => warns('facilitator', caution))]
}

async function checkConfigured(
  network: Network,
  { rpcUrls, signerKeys, facilitators }: PaymentConfig,
): Promise<CheckResult[]> {
  const { chainId, title } = network
  const url = rpcUrls[chainId]
  const signers = signerKeys.flatMap((key) => addressOfKey(key) ?? [])
  if (url === undefined) {
    const missing = [`RPC_URL_${chainId}`, ...(signers.length === 0 ? ['SETTLER_PRIVATE_KEY'] : [])]
    return facilitators.length > 0 ? [] : [warns(title, `not offered before ${areSet(missing)}`)]
  }
  const wrong = await checkEndpoint(title, chainId, url)
  if (wrong.some(({ level }) => level === 'fails')) return wrong
  const { token, gas } = await checkNetwork(network, url, signers, systemRuntime.caller)
  return [...wrong, checkToken(network, token), ...gas.map((each) => checkGas(network, each))]
}

async function checkSvmConfigured(
  network: SvmNetwork,
  { svmRpcUrls = {}, feePayers = [], facilitators, payToSolana = '' }: PaymentConfig,
): Promise<CheckResult[]> {
  const { id, title, coin } = network
  const url = svmRpcUrls[id]
  const variable = VARIABLES.svmRpcUrl(network)
  if (payToSolana === '') return [fails(title, 'PAY_TO names no address of Solana')]
  if (url === undefined) {
    const missing = [variable, ...(feePayers.length === 0 ? [VARIABLES.feePayers] : [])]
    return facilitators.length > 0 ? [] : [warns(title, `not offered before ${areSet(missing)}`)]
  }
  const chain = new SvmChain(url, systemRuntime.caller)
  const addresses = feePayers.map(({ address }) => address)
  const { account, feePayers: balances } = await checkSvmNetwork(chain, network, payToSolana, addresses)
  if (account.kind === 'unreachable') return [fails(title, `${variable} does not answer`)]
  const isOpen = url.startsWith('http://') && !isLoopback(url)
  return [
    account.kind === 'ready'
      ? ok(title, `${payToSolana} is paid in its token account ${account.address}`)
      : fails(title, account.remedy),
    ...(isOpen
      ? [warns(title, `${variable} is used without TLS: anyone on the network path can forge settlements`)]
      : []),
    ...balances.map(({ address, balance }) => {
      if (balance === undefined) return fails(title, `${variable} does not return the balance of ${address}`)
      const payments = paymentsFrom(balance)
      const has = `fee payer ${address} has ${formatSol(balance)} ${coin}`
      if (payments === 0n) return fails(title, `${has}: not enough for a payment, send it more`)
      const message = `${has}, for ${countOf(Number(payments), 'payment')}`
      return isFew(payments) ? warns(title, `${message}: send it more`) : ok(title, message)
    }),
  ]
}

async function checkEndpoint(title: string, chainId: number, url: string): Promise<CheckResult[]> {
  const variable = `RPC_URL_${chainId}`
  const found = await askChainId(url, systemRuntime.caller)
  if (found === undefined) return [fails(title, `${variable} does not answer`)]
  if (found !== BigInt(chainId)) return [fails(title, `${variable} leads to chain ${found}`)]
  const isOpen = url.startsWith('http://') && !isLoopback(url)
  return [
    ok(title, `${variable} answers as chain ${chainId}`),
    ...(isOpen
      ? [warns(title, `${variable} is used without TLS: anyone on the network path can forge settlements`)]
      : []),
  ]
}

function checkToken(
  { title, token: { symbol, name, version } }: Network,
  check: NetworkCheck['token'],
): CheckResult {
  switch (check.kind) {
    case 'agrees':
      return ok(title, `${symbol} signs as ${name} version ${version}`)
    case 'differs':
      return fails(title, check.detail)
    case 'unreachable':
      return fails(title, 'the token did not return its domain')
  }
}

function checkGas(
  { title, coin, chainId }: Network,
  { signer, check }: NetworkCheck['gas'][number],
): CheckResult {
  if (check.kind !== 'known')
    return fails(title, `RPC_URL_${chainId} does not return the balance of ${signer}`)
  const has = `signer ${signer} has ${formatCoin(check.balance)} ${coin}`
  if (check.payments === 0n) return fails(title, `${has}: not enough for a payment, send it more`)
  const message = `${has}, for ${countOf(Number(check.payments), 'payment')}`
  return check.payments < FEW ? warns(title, `${message}: send it more`) : ok(title, message)
}

async function checkTempo(
  chain: number,
  { rpcUrls }: PaymentConfig,
  missing: readonly string[],
): Promise<CheckResult[]> {
  if (missing.length > 0) return [warns('Tempo', `not offered before ${areSet(missing)}`)]
  return checkEndpoint('Tempo', chain, rpcUrls[chain] ?? '')
}

async function checkFacilitators(
  x402: NonNullable<Catalog['payments']['x402']>,
  paymentNetworks: AllNetworks,
): Promise<CheckResult[]> {
  const lines: string[] = []
  const take = (line: string): void => void lines.push(line.replace(/^x402: /, ''))
  await paymentNetworks.x402.survey(x402, take)
  await paymentNetworks.svm.survey(x402, take)
  if (lines.length === 0) return [ok('facilitator', 'settles every network that is assigned to it')]
  return lines.map((line) => fails('facilitator', line))
}
