/** What the operator's settings are called: variables of the command, options of a program. */
export interface SettingNames {
  readonly payTo: string
  readonly signerKeys: string
  readonly facilitators: string
  readonly cdpSecret: string
  readonly mppRecipient: string
  readonly mppSecretKeys: string
  readonly baseUrl: string
  /** With the value that allows them. */
  readonly allowTestNetworks: string
  readonly rpcUrl: (chainId: number) => string
}
