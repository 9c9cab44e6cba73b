export { tempo } from 'viem/tempo/chains'
