import type { Refusal } from '../../base/errors.ts'

export const NODE_UNREACHABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the payment network cannot be reached now',
}
