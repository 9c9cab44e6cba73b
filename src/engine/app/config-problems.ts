import { hasSoundChecksum, isAddress, sameAddress } from '../base/address.ts'
import { usesTestNetworks, type Catalog } from '../catalog/catalog.ts'
import type { AllNetworks } from './all-networks.ts'
import type { PaymentConfig } from './options.ts'
import type { PaymentOptions } from './ratecard-options.ts'
import type { SettingNames } from '../payment/setting-names.ts'
import { findSvmNetwork } from '../base/networks.ts'
import { readCdpKey } from '../x402/facilitators/cdp-token.ts'
import { addressOfKey } from '../chains/evm/signature.ts'

/** A sentence for each setting that payments need and that is missing; MPP alone is sufficient. */
export function missingConfig(
  { payments, routes }: Catalog,
  {
    payTo,
    payToSolana = '',
    signerKeys,
    channelKeys = [],
    feePayers = [],
  }: Pick<PaymentConfig, 'payTo' | 'payToSolana' | 'signerKeys' | 'feePayers'> &
    Partial<Pick<PaymentConfig, 'channelKeys'>>,
  networks: AllNetworks,
  names: SettingNames,
): string[] {
  if (!routes.some(({ kind }) => kind === 'paid')) return []
  const { x402, mpp } = payments
  const byMpp = mpp !== undefined && networks.mpp.of(mpp) !== undefined
  if (x402 === undefined) {
    const missing = mpp === undefined || byMpp ? [] : networks.mpp.missing(mpp)
    return missing.map((name) => `${name} is missing, and the catalog offers MPP only`)
  }
  const isEvm = x402.networks.some((id) => findSvmNetwork(id) === undefined)
  const svmNetworks = x402.networks.filter((id) => findSvmNetwork(id) !== undefined).length
  const isSvm = svmNetworks > 0
  const problems =
    (isEvm && payTo === '') || (isSvm && payToSolana === '')
      ? [
          `${names.payTo} is missing: the address that receives the money${isSvm ? ' on each kind of network' : ''} (or payments.pay_to in the catalog)`,
        ]
      : []
  if (x402.schemes.includes('batch-settlement') && channelKeys.length === 0)
    problems.push(
      `${names.channelKeys} is missing: the key that signs claims, for scheme batch-settlement of the catalog`,
    )
  // A facilitator names the account that pays the fees after the start.
  const isOpen = networks.x402.of(x402).length > 0 || svmNetworks > networks.svm.closed(x402).length
  if (byMpp || networks.schemes.length > 0 || isOpen) return problems
  if (isEvm && signerKeys.length === 0)
    problems.push(
      `${names.signerKeys} is missing: the account that pays the gas of settlements (or ${names.facilitators}: a service that settles for you)`,
    )
  if (isSvm && feePayers.length === 0)
    problems.push(
      `${names.feePayers} is missing: the account that pays the fees of settlements on Solana (or ${names.facilitators}: a service that settles for you)`,
    )
  const endpoints = [
    ...networks.x402.closed(x402).flatMap(({ network: { chainId, title }, missing }) => {
      const name = names.rpcUrl(chainId)
      return missing.includes(name) ? [`${name} (${title})`] : []
    }),
    ...networks.svm.closed(x402).flatMap(({ network, missing }) => {
      const name = names.svmRpcUrl(network)
      return missing.includes(name) ? [`${name} (${network.title})`] : []
    }),
  ]
  if (endpoints.length > 0)
    problems.push(`an RPC endpoint is missing; set at least one of ${endpoints.join(', ')}`)
  return problems
}

/** A shop that takes worthless money by mistake gives its work away. */
export function forbiddenNetworks(
  { payments, routes }: Catalog,
  { allowTestNetworks = false }: PaymentOptions,
  names: SettingNames,
): string[] {
  if (allowTestNetworks || !usesTestNetworks(payments) || !routes.some(({ kind }) => kind === 'paid'))
    return []
  return [
    `the catalog sells on test networks, whose money is worthless: name real ones under "payments", or set ${names.allowTestNetworks} to sell for it`,
  ]
}

/** Signers and recipients are those of the start: a reload that names another payee would take effect only in part. */
export function movedPayees(before: Payees, after: Payees): string[] {
  const isSame = sameAddress(before.payTo, after.payTo) && before.payToSolana === after.payToSolana
  if (isSame) return []
  const [old, present] = [before, after].map(({ payTo, payToSolana }) =>
    [payTo, payToSolana].filter((payee) => payee !== '').join(', '),
  )
  return [`payments.pay_to has changed from ${old} to ${present}: restart to be paid there`]
}

/** Who is paid by x402; empty where nobody is named. */
export type Payees = Required<Pick<PaymentConfig, 'payTo' | 'payToSolana'>>

/** A mistyped payee loses every payment, a mistyped key fails every settlement: both show before the first one. */
export function invalidConfig(
  {
    payTo,
    signerKeys,
    channelKeys = [],
    facilitators = [],
    mppRecipient = '',
    receiptKeys = [],
  }: Pick<PaymentConfig, 'payTo' | 'signerKeys' | 'mppRecipient'> &
    Partial<Pick<PaymentConfig, 'facilitators' | 'channelKeys' | 'receiptKeys'>>,
  names: SettingNames,
): string[] {
  return [
    ...mistypedPayee(names.payTo, payTo),
    ...mistypedPayee(names.mppRecipient, mppRecipient),
    ...(signerKeys.some((key) => addressOfKey(key) === undefined)
      ? [`${names.signerKeys} holds a number that is no private key`]
      : []),
    ...(channelKeys.some((key) => addressOfKey(key) === undefined)
      ? [`${names.channelKeys} holds a number that is no private key`]
      : []),
    ...(receiptKeys.some((key) => signerKeys.some((other) => other.toLowerCase() === key.toLowerCase()))
      ? [
          `${names.receiptKeys} is a key of ${names.signerKeys}: receipts need a key of their own, which moves no money`,
        ]
      : []),
    ...(facilitators.some(({ cdp }) => cdp !== undefined && readCdpKey(cdp) === undefined)
      ? [`${names.cdpSecret} must be an API key of CDP: base64 of 64 bytes (Ed25519), or an EC key in PEM`]
      : []),
  ]
}

function mistypedPayee(setting: string, address: string): string[] {
  return [
    ...(/^0x0{40}$/.test(address) ? [`${setting} is the zero address: nobody could ever use the money`] : []),
    ...(isAddress(address) && !hasSoundChecksum(address)
      ? [`${setting} ${address} fails its EIP-55 checksum: look for a wrong digit`]
      : []),
  ]
}
