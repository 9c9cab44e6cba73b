import {
  addressOfKey,
  askChainId,
  checkNetwork,
  FEW,
  findNetwork,
  formatCoin,
  isLoopback,
  type Catalog,
  type NetworkCheck,
  type Network,
  world,
  type AllNetworks,
  type PaymentConfig,
} from '../../engine/internal.ts'
import { fails, warns, ok, type Verdict } from './verdict.ts'

/** Asks every node and every facilitator what settling depends on. */
export async function judgeChains(
  { payments: { x402, mpp } }: Catalog,
  config: PaymentConfig,
  tills: AllNetworks,
): Promise<Verdict[]> {
  const networks = (x402?.networks ?? []).flatMap((id) => findNetwork(id) ?? [])
  const told = await Promise.all([
    ...networks.map((network) => judgeNetwork(network, config)),
    ...(mpp === undefined ? [] : [judgeTempo(mpp.chain, config, tills.mpp.missing(mpp))]),
    ...(x402 === undefined || config.facilitators.length === 0 ? [] : [judgeFacilitators(x402, tills)]),
  ])
  const cautions = x402 === undefined ? [] : tills.x402.cautions(x402)
  return [...told.flat(), ...cautions.map((caution) => warns('facilitator', caution))]
}

async function judgeNetwork(
  network: Network,
  { rpcUrls, signerKeys, facilitators }: PaymentConfig,
): Promise<Verdict[]> {
  const { chainId, title } = network
  const url = rpcUrls[chainId]
  const signers = signerKeys.flatMap((key) => addressOfKey(key) ?? [])
  if (url === undefined) {
    const missing = [`RPC_URL_${chainId}`, ...(signers.length === 0 ? ['SETTLER_PRIVATE_KEY'] : [])]
    return facilitators.length > 0
      ? []
      : [warns(title, `not offered before ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} set`)]
  }
  const wrong = await judgeEndpoint(title, chainId, url)
  if (wrong.some(({ level }) => level === 'fails')) return wrong
  const { token, gas } = await checkNetwork(network, url, signers, world.caller)
  return [...wrong, judgeToken(network, token), ...gas.map((each) => judgeGas(network, each))]
}

async function judgeEndpoint(title: string, chainId: number, url: string): Promise<Verdict[]> {
  const variable = `RPC_URL_${chainId}`
  const found = await askChainId(url, world.caller)
  if (found === undefined) return [fails(title, `${variable} does not answer`)]
  if (found !== BigInt(chainId)) return [fails(title, `${variable} leads to chain ${found}`)]
  const isOpen = url.startsWith('http://') && !isLoopback(url)
  return [
    ok(title, `${variable} answers as chain ${chainId}`),
    ...(isOpen
      ? [warns(title, `${variable} is asked without TLS: anyone on the network path can invent settlements`)]
      : []),
  ]
}

function judgeToken(
  { title, token: { symbol, name, version } }: Network,
  check: NetworkCheck['token'],
): Verdict {
  switch (check.kind) {
    case 'agrees':
      return ok(title, `${symbol} signs as ${name} version ${version}`)
    case 'differs':
      return fails(title, check.detail)
    case 'unreachable':
      return fails(title, 'the token could not be asked for its domain')
  }
}

function judgeGas(
  { title, coin, chainId }: Network,
  { signer, check }: NetworkCheck['gas'][number],
): Verdict {
  if (check.kind !== 'known')
    return fails(title, `RPC_URL_${chainId} does not return the balance of ${signer}`)
  const has = `signer ${signer} has ${formatCoin(check.balance)} ${coin}`
  if (check.payments === 0n) return fails(title, `${has}: not enough for a payment, send it more`)
  const says = `${has}, for ${check.payments} payments`
  return check.payments < FEW ? warns(title, `${says}: send it more`) : ok(title, says)
}

async function judgeTempo(
  chain: number,
  { rpcUrls }: PaymentConfig,
  missing: readonly string[],
): Promise<Verdict[]> {
  if (missing.length > 0)
    return [
      warns('Tempo', `not offered before ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} set`),
    ]
  return judgeEndpoint('Tempo', chain, rpcUrls[chain] ?? '')
}

async function judgeFacilitators(
  x402: NonNullable<Catalog['payments']['x402']>,
  tills: AllNetworks,
): Promise<Verdict[]> {
  const lines: string[] = []
  await tills.x402.survey(x402, (line) => lines.push(line.replace(/^x402: /, '')))
  if (lines.length === 0) return [ok('facilitator', 'settles every network that is left to it')]
  return lines.map((line) => fails('facilitator', line))
}
