import { addressOfKey, hasSoundChecksum, isAddress, isLoopback, type Catalog } from '../engine/index.ts'
import type { Env } from '../env.ts'
import type { AllNetworks, SettlementConfig } from './compose.ts'

const TRY_SANDBOX = 'to try it without any of this: npm run sandbox'

/** Why a sandbox must not start here: its keys are known to everyone who can read the disk. */
export function sandboxProblems({ production, baseUrl }: Env): string[] {
  return [
    ...(production ? ['--sandbox takes play money and is refused with NODE_ENV=production'] : []),
    ...(baseUrl !== undefined && !isLoopback(baseUrl)
      ? [
          `--sandbox is for this machine only, and BASE_URL is ${baseUrl}; unset it or use http://localhost:<port>`,
        ]
      : []),
  ]
}

/** Stand-ins invent their answers: nobody may be charged real money for them. */
export function offlineProblems({ offline }: { readonly offline: boolean }): string[] {
  return offline ? ['--offline answers with invented data and goes with --sandbox only'] : []
}

/** Everything without which no payment can be taken, each by the name of the variable to set; MPP alone will do. */
export function missingConfig(
  { payments, routes }: Catalog,
  { payTo, signerKeys }: Pick<SettlementConfig, 'payTo' | 'signerKeys'>,
  tills: AllNetworks,
): string[] {
  if (!routes.some(({ kind }) => kind === 'paid')) return []
  const { x402, mpp } = payments
  const byMpp = mpp !== undefined && tills.mpp.of(mpp) !== undefined
  if (x402 === undefined) {
    const missing = mpp === undefined ? [] : tills.mpp.missing(mpp)
    return byMpp
      ? []
      : [...missing.map((name) => `${name} is missing, and the catalog offers MPP only`), TRY_SANDBOX]
  }
  const problems =
    payTo === ''
      ? ['PAY_TO is missing: the address that receives the money (or payments.pay_to in the catalog)']
      : []
  if (!byMpp && tills.x402.of(x402).length === 0) {
    if (signerKeys.length === 0)
      problems.push(
        'SETTLER_PRIVATE_KEY is missing: the account that pays the gas of settlements (or FACILITATOR_URL: a service that settles for you)',
      )
    const endpoints = tills.x402
      .closed(x402)
      .flatMap(({ network, missing }) =>
        missing.filter((name) => name.startsWith('RPC_URL_')).map((name) => `${name} (${network.title})`),
      )
    if (endpoints.length > 0)
      problems.push(`an RPC endpoint is missing; set at least one of ${endpoints.join(', ')}`)
  }
  return problems.length === 0 ? [] : [...problems, TRY_SANDBOX]
}

/** Signers and recipients are those of the start: a reload that names another payee would be obeyed only in part. */
export function movedPayee(
  before: Pick<SettlementConfig, 'payTo'>,
  after: Pick<SettlementConfig, 'payTo'>,
): string[] {
  if (before.payTo.toLowerCase() === after.payTo.toLowerCase()) return []
  return [`payments.pay_to has changed from ${before.payTo} to ${after.payTo}: restart to be paid there`]
}

/** A mistyped payee loses every payment, a mistyped key fails every settlement: both show before the first one. */
export function invalidConfig({
  payTo,
  signerKeys,
  mppRecipient = '',
}: Pick<SettlementConfig, 'payTo' | 'signerKeys' | 'mppRecipient'>): string[] {
  return [
    ...mistypedPayee('PAY_TO', payTo),
    ...mistypedPayee('MPP_RECIPIENT', mppRecipient),
    ...(signerKeys.some((key) => addressOfKey(key) === undefined)
      ? ['SETTLER_PRIVATE_KEY holds a number that is no private key']
      : []),
  ]
}

function mistypedPayee(variable: string, address: string): string[] {
  return [
    ...(/^0x0{40}$/.test(address)
      ? [`${variable} is the zero address: nobody could ever use the money`]
      : []),
    ...(isAddress(address) && !hasSoundChecksum(address)
      ? [`${variable} ${address} fails its EIP-55 checksum: look for a wrong digit`]
      : []),
  ]
}

/** Real money must not go to keys that strangers hold. */
export function playMoneyProblems(
  { payTo, signerKeys, mppRecipient = '' }: Pick<SettlementConfig, 'payTo' | 'signerKeys' | 'mppRecipient'>,
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
