import { stat } from 'node:fs/promises'
import { formatCoin } from '../../engine/chains/evm/gas-balance.ts'
import { eventLoopDelay } from '../event-loop-delay.ts'
import { troubleOf } from '../network-trouble.ts'
import { channelRows, channelsByNetwork } from '../channel-rows.ts'
import { defineView, page } from '../view.ts'
import { bytes, elapsed } from '../wording.ts'

/** Whether what this process depends on works. */
export const health = defineView('health', 'Health', async ({ sources }) => {
  const { ledger, ledgerFile, titles, version } = sources
  const began = performance.now()
  const fault: unknown = await ledger.check().then(
    () => undefined,
    (caught: unknown) => caught,
  )
  const asked = performance.now() - began
  const size = ledgerFile === undefined ? undefined : await stat(ledgerFile).catch(() => undefined)
  const delay = eventLoopDelay()
  const [networks, channels] = await Promise.all([
    sources.networks().catch(() => undefined),
    sources.channels().catch(() => []),
  ])
  return page('Health', {
    ledger: titles.ledger,
    ledgerWorks: fault === undefined,
    ledgerWords:
      fault === undefined
        ? `answers in ${elapsed(asked)}`
        : fault instanceof Error
          ? fault.message
          : 'it does not answer',
    ledgerSize: size === undefined ? '' : bytes(size.size),
    cache: titles.cache,
    delayMedian: `${delay.median.toFixed(1)} ms`,
    delayLongest: `${delay.longest.toFixed(1)} ms`,
    isDelayed: delay.longest > 200,
    memory: bytes(process.memoryUsage.rss()),
    uptime: elapsed(process.uptime() * 1_000),
    version,
    node: process.version,
    channelNetworks: channelsByNetwork(channels, sources.now()),
    channels: channelRows(channels, sources.now()),
    // Losses of all processes are in the ledger.
    unread: networks === undefined,
    networks: (networks ?? [])
      .map((each) => ({ ...each, trouble: troubleOf(each) }))
      .map(({ network, balances, unmined, totals, reverts, gasLost, trouble }) => ({
        title: network.title,
        id: network.id,
        state: trouble === undefined ? 'up' : 'down',
        words: trouble === undefined ? 'open' : 'closed',
        trouble: trouble ?? '',
        queue: unmined.count === 0 ? 'empty' : `${unmined.count}, the oldest ${elapsed(unmined.age)}`,
        transactions: String(totals.transactions),
        reverts: String(reverts),
        lost: `${formatCoin(gasLost)} ${network.coin}`,
        signers: Array.from(balances, ([address, wei]) => ({
          address,
          balance: `${formatCoin(wei)} ${network.coin}`,
        })),
      })),
  })
})
