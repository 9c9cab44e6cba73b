export { base58 } from '@scure/base'
