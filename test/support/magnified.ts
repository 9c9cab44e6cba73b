import { askNode, type StandIn } from './node-proxy.ts'

/** Blocks the chain seems to have for each it has, two seconds apart. */
export const MAGNIFIED = 100
export const SECONDS_PER_BLOCK = 2 * MAGNIFIED

/** A chain of thousands of blocks out of one of dozens, which takes no hour to mine: the blocks between are empty. */
export function magnified(node: string): StandIn {
  const up = (name: unknown): string => `0x${(Number(name) * MAGNIFIED).toString(16)}`
  const down = (name: unknown): string => `0x${Math.floor(Number(name) / MAGNIFIED).toString(16)}`
  const isNumber = (name: unknown): boolean => typeof name === 'string' && name.startsWith('0x')
  return async (method, params) => {
    const [first, second] = params
    switch (method) {
      case 'eth_blockNumber':
        return { result: up((await askNode(node, method, params)).result) }
      case 'eth_getBlockByNumber': {
        const { result } = await askNode(node, method, [isNumber(first) ? down(first) : first, second])
        const between = isNumber(first) ? Number(first) % MAGNIFIED : 0
        return {
          result: {
            ...result,
            number: isNumber(first) ? first : up(result?.['number']),
            timestamp: `0x${(Number(result?.['timestamp']) + between * 2).toString(16)}`,
          },
        }
      }
      case 'eth_call':
      case 'eth_getTransactionCount':
        return askNode(node, method, [first, isNumber(second) ? down(second) : second])
      case 'eth_getTransactionReceipt': {
        const { result } = await askNode(node, method, params)
        return { result: result && { ...result, blockNumber: up(result['blockNumber']) } }
      }
      case 'eth_getLogs': {
        const filter = first as { fromBlock: string; toBlock: string }
        const from = Math.ceil(Number(filter.fromBlock) / MAGNIFIED)
        const to = Math.floor(Number(filter.toBlock) / MAGNIFIED)
        if (from > to) return { result: [] }
        const span = { fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}` }
        return askNode(node, method, [{ ...filter, ...span }])
      }
      default:
        return undefined
    }
  }
}
