// Paid calls: every payment signed beforehand, 32 at once, each seller on a chain of its own, in turn and in rounds.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { challengeOf, sign } from '../support/payment.ts'
import { median, printTable, show } from './figures.mjs'
import { openMarket } from './market.mjs'
import { SELLERS } from './sellers.mjs'
import { memory, processorSeconds } from './usage.mjs'

const WALLETS = 32

/** Resolves to one row a seller: medians over the rounds. `calls`: payments a round. */
export async function measurePaid({ paidRounds, calls }) {
  const generator = fork(fileURLToPath(new URL('load.mjs', import.meta.url)), { execArgv: [] })
  const candidates = []
  try {
    for (const seller of SELLERS) {
      const market = await openMarket(seller)
      candidates.push({ market, runs: [], sold: 0 })
      await market.start({ rpcUrl: market.chain.rpcUrl })
    }
    for (const candidate of candidates) {
      candidate.wallets = []
      while (candidate.wallets.length < WALLETS) candidate.wallets.push(await candidate.market.wallet())
      // Not counted: the compiler is at work.
      await pay(generator, candidate, calls)
    }
    for (let round = 0; round < paidRounds; round += 1)
      for (const candidate of candidates) candidate.runs.push(await pay(generator, candidate, calls))
    return await Promise.all(candidates.map(summarise))
  } finally {
    generator.kill()
    for (const { market } of candidates) await market.close()
  }
}

/** Different arguments each time: whoever asks twice for the same may be answered from the first. */
async function pay(generator, candidate, calls) {
  const { market, wallets } = candidate
  const challenge = await challengeOf(market.url('/paid/answer'))
  const payments = []
  while (payments.length < calls)
    payments.push((await sign(challenge, wallets[payments.length % WALLETS])).header)
  const paths = payments.map((_, index) => `/paid/answer?n=${candidate.sold + index + 1}`)
  candidate.sold += calls
  const { pid, port } = market
  const busy = [processorSeconds(pid), processorSeconds(market.chain.pid)]
  generator.send({ port, paths, payments, status: 200 })
  const [{ seconds, answered, unexpected }] = await once(generator, 'message')
  const spent = [processorSeconds(pid), processorSeconds(market.chain.pid)].map((now, index) =>
    now === undefined ? undefined : ((now - busy[index]) / answered) * 1e3,
  )
  return { rate: (answered - unexpected) / seconds, unexpected, cost: spent[0], chainCost: spent[1] }
}

async function summarise({ market, runs, sold }) {
  return {
    name: market.seller.name,
    rate: median(runs.map(({ rate }) => rate)),
    cost: median(runs.map(({ cost }) => cost)),
    chainCost: median(runs.map(({ chainCost }) => chainCost)),
    unpaid: runs.reduce((sum, { unexpected }) => sum + unexpected, 0),
    sold,
    charges: await market.charges(),
    memory: memory(market.pid),
    rates: runs.map(({ rate }) => rate),
  }
}

export function reportPaid(rows) {
  const [ours, peer] = rows
  printTable(
    'Paid calls, 32 at once, each settled on a local chain before it is answered',
    ['', 'calls/s', 'ms of processor', 'of the chain', 'payments', 'charges', 'MB resident'],
    rows.map((row) => [
      row.name,
      show(row.rate, 0),
      show(row.cost, 1),
      show(row.chainCost, 1),
      String(row.sold),
      String(row.charges),
      show(row.memory, 0),
    ]),
  )
  printTable(
    'One against the other',
    ['', 'by calls/s', 'by processor'],
    [[`${ours.name} / ${peer.name}`, show(ours.rate / peer.rate, 2), show(peer.cost / ours.cost, 2)]],
  )
}
