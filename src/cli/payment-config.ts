import type { Catalog, OutsideSource } from '../engine/catalog/catalog.ts'
import type { PaymentConfig } from '../engine/app/compose.ts'
import { isLoopback } from '../engine/base/loopback.ts'
import type { SettingNames } from '../engine/payment/setting-names.ts'
import { addressOfKey } from '../engine/chains/evm/signature.ts'
import type { StandIns } from '../engine/service-definition.ts'
import type { Env } from '../env.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Call } from './command.ts'

/** What the settings of payments are called in the environment. */
export const VARIABLES: SettingNames = {
  payTo: 'PAY_TO',
  signerKeys: 'SETTLER_PRIVATE_KEY',
  facilitators: 'FACILITATOR_URL',
  cdpSecret: 'CDP_API_KEY_SECRET',
  mppRecipient: 'MPP_RECIPIENT',
  mppSecretKeys: 'MPP_SECRET_KEY',
  baseUrl: 'BASE_URL',
  rpcUrl: (chainId) => `RPC_URL_${chainId}`,
}

/** Origin for buyers; without the setting, only this machine can reach the service. */
export function baseUrlOf({ baseUrl, port }: Pick<Env, 'baseUrl' | 'port'>): string {
  return baseUrl ?? `http://localhost:${port}`
}

/** Payees and settlement, from the environment or the sandbox. */
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
          `--sandbox is for this machine only, and BASE_URL is ${baseUrl}; unset it or use http://localhost:<port>`,
        ]
      : []),
  ]
}

/** Real money must not go to keys that strangers hold. */
export function playMoneyProblems(
  { payTo, signerKeys, mppRecipient = '' }: Pick<PaymentConfig, 'payTo' | 'signerKeys' | 'mppRecipient'>,
  play: ReadonlySet<string>,
): string[] {
  const payees = Object.entries({ PAY_TO: payTo, MPP_RECIPIENT: mppRecipient })
  const signers = signerKeys.filter((key) => play.has((addressOfKey(key) ?? '').toLowerCase()))
  return [
    ...payees
      .filter(([, address]) => play.has(address.toLowerCase()))
      .map(
        ([variable, address]) =>
          `${variable} ${address} is a sandbox or development address: its key is known to others`,
      ),
    ...(signers.length > 0
      ? ['SETTLER_PRIVATE_KEY is a sandbox or development key: it is known to others']
      : []),
  ]
}
