import { join } from 'node:path'
import { clean } from '../command-line/printable.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { formatShort, toMicros } from '../engine/base/money.ts'
import { countOf } from '../engine/base/words.ts'
import type { BuyerCall } from './buyer-command.ts'
import type { BuyerRuntime } from './buyer-runtime.ts'
import { amountOf, protocolsOf } from './flags.ts'
import type { DepositRule } from './channels/channels.ts'
import { Budget } from './mcp/budget.ts'
import { listTools } from './mcp/remote-tools.ts'
import { Turns } from './mcp/turns.ts'
import { PROTOCOLS } from './protocols/all.ts'
import { x402By } from './protocols/x402.ts'
import { addressOf, channelsOf, findWallet, KEY_VARIABLES, nameAt } from './wallet.ts'

/** 0.05 USD: above this, a person is asked where the client can ask. */
const ASK_ABOVE = toMicros(50_000n)

/** Preferred where a deposit fits into the budget. */
const THROUGH_CHANNELS = x402By(['batch-settlement'])

/** Deposits what the shop asks for, while everything that is spent or lies in channels stays within the budget. */
function depositWithin(budget: Budget): DepositRule {
  return ({ least, unspent }) =>
    budget.used().used + unspent + least > budget.max
      ? {
          kind: 'refused',
          reason: `the channel needs a deposit of ${formatShort(toMicros(least))} USD, which is more than --max leaves`,
        }
      : { kind: 'deposit', amount: least }
}

/** Serves the tools of a remote shop over standard input and output, and pays for them. Logs go to standard error. */
export async function mcp(call: BuyerCall, runtime: BuyerRuntime): Promise<number> {
  const { positionals, env, flags, terminal, version } = call
  const [target = ''] = positionals
  const shop = URL.canParse(target) ? new URL(target) : undefined
  if (shop === undefined || !/^https?:$/.test(shop.protocol))
    throw new UsageError(`"${target}" is not the URL of a service: http://… or https://…`)
  const [maxPerCall, max] = [amountOf(flags, 'max-per-call'), amountOf(flags, 'max')]
  if (maxPerCall === undefined || max === undefined)
    throw new UsageError('--max-per-call and --max are required: USD, such as 0.05 and 5')
  const given = amountOf(flags, 'ask-above')
  const asking = {
    above: given ?? ASK_ABOVE,
    // Who has named a limit wants to be asked.
    ifUnable: given === undefined ? 'pay' : 'refuse',
  } as const
  const protocols = protocolsOf(flags, [THROUGH_CHANNELS, ...PROTOCOLS])
  const wallet = findWallet(shop, env)
  const addresses = { evm: wallet && addressOf(wallet, 'evm'), svm: wallet && addressOf(wallet, 'svm') }
  const address = addresses.evm ?? addresses.svm
  if (wallet === undefined || address === undefined)
    throw new Error(
      `no wallet: set ${KEY_VARIABLES.evm} to the private key of the account that pays, or ${KEY_VARIABLES.svm} for Solana`,
    )
  const stateDir = flags.text('data-dir') ?? env.stateDir
  const file = join(stateDir, 'spending', `${nameAt(shop, address)}.json`)
  const budget = new Budget({ file, max, runtime })
  const log = (line: string): void => terminal.err(clean(line))
  const tools = await listTools(shop)
  const spent = `${formatShort(budget.used().used)} of ${formatShort(max)} USD are spent`
  const payers = [addresses.evm, addresses.svm].filter((each) => each !== undefined)
  log(`${countOf(tools.size, 'tool')} of ${shop.host}; ${payers.join(' or ')} pays, ${spent}`)
  const { serveBridge } = await import('./mcp/bridge.ts')
  const rule = depositWithin(budget)
  const channels = channelsOf(wallet, { shop, stateDir, rule }, runtime)
  const buyer = {
    wallet,
    channels,
    addresses,
    protocols,
    budget,
    turns: new Turns(),
    maxPerCall,
    asking,
    log,
    runtime,
  }
  await serveBridge({ shop, buyer, version, tools })
  return 0
}
