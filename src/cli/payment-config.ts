import { readPayments, type PaymentConfig } from '../engine/app/options.ts'
import type { PaymentOptions, RatecardOptions } from '../engine/app/ratecard-options.ts'
import { VARIABLES } from '../engine/app/option-names.ts'
import { USUAL_CHANNELS, type Catalog, type OutsideSource } from '../engine/catalog/catalog.ts'
import { isLoopback } from '../engine/base/loopback.ts'
import { findSvmNetwork } from '../engine/base/networks.ts'
import { addressOfKey } from '../engine/chains/evm/signature.ts'
import type { StandIns } from '../engine/service-definition.ts'
import type { Env } from '../env.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

/** Origin for buyers; without the setting, only this machine can reach the service. */
export function baseUrlOf({ baseUrl, port }: Pick<Env, 'baseUrl' | 'port'>): string {
  return baseUrl ?? `http://localhost:${port}`
}

/** The options of `createRatecard` that are in the environment. */
export function optionsOf(env: Env): Omit<RatecardOptions, 'catalog' | 'handlers'> {
  return {
    baseUrl: baseUrlOf(env),
    payments: paymentOptions(env),
    dataDir: env.dataDir,
    ledger: env.redisUrl,
    ledgerUnsafe: env.ledgerUnsafe,
    ledgerReplicas: env.ledgerReplicas,
    cache: env.cacheRedisUrl ?? env.redisUrl,
    secrets: env.secret,
    mcpUrls: env.mcpUrls,
    trustProxy: env.trustProxy,
  }
}

function paymentOptions(env: Env): PaymentOptions {
  const rpcUrls = byNetwork(env.rpcUrls)
  return {
    allowTestNetworks: env.allowTestNetworks,
    receiptKeys: env.receiptKeys,
    x402: {
      payTo: [env.payTo, env.payToSolana].filter((payee) => payee !== undefined),
      signerKeys: env.signerKeys,
      feePayerKeys: env.feePayerKeys,
      channelKeys: env.channelKeys,
      facilitators: env.facilitators,
      rpcUrls: { ...rpcUrls, ...env.svmRpcUrls },
    },
    mpp: { recipient: env.mppRecipient, secretKeys: env.mppSecretKeys, rpcUrls },
  }
}

/** Payments on the chains of a sandbox. */
export function sandboxPayments(
  { evm, tempo, svm }: Sandbox,
  { receiptKeys }: Pick<Env, 'receiptKeys'>,
): PaymentOptions {
  return {
    receiptKeys,
    x402: {
      payTo: [evm.payTo, ...(svm === undefined ? [] : [svm.payTo])],
      signerKeys: [evm.signerKey],
      feePayerKeys: svm && [svm.feePayerKey],
      channelKeys: [evm.signerKey],
      rpcUrls: { ...byNetwork({ [evm.chainId]: evm.rpcUrl }), ...(svm && { [svm.network]: svm.rpcUrl }) },
    },
    mpp: {
      recipient: tempo.recipient,
      secretKeys: [tempo.secretKey],
      rpcUrls: byNetwork({ [tempo.chainId]: tempo.rpcUrl }),
    },
  }
}

function byNetwork(byChain: Readonly<Record<number, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(byChain).map(([chain, url]) => [`eip155:${chain}`, url]))
}

/** Payees and settlement of a catalog, from the environment. */
export function paymentConfig(env: Env, catalog: Catalog): PaymentConfig {
  const config = readPayments({ ...optionsOf(env), catalog: env.catalog }, VARIABLES)
  const { payTo = '', payToSolana = '' } = catalog.payments
  return { ...config, payTo: config.payTo || payTo, payToSolana: config.payToSolana || payToSolana }
}

/** The sandbox takes the place of the catalog's payments: play money only, on its own chains. */
export function inSandbox(catalog: Catalog, { evm, tempo, svm }: Sandbox): Catalog {
  const x402 = {
    timeout: catalog.payments.x402?.timeout ?? 60_000,
    networks: [`eip155:${evm.chainId}`, ...(svm !== undefined && namesSolana(catalog) ? [svm.network] : [])],
    schemes: catalog.payments.x402?.schemes ?? ['exact'],
    channels: catalog.payments.x402?.channels ?? USUAL_CHANNELS,
    v1: catalog.payments.x402?.v1 ?? true,
    limits: {},
    testnet: false,
  }
  const mpp = {
    method: 'tempo',
    intent: 'charge',
    chain: tempo.chainId,
    currency: tempo.currency,
    testnet: false,
  }
  return {
    ...catalog,
    payments: { ...catalog.payments, payTo: evm.payTo, payToSolana: svm?.payTo, x402, mpp },
  }
}

/** Whether a catalog is paid on Solana, be it the real one or a test network. */
export function namesSolana({ payments }: Catalog): boolean {
  return payments.x402?.networks.some((id) => findSvmNetwork(id) !== undefined) ?? false
}

/** A stand-in needs no credentials: operations with its source are served without them. */
export function withStandIns(catalog: Catalog, { sources: standIns }: StandIns): Catalog {
  const sources: Record<string, OutsideSource> = { ...catalog.sources }
  for (const [name, source] of Object.entries(sources))
    if (standIns.includes(name)) sources[name] = { ...source, credentials: [] }
  return { ...catalog, sources }
}

/** Why a sandbox must not start here: its keys are known to everyone who can read the disk. */
export function sandboxProblems({ production, baseUrl }: Env): string[] {
  return [
    ...(production ? ['--sandbox uses play money and is refused with NODE_ENV=production'] : []),
    ...(baseUrl !== undefined && !isLoopback(baseUrl)
      ? [
          `--sandbox is for this machine only, and ${VARIABLES.baseUrl} is ${baseUrl}; unset it or use http://localhost:<port>`,
        ]
      : []),
  ]
}

/** Real money must not go to keys that strangers hold. */
export function playMoneyProblems(
  { payTo, signerKeys, mppRecipient = '' }: Pick<PaymentConfig, 'payTo' | 'signerKeys' | 'mppRecipient'>,
  play: ReadonlySet<string>,
): string[] {
  const payees = Object.entries({ [VARIABLES.payTo]: payTo, [VARIABLES.mppRecipient]: mppRecipient })
  const signers = signerKeys.filter((key) => play.has((addressOfKey(key) ?? '').toLowerCase()))
  return [
    ...payees
      .filter(([, address]) => play.has(address.toLowerCase()))
      .map(
        ([variable, address]) =>
          `${variable} ${address} is a sandbox or development address: its key is known to others`,
      ),
    ...(signers.length > 0
      ? [`${VARIABLES.signerKeys} is a sandbox or development key: it is known to others`]
      : []),
  ]
}
