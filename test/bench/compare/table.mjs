// Prints the comparison as Markdown.
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { show } from '../figures.mjs'

const ours = packageAt('../../../package.json')
const peers = packageAt('../package.json').dependencies

/** Buyers at once. */
const USUAL = 32

/** `counted`: the rows of each seller, in the same order; `paid`: figures of each seller by its name. */
export function printComparison(sellers, counted, paid, scale) {
  const [first, ...others] = counted
  const rows = first.map(([words, value], index) => [words, value, ...others.map((other) => other[index][1])])
  const measured = sellers.map(({ name }) => paid.find((each) => each.name === name))
  const across = (words, of) => [words, ...measured.map(of)]
  const usual = ({ loads }) => loads.find(({ buyers }) => buyers === USUAL)
  const table = [
    ['', ...sellers.map(nameOf)],
    ['---', ...sellers.map(() => '---')],
    ...rows,
    across(`Paid calls a second, ${USUAL} at once`, (each) => show(usual(each).rate, 0)),
    across('… CPU ms per call', (each) => show(usual(each).cost, 1)),
    across('… RPC methods per call', ({ asked }) => show(asked.methods, 1)),
    across('… payments sent', ({ sold }) => sold),
    across('… charges', ({ charges }) => charges),
  ]
  console.log(`${machine()}\n`)
  for (const row of table) console.log(`| ${row.join(' | ')} |`)
  console.log(`\n${notes(scale).join('\n')}`)
}

function nameOf({ name }) {
  return name === 'ours' ? `${ours.name} ${ours.version}` : `${name} ${peers[name]}`
}

function machine() {
  const day = new Date().toISOString().slice(0, 10)
  const cores = `${cpus().length} cores, ${cpus()[0]?.model ?? 'unknown'}`
  const anvil = ours.optionalDependencies['@foundry-rs/anvil']
  return `${day}; Node.js ${process.version}; ${cores}; anvil ${anvil}, one block a transaction; viem ${peers.viem}.`
}

function notes({ kills, drops, paidRounds, calls }) {
  return [
    'Each seller has a chain of its own. Charges are transfers to the seller in the logs of that chain; handler runs are',
    'counted where the work is done; an answer is a 200. Money lost is 0.01 USD for each charge without an answer of its own.',
    `@x402/express runs with the facilitator of @x402/core ${peers['@x402/core']} in its process: one key, transactions sent one`,
    'after the other, receipts polled every 10 ms, all other settings at the defaults of the packages.',
    '',
    '- Copies: the same header in 50 requests at once, for work of 0.1 s.',
    `- kill -9: SIGKILL with 8 buyers under way, ${kills} times at each instant, then a restart. A buyer sends the same payment`,
    '  until it is answered or refused, then signs a new one.',
    `- The node is lost: the transaction arrives, its answer does not, and no later call. ${drops} buyers, one after the other, each`,
    '  with `@x402/fetch`, which signs a new payment at every 402.',
    '- Started while something is down: one unpaid request, then it comes back, then one payment.',
    `- Paid calls: ${paidRounds} rounds of ${calls} payments signed beforehand, sellers in turn, median. Every payment is settled before`,
    '  it is answered. Rates need idle cores; processor time does not.',
  ]
}

function packageAt(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
}
