import { randomBytes } from 'node:crypto'
import { openNetworks } from '../../engine/app/all-networks.ts'
import { VARIABLES } from '../../engine/app/option-names.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import { countOf } from '../../engine/base/words.ts'
import { loadCatalog } from '../../engine/catalog/load-catalog.ts'
import { documentNames } from '../../engine/documents/all.ts'
import type { Call } from '../command.ts'
import { baseUrlOf, paymentConfig } from '../payment-config.ts'
import { withLedger } from './open-ledger.ts'
import { spellAmount } from './payment-row.ts'

/** Claims what all channels owe and has it paid out. Exits 1 when a channel could not be claimed. */
export async function claimPayments(call: Call): Promise<number> {
  const { flags, env, terminal } = call
  const file = flags.text('catalog') ?? env.catalog
  const { catalog } = loadCatalog(file, { documents: documentNames, handlers: undefined })
  const { x402 } = catalog.payments
  if (x402 === undefined) throw new Error(`${file} takes no payments by x402`)
  const config = paymentConfig(env, catalog)
  for (const [name, value] of [
    [VARIABLES.channelKeys, config.channelKeys ?? []],
    [VARIABLES.signerKeys, config.signerKeys],
    [VARIABLES.payTo, config.payTo],
  ] as const)
    if (value.length === 0) throw new Error(`${name} is not set: claims need it, as the server has it`)
  return withLedger(call, async (ledger) => {
    const networks = openNetworks({
      config,
      names: VARIABLES,
      baseUrl: baseUrlOf(env),
      ledger,
      owner: `claim-${randomBytes(6).toString('hex')}`,
      runtime: systemRuntime,
      log: (line) => terminal.err(line),
      report: (fault) => terminal.err(String(fault)),
    })
    const reachable = networks.x402.reachable(x402)
    const rounds = await networks.channels(x402, { offered: [], reachable }).claim('all')
    await networks.mpp.close()
    const rows = rounds.map(({ network, token, channels, claimed, settled, transactions, setAside }) => ({
      network,
      channels,
      claimed: spellAmount(claimed, network, token).amount,
      paid_out: spellAmount(settled, network, token).amount,
      token: spellAmount(settled, network, token).token,
      transactions,
      set_aside: setAside,
    }))
    if (flags.given('json')) terminal.out(JSON.stringify(rows, null, 2))
    else if (rows.length === 0) terminal.out('no network can be claimed on with these settings')
    else
      for (const { network, channels, claimed, paid_out, token, set_aside } of rows)
        terminal.out(
          `${network}: claimed ${claimed} ${token} of ${countOf(channels, 'channel')}, paid out ${paid_out} ${token}` +
            (set_aside === 0 ? '' : `; ${countOf(set_aside, 'channel')} cannot be claimed`),
        )
    return rows.some(({ set_aside }) => set_aside > 0) ? 1 : 0
  })
}
