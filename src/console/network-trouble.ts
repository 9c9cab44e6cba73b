import type { NetworkHealth } from '../engine/payment/network-health.ts'

/** Why nothing is sold on a network now, as its operator has to know it. */
export function troubleOf({ trouble, isNodeAway = false }: NetworkHealth): string | undefined {
  return trouble ?? (isNodeAway ? 'its node does not answer' : undefined)
}
