export { verifyHash } from 'viem/actions'
