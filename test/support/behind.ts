import { askNode, type StandIn } from './node-proxy.ts'

/**
 * A node that has not got further than one block, in the place of one that has: for `methods`, as when one address leads
 * to several nodes.
 */
export function behind(node: string, block: number, methods: readonly string[]): StandIn {
  const at = `0x${block.toString(16)}`
  const isAhead = (name: unknown): boolean =>
    typeof name === 'string' && name.startsWith('0x') && Number(name) > block
  const inTime = (name: unknown): unknown => (name === 'latest' || name === 'pending' ? at : name)
  return async (method, params) => {
    if (!methods.includes(method)) return undefined
    const [first, second] = params
    switch (method) {
      case 'eth_blockNumber':
        return { result: at }
      case 'eth_getBlockByNumber':
        return isAhead(first) ? { result: null } : askNode(node, method, [inTime(first), second])
      case 'eth_call':
      case 'eth_getTransactionCount':
        return isAhead(second)
          ? { error: { code: -32000, message: 'header not found' } }
          : askNode(node, method, [first, inTime(second)])
      case 'eth_getTransactionReceipt': {
        const answer = await askNode(node, method, params)
        return isAhead(answer.result?.['blockNumber']) ? { result: null } : answer
      }
      case 'eth_getLogs': {
        const filter = first as { fromBlock: string; toBlock: string }
        if (isAhead(filter.fromBlock)) return { result: [] }
        return askNode(node, method, [{ ...filter, toBlock: isAhead(filter.toBlock) ? at : filter.toBlock }])
      }
      default:
        return undefined
    }
  }
}
