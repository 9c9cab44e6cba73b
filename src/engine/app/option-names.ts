import { NETWORKS } from '../base/networks.ts'
import type { SettingNames } from '../payment/setting-names.ts'
import { SETTINGS } from '../../settings.ts'

const { payTo, signerKeys, facilitators, cdpKeySecret, mppRecipient, mppSecretKeys, mppRpcUrls } = SETTINGS
const { receiptKeys } = SETTINGS
const { channelKeys, feePayerKeys } = SETTINGS
const { baseUrl, ledger, cache, dataDir, rpcUrls, allowTestNetworks } = SETTINGS

/** The names of settings in messages. */
export interface OptionNames extends SettingNames {
  readonly ledger: string
  readonly cache: string
  readonly dataDir: string
}

/** What settings are called in the environment. */
export const VARIABLES: OptionNames = {
  payTo: payTo.variable,
  signerKeys: signerKeys.variable,
  channelKeys: channelKeys.variable,
  facilitators: facilitators.variable,
  cdpSecret: cdpKeySecret.variable,
  mppRecipient: mppRecipient.variable,
  mppSecretKeys: mppSecretKeys.variable,
  receiptKeys: receiptKeys.variable,
  baseUrl: baseUrl.variable,
  allowTestNetworks: `${allowTestNetworks.variable}=1`,
  ledger: ledger.variable,
  cache: cache.variable,
  dataDir: dataDir.variable,
  rpcUrl: (chainId) => rpcUrls.variable.replace(/\d+$/, String(chainId)),
  feePayers: feePayerKeys.variable,
  svmRpcUrl: ({ nickname }) => rpcUrls.variable.replace(/\d+$/, nickname.toUpperCase().replaceAll('-', '_')),
}

/** What settings are called in the options of `createRatecard`. */
export const OPTIONS: OptionNames = {
  payTo: payTo.option,
  signerKeys: signerKeys.option,
  channelKeys: channelKeys.option,
  facilitators: facilitators.option,
  cdpSecret: `${facilitators.option}.cdp.keySecret`,
  mppRecipient: mppRecipient.option,
  mppSecretKeys: mppSecretKeys.option,
  receiptKeys: receiptKeys.option,
  baseUrl: baseUrl.option,
  allowTestNetworks: `${allowTestNetworks.option}: true`,
  ledger: ledger.option,
  cache: cache.option,
  dataDir: dataDir.option,
  feePayers: feePayerKeys.option,
  svmRpcUrl: ({ nickname }) => `${rpcUrls.option}['${nickname}']`,
  rpcUrl: (chainId) => {
    const network = NETWORKS.find((each) => each.chainId === chainId)
    return network === undefined
      ? `${mppRpcUrls.option}['eip155:${chainId}']`
      : `${rpcUrls.option}['${network.nickname}']`
  },
}
