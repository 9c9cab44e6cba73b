/** What the operator's settings are called: variables of the command, options of a program. */
export interface SettingNames {
  readonly payTo: string
  readonly signerKeys: string
  readonly channelKeys: string
  readonly facilitators: string
  readonly cdpSecret: string
  readonly mppRecipient: string
  readonly mppSecretKeys: string
  readonly receiptKeys: string
  readonly baseUrl: string
  /** Name of the setting, with the value that allows test networks. */
  readonly allowTestNetworks: string
  readonly rpcUrl: (chainId: number) => string
  readonly feePayers: string
  readonly svmRpcUrl: (network: { readonly nickname: string }) => string
}
