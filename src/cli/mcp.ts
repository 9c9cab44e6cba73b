import { join } from 'node:path'
import { addressOfKey, type Micros, parsePrice } from '../engine/internal.ts'
import { type Call, UsageError } from './command.ts'
import { Budget } from './mcp/budget.ts'
import { listTools } from './mcp/remote.ts'
import { PROTOCOLS } from './pay/exchange.ts'
import { findWallet } from './pay/wallet.ts'
import { clean } from './terminal-text.ts'

/** Serves the tools of a remote shop over standard input and output, and pays for them. Logs go to standard error. */
export async function mcp(call: Call): Promise<number> {
  const { positionals, env, flags, terminal, version } = call
  const [target = ''] = positionals
  const shop = URL.canParse(target) ? new URL(target) : undefined
  if (shop === undefined || !/^https?:$/.test(shop.protocol))
    throw new UsageError(`"${target}" is not the URL of a service: http://… or https://…`)
  const [maxPerCall, max] = [amountOf(call, 'max-per-call'), amountOf(call, 'max')]
  if (maxPerCall === undefined || max === undefined)
    throw new UsageError('--max-per-call and --max are required: USD, such as 0.05 and 5')
  const askAbove = amountOf(call, 'ask-above')
  const wanted = flags.text('protocol')
  const protocols = PROTOCOLS.filter((each) => wanted === undefined || wanted === each.name)
  if (protocols.length === 0) throw new UsageError('--protocol takes x402 or mpp')
  const wallet = findWallet(shop, env)
  const address = wallet && addressOfKey(wallet.keys.x402)
  if (wallet === undefined || address === undefined)
    throw new Error('no wallet: set PAYER_PRIVATE_KEY to the private key of the account that pays')
  const name = `${shop.host}-${address}.json`.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '_')
  const budget = new Budget(join(flags.text('data-dir') ?? env.stateDir, 'spending', name), max)
  const log = (line: string): void => terminal.err(clean(line))
  const tools = await listTools(shop)
  const { used } = budget.used()
  log(`${tools.size} tools of ${shop.host}; ${address} pays, ${used} of ${max} micro-dollars are spent`)
  const { serveProxy } = await import('./mcp/server.ts')
  const buyer = { wallet, address, protocols, budget, maxPerCall, askAbove, log }
  await serveProxy({ shop, buyer, version, tools })
  return 0
}

function amountOf({ flags }: Call, flag: string): Micros | undefined {
  const text = flags.text(flag)
  const price = text === undefined ? undefined : parsePrice(text)
  if (price?.kind === 'fault')
    throw new UsageError(`--${flag} takes USD with at most six decimals, such as 0.05; not "${text}"`)
  return price?.value
}
