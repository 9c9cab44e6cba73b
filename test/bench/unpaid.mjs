// Unpaid requests: every server in turn, in rounds, so that whatever else the machine does falls on all of them.
import { once } from 'node:events'
import { median, printTable, show } from './figures.mjs'
import { startOurs } from './servers/ours.mjs'
import { startPeer } from './servers/peer.mjs'
import { startGenerator } from './start-generator.mjs'
import { memory, processorSeconds } from './usage.mjs'

const BARE = 'node:http, a short constant'
const OURS = 'ours, the shipped catalog'
const FEW = 'ours, 24 generated routes'
const SOME = 'ours, 24 of 5,000 generated routes'
const MANY = 'ours, all of 5,000 generated routes'
const DOCUMENT = 'ours, a document (/llms.txt, 200)'
const PEER = '@x402/express'

/** Resolves to the starts of our servers that were seen on the way. */
export async function measureUnpaid({ catalogs, rounds, seconds, warmUp }) {
  const running = []
  const keep = async (starting) => {
    const server = await starting
    running.push(server)
    return server
  }
  const generator = startGenerator()
  try {
    const ours = await keep(startOurs(catalogs.shipped.file))
    const few = await keep(startOurs(catalogs.few.file))
    const many = await keep(startOurs(catalogs.many.file))
    const { targets, templates } = catalogs.shipped
    const answers = await Promise.all(targets.map((target) => capture(ours.port, target)))
    const listing = answers.map(([, { headers }], index) => ({
      path: templates[index],
      ...challengeIn(headers),
    }))
    const candidates = [
      { name: BARE, server: await keep(startPeer('bare')), targets },
      { name: 'node:http, our bytes', server: await keep(startPeer('bytes', answers)), targets },
      { name: 'the smallest Koa, our bytes', server: await keep(startPeer('koa', answers)), targets },
      { name: OURS, server: ours, targets },
      { name: PEER, server: await keep(startPeer('express', listing)), targets },
      { name: FEW, server: few, targets: catalogs.few.targets },
      { name: SOME, server: many, targets: spread(catalogs.many.targets, 24) },
      { name: MANY, server: many, targets: catalogs.many.targets },
      { name: DOCUMENT, server: ours, targets: ['/llms.txt'], status: 200 },
    ].map((candidate) => ({ status: 402, ...candidate, runs: [] }))
    for (const candidate of candidates) {
      // Every path once, for what is made at a route's first request; then long enough for the compiler.
      await load(generator, candidate, undefined)
      await load(generator, candidate, warmUp)
    }
    for (let round = 0; round < rounds; round += 1)
      for (const candidate of candidates) candidate.runs.push(await load(generator, candidate, seconds))
    report(candidates, targets.length)
    printTable(
      'Memory, MB resident',
      ['', 'at start', 'after these requests'],
      [[OURS, show(ours.start.memory, 0), show(memory(ours.pid), 0)]],
    )
    return { shipped: [ours.start], many: [many.start] }
  } finally {
    generator.kill()
    for (const server of running) server.stop()
  }
}

function spread(values, count) {
  return Array.from({ length: count }, (_, index) => values[Math.floor((index * values.length) / count)])
}

/** The bytes of our answer, without what node:http writes by itself. */
async function capture(port, target) {
  const response = await fetch(`http://127.0.0.1:${port}${target}`)
  const own = ['connection', 'date', 'keep-alive']
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !own.includes(name)))
  return [target, { headers, body: await response.text() }]
}

function challengeIn(headers) {
  return JSON.parse(Buffer.from(headers['payment-required'], 'base64').toString('utf8'))
}

async function load(generator, { server: { port, pid }, targets, status }, seconds) {
  const busy = processorSeconds(pid)
  generator.send({ ports: [port], paths: targets, seconds, status })
  const [result] = await once(generator, 'message')
  if (result.unexpected > 0) throw new Error(`${result.unexpected} answers were not ${status}`)
  const processor = busy === undefined ? undefined : processorSeconds(pid) - busy
  return {
    rate: result.answered / result.seconds,
    cost: processor === undefined ? undefined : (processor / result.answered) * 1e6,
  }
}

function report(candidates, routes) {
  const runsOf = (wanted) => candidates.find(({ name }) => name === wanted).runs
  /** Of the runs of one round, so that both have met the same machine. */
  const against = (runs, base, figure) => median(runs.map((run, round) => quotient(figure(run, base[round]))))
  const faster = (run, base) => [run.rate, base.rate]
  const cheaper = (run, base) => [base.cost, run.cost]
  printTable(
    `Unpaid 402, four networks and MPP, ${routes} paid routes (rates need idle cores; processor time does not)`,
    ['', 'requests/s', 'of bare', 'µs of processor', 'of bare'],
    candidates.map(({ name, runs }) => [
      name,
      show(median(runs.map(({ rate }) => rate)), 0),
      show(against(runs, runsOf(BARE), faster), 2),
      show(median(runs.map(({ cost }) => cost)), 0),
      show(against(runs, runsOf(BARE), cheaper), 2),
    ]),
  )
  const pair = (label, one, other) => [
    label,
    show(against(runsOf(one), runsOf(other), faster), 2),
    show(against(runsOf(one), runsOf(other), cheaper), 2),
  ]
  printTable(
    'One against the other',
    ['', 'by requests/s', 'by processor'],
    [
      pair('ours / @x402/express', OURS, PEER),
      pair('24 of 5,000 routes / 24 routes', SOME, FEW),
      pair('all of 5,000 routes / 24 routes', MANY, FEW),
    ],
  )
}

function quotient([dividend, divisor]) {
  return dividend === undefined || divisor === undefined ? undefined : dividend / divisor
}
