import type { Catalog, OutsideSource, PaymentConfig, SettingNames, StandIns } from '../engine/internal.ts'
import type { Env } from '../env.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Call } from './command.ts'

/** What the settings of payments are called in the environment. */
export const VARIABLES: SettingNames = {
  payTo: 'PAY_TO',
  signerKeys: 'SETTLER_PRIVATE_KEY',
  facilitators: 'FACILITATOR_URL',
  mppRecipient: 'MPP_RECIPIENT',
  mppSecretKeys: 'MPP_SECRET_KEY',
  baseUrl: 'BASE_URL',
  rpcUrl: (chainId) => `RPC_URL_${chainId}`,
}

/** Where buyers reach this service; unless that is set, only this machine does. */
export function baseUrlOf({ baseUrl, port }: Pick<Env, 'baseUrl' | 'port'>): string {
  return baseUrl ?? `http://localhost:${port}`
}

/** Who is paid and who settles, from the environment or the sandbox. */
export function paymentConfig({ env }: Call, catalog: Catalog, sandbox: Sandbox | undefined): PaymentConfig {
  if (sandbox !== undefined) {
    const { evm, tempo } = sandbox
    return {
      payTo: evm.payTo,
      rpcUrls: { [evm.chainId]: evm.rpcUrl, [tempo.chainId]: tempo.rpcUrl },
      signerKeys: [evm.settlerKey],
      mppRecipient: tempo.recipient,
      mppSecretKeys: [tempo.secretKey],
      facilitators: [],
    }
  }
  return {
    payTo: env.payTo ?? catalog.payments.payTo ?? '',
    rpcUrls: env.rpcUrls,
    signerKeys: env.settlerKeys,
    mppRecipient: env.mppRecipient,
    mppSecretKeys: env.mppSecretKeys,
    facilitators: env.facilitators,
  }
}

/** The sandbox takes the place of the catalog's payments: play money only, on its own chains. */
export function inSandbox(catalog: Catalog, { evm, tempo }: Sandbox): Catalog {
  const x402 = {
    timeout: catalog.payments.x402?.timeout ?? 60_000,
    networks: [`eip155:${evm.chainId}`],
    limits: {},
  }
  const mpp = { method: 'tempo', intent: 'charge', chain: tempo.chainId, currency: tempo.currency }
  return { ...catalog, payments: { ...catalog.payments, payTo: evm.payTo, x402, mpp } }
}

/** A stand-in wants no credentials of the operator: what needs its source is served without them. */
export function withStandIns(catalog: Catalog, { sources: standIns }: StandIns): Catalog {
  const sources: Record<string, OutsideSource> = { ...catalog.sources }
  for (const [name, source] of Object.entries(sources))
    if (standIns.includes(name)) sources[name] = { ...source, credentials: [] }
  return { ...catalog, sources }
}
