export { Abis, TokenId, Transaction } from 'viem/tempo'
