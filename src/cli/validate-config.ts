import { addressOfKey, isLoopback, type PaymentConfig } from '../engine/internal.ts'
import type { Env } from '../env.ts'

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
