import { parsePrice, world } from '../engine/internal.ts'
import type { Call } from './command.ts'
import { Steps } from './pay/result.ts'
import { exchange, PROTOCOLS, type PurchaseRequest } from './pay/exchange.ts'
import { sandboxUrl } from './pay/wallet.ts'

export async function pay(call: Call): Promise<number> {
  const order = orderOf(call)
  if (typeof order === 'string') {
    call.terminal.err(`ratecard pay: ${order}`)
    return 64
  }
  const steps = new Steps(call, world.now)
  const bill = await exchange(call.env, order, steps)
  steps.finish(bill)
  return bill.exit
}

function orderOf({ positionals, flags, env }: Call): PurchaseRequest | string {
  const [target] = positionals
  if (target === undefined)
    return 'missing argument: the URL to pay for, or a path of the sandbox on this machine'
  const wanted = flags.text('protocol')
  const protocols = PROTOCOLS.filter(({ name }) => wanted === undefined || wanted === name)
  if (protocols.length === 0) return `--protocol takes ${PROTOCOLS.map(({ name }) => name).join(' or ')}`
  const base = target.startsWith('/')
    ? (sandboxUrl(env.dataDir) ?? env.baseUrl ?? `http://localhost:${env.port}`)
    : undefined
  const url = URL.canParse(target, base) ? new URL(target, base) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return `${target} is neither a URL (http://… or https://…) nor a path (/…)`
  const text = flags.text('max')
  const max = text === undefined ? undefined : parsePrice(text)
  if (max?.kind === 'fault') return '--max takes USD with at most six decimals, such as 0.01'
  return { url, max: max?.value, protocols }
}
