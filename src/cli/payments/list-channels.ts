import { listChannelBalances } from '../../engine/x402/batch-settlement-evm/channel-balances.ts'
import { countOf } from '../../engine/base/words.ts'
import type { Call } from '../command.ts'
import { tableFor } from '../terminal-text.ts'
import { withLedger } from './open-ledger.ts'
import { isoTime, spellAmount } from './payment-row.ts'

const HEADS = ['CHANNEL', 'NETWORK', 'PAYER', 'DEPOSITED', 'CHARGED', 'UNCLAIMED', 'SINCE', 'STATE']
const SHORT = ['PAYER', 'UNCLAIMED', 'STATE']

/** Lists channels, those with the most unclaimed money first. */
export async function listChannels({ flags, terminal, ...rest }: Call): Promise<number> {
  return withLedger({ flags, terminal, ...rest }, async (ledger) => {
    const rows = (await listChannelBalances(ledger))
      .toSorted((one, other) => Number(other.unclaimed - one.unclaimed))
      .map(({ network, id, payer, token, deposited, charged, claimed, unclaimed, ...each }) => ({
        channel: id,
        network,
        payer,
        token: spellAmount(unclaimed, network, token).token,
        deposited: spellAmount(deposited, network, token).amount,
        charged: spellAmount(charged, network, token).amount,
        claimed: spellAmount(claimed, network, token).amount,
        unclaimed: spellAmount(unclaimed, network, token).amount,
        unclaimed_since: each.unclaimedSince === undefined ? null : isoTime(each.unclaimedSince),
        state: each.setAside ?? (each.withdrawal !== undefined ? 'withdrawing' : 'open'),
      }))
    if (flags.given('json')) terminal.out(JSON.stringify(rows, null, 2))
    else if (rows.length === 0) terminal.err('no channels')
    else {
      const cells = rows.map((row) => [
        row.channel,
        row.network,
        row.payer,
        row.deposited,
        row.charged,
        row.unclaimed,
        row.unclaimed_since ?? '-',
        row.state,
      ])
      terminal.out(tableFor(terminal, { heads: HEADS, short: SHORT, rows: cells }))
      const owing = rows.filter(({ unclaimed }) => Number(unclaimed) > 0)
      const sum = owing.reduce((all, { unclaimed }) => all + Number(unclaimed), 0)
      terminal.out(`\n${countOf(rows.length, 'channel')}; ${owing.length} owe ${sum.toFixed(6)} in all`)
    }
    return 0
  })
}
