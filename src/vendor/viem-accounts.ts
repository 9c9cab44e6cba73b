export { privateKeyToAccount, privateKeyToAddress, publicKeyToAddress, sign } from 'viem/accounts'
export type { PrivateKeyAccount } from 'viem/accounts'
